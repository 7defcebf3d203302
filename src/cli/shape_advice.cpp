// Networks by their input, and channels.
#include "concord/cli/shape_advice.hpp"

#include <fmt/ranges.h>

#include "concord/cli/counted.hpp"

namespace concord::cli {
namespace {

std::string conversion(std::int64_t from, std::int64_t to) {
  constexpr const char* kFiles = " Images in files (folder:, lmdb:, tar:) get the channels that the network takes";
  if (from == 1 && to == 3) return fmt::format("{}; of an array (N, 1, H, W): numpy.repeat(x, 3, axis=1).", kFiles);
  if (from == 3 && to == 1) return fmt::format("{}; of an array (N, 3, H, W): x.mean(axis=1, keepdims=True).", kFiles);
  if (from == 4 && to == 3) return fmt::format("{}; of an array (N, 4, H, W): x[:, :3].", kFiles);
  return {};
}

}  // namespace

std::string shape_advice(const models::Model& model, const Shape& sample) {
  if (sample.rank() != 3) return {};
  constexpr std::size_t kShown = 5;
  std::vector<std::string_view> names;
  for (const models::Model& other : models::all()) {
    const bool is_alike = other.task == model.task && other.input.rank() == 3 && other.input[0] == sample[0];
    if (is_alike && other.name != model.name && names.size() < kShown) names.push_back(other.name);
  }
  const std::int64_t from = sample[0];
  const bool differs = model.input.rank() != 3 || model.input[0] != from;
  if (!differs) return {};
  std::string text;
  if (!names.empty()) {
    text = fmt::format(" Networks for images of {}: {}.", counted(from, "channel"), fmt::join(names, ", "));
  }
  return text + (model.input.rank() == 3 ? conversion(from, model.input[0]) : "");
}

}  // namespace concord::cli
