// The networks of the zoo, each in the file of its name, and their list; sizes.cpp gives them other sizes. Used by
// src/models alone.
#pragma once

#include <vector>

#include "concord/models/zoo.hpp"

namespace concord::models {

/// The model that `of_sizes` makes of the published sizes, able to be made of others too.
[[nodiscard]] Model sizable(std::vector<Size> sizes, std::function<Model(std::span<const int> sizes)> of_sizes);
/// `name` has the form "network:size=number,…"; `published` is the network of that name. The result lives as long as
/// the process. Throws ArgumentError.
[[nodiscard]] const Model& with_sizes(const Model& published, std::string_view name);

[[nodiscard]] Model mlp();
[[nodiscard]] Model lenet();
[[nodiscard]] Model lenet5();
[[nodiscard]] Model alexnet();
[[nodiscard]] Model overfeat();
[[nodiscard]] std::vector<Model> vgg();  // 11, 13, 16, 19, each also with batch norm
[[nodiscard]] Model nin();
[[nodiscard]] Model googlenet();
[[nodiscard]] Model inception_v3();
[[nodiscard]] Model inception_resnet_v2();
[[nodiscard]] Model resnet20();
[[nodiscard]] std::vector<Model> resnet();  // 18 … 101, resnext50_32x4d, wide_resnet50_2
[[nodiscard]] Model densenet121();
[[nodiscard]] Model squeezenet1_1();
[[nodiscard]] Model mobilenet_v2();
[[nodiscard]] Model mobilenet_v3_large();
[[nodiscard]] Model shufflenet_v2_x1_0();
[[nodiscard]] Model efficientnet_b0();
[[nodiscard]] Model alphago_zero();
[[nodiscard]] Model convnext_tiny();
[[nodiscard]] Model vit_b_16();
[[nodiscard]] Model unet();
[[nodiscard]] Model denoising_autoencoder();
[[nodiscard]] Model dcgan_generator();
[[nodiscard]] Model dcgan_discriminator();
[[nodiscard]] Model char_lstm();
[[nodiscard]] Model char_gru();
[[nodiscard]] Model lstm();
[[nodiscard]] Model deep_speech_2();
[[nodiscard]] Model bert_base();
[[nodiscard]] Model gpt_tiny();
[[nodiscard]] Model gpt2_small();

/// In the order in which users see them.
[[nodiscard]] inline std::vector<Model> networks() {
  std::vector<Model> list{mlp(), lenet(), lenet5(), alexnet(), overfeat()};
  const auto append = [&](std::vector<Model> family) { list.insert(list.end(), family.begin(), family.end()); };
  append(vgg());
  append({nin(), googlenet(), inception_v3(), inception_resnet_v2(), resnet20()});
  append(resnet());
  append({densenet121(),
          squeezenet1_1(),
          mobilenet_v2(),
          mobilenet_v3_large(),
          shufflenet_v2_x1_0(),
          efficientnet_b0(),
          convnext_tiny(),
          vit_b_16(),
          unet(),
          denoising_autoencoder(),
          dcgan_generator(),
          dcgan_discriminator(),
          alphago_zero(),
          char_lstm(),
          char_gru(),
          lstm(),
          deep_speech_2(),
          bert_base(),
          gpt_tiny(),
          gpt2_small()});
  return list;
}

}  // namespace concord::models
