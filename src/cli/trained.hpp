// Trained: what a file of weights says of the network and of the data that it was trained on, in its metadata. `train`
// writes it; evaluate and predict follow it.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "concord/concord.hpp"

namespace concord::cli {

struct Trained {
  std::string network;                                              // MODEL; empty: the file does not say
  int classes = 0;                                                  // of the network; 0: as published
  bool has_targets = false;                                         // it predicts numbers; a table says so itself
  bool is_of_file = false;                                          // of weights; else nothing was read
  std::string alphabet;                                             // of text or transcripts; empty: none
  std::optional<data::Bpe> bpe = std::nullopt;                      // of text
  std::optional<data::Preprocessing> preprocessing = std::nullopt;  // of images
  std::optional<data::CsvEncoding> table = std::nullopt;            // of the columns of a table
  std::optional<data::AudioFeatures> audio = std::nullopt;          // of recordings

  /// Throws as weights::File, and FormatError for metadata that cannot be read.
  [[nodiscard]] static Trained of(const std::string& file);
  /// For TrainerOptions::metadata.
  [[nodiscard]] std::map<std::string, std::string> metadata() const;
};

}  // namespace concord::cli
