// BERT of any size, for masked words or as an encoder of sentences, with the inputs of Hugging Face's BertModel. The
// zoo's bert_base is one of them.
#pragma once

#include <memory>

#include "concord/core/export.hpp"
#include "concord/nn/module.hpp"

namespace CONCORD_PUBLIC concord {
namespace models {

struct BertOptions {
  int vocabulary = 30522;
  int context = 512;  // most words of a sequence
  int depth = 12;     // layers
  int width = 768;    // values of a word
  int heads = 12;
  int inner = 0;  // width between the two products of a layer; 0: four times the width
  float dropout = 0.1F;
  /// true: logits of the words, with the names of BertForMaskedLM ("bert.encoder.layer.0…", "cls.predictions…").
  /// false: the encoder alone, with the names of BertModel ("encoder.layer.0…").
  bool masked_words = true;
  bool pooler = false;  // of the encoder: tanh of a product of the first word
};

/// Makes a BERT (Devlin et al., "BERT: Pre-training of Deep Bidirectional Transformers for Language Understanding",
/// 2019). Its inputs:
///   "input_ids" i32 (N, T), the only one that has to be there;
///   "token_type_ids" i32 (N, T), the sentence of each word, 0 or 1; without it all are 0;
///   "attention_mask" i32 or f32 (N, T), 1 for a word and 0 for padding; without it there is no padding.
/// Outputs: "logits" (N, T, vocabulary), or "last_hidden_state" (N, T, width) and with a pooler "pooler_output" (N,
/// width). Throws ArgumentError if the heads do not divide the width.
[[nodiscard]] std::shared_ptr<nn::Module> bert(const BertOptions& options = {});

}  // namespace models
}  // namespace concord
