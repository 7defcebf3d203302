// The zoo: known networks by name. Each stands in a file of its own; zoo.cpp lists them. Used by the command and by
// programs that take a network's name.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "concord/nn/module.hpp"

namespace concord::models {

struct Model {
  std::string_view name;
  std::string_view description;
  Shape input;                 // one sample
  int classes = 0;             // as published
  std::int64_t parameters = 0;  // with so many classes; running statistics not counted
  std::shared_ptr<nn::Module> (*make)(int classes) = nullptr;
};

[[nodiscard]] const std::vector<Model>& all();
/// Throws ArgumentError with the names there are.
[[nodiscard]] const Model& find(std::string_view name);
/// A new network; `classes` 0 takes the published number. Throws ArgumentError for an unknown name or classes below 1.
[[nodiscard]] std::shared_ptr<nn::Module> make(std::string_view name, int classes = 0);

[[nodiscard]] Model mlp();
[[nodiscard]] Model lenet();
[[nodiscard]] Model resnet20();

}  // namespace concord::models
