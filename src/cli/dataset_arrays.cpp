// Arrays of numpy as parts of a data set: numbers that a network takes.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "concord/cli/counted.hpp"
#include "concord/cli/dataset.hpp"
#include "concord/cli/model_file.hpp"
#include "concord/core/check.hpp"
#include "concord/core/utf8.hpp"

namespace concord::cli {
namespace {

/// Throws FormatError with the first sample that has a number that is not finite.
void require_finite_array(const Tensor& array, std::string_view which, const std::string& data) {
  if (array.dtype() != DType::f32 || array.elements() == 0) return;
  const auto values = array.values<float>();
  const auto is_bad = [](float value) { return !std::isfinite(value); };
  const auto first = std::ranges::find_if(values, is_bad);
  if (first == values.end()) return;
  const std::int64_t width = array.elements() / array.shape()[0];
  throw FormatError(
      fmt::format("{}: the {} of sample {} have {}, and {} of {} numbers are NaN or infinite. Replace them in the "
                  "array, or leave these samples out",
                  printable(data), which, (first - values.begin()) / width, *first,
                  std::ranges::count_if(values, is_bad), array.elements()));
}

DType type_of_input(const models::Model& model) {
  const onnx::Network* const file = file_of(model);
  return file != nullptr ? onnx::dtype_of(file->inputs()[0].type) : model.dtype;
}

Tensor as_floats(const Tensor& whole) {
  Tensor floats = Tensor::unset({DType::f32, whole.shape()});
  std::ranges::transform(whole.values<std::int32_t>(), floats.values<float>().begin(),
                         [](std::int32_t number) { return static_cast<float>(number); });
  return floats;
}

}  // namespace

SharedSamples DataSource::read_arrays(std::string_view name) const {
  std::optional<Dataset> arrays;
  if (spec_.kind == "npz") {
    const bool are_named = !spec_.option("x").empty() || !spec_.option("y").empty();
    if (name != "train" && (are_named || !data::npz_has_test(spec_.path))) return {};
    arrays = data::npz(spec_.path, spec_.option("x"), spec_.option("y"), name);
  } else {
    const std::string pair = name == "train" ? spec_.path : spec_.option("test");
    if (pair.empty()) return {};
    const std::size_t comma = pair.find(',');
    CONCORD_CHECK(comma != std::string::npos || options_.may_lack_labels, ArgumentError,
                  "npy: needs the files of features and labels: npy:X.npy,Y.npy; only predict needs no labels");
    arrays = comma == std::string::npos ? data::npy(pair) : data::npy(pair.substr(0, comma), pair.substr(comma + 1));
  }
  if (options_.is_as_stored) return std::move(*arrays);
  if (!options_.may_lack_labels) {  // predict names each sample without an answer
    require_finite_array(arrays->features, "features", spec_.text);
    require_finite_array(arrays->labels, "targets", spec_.text);
  }
  if (arrays->features.dtype() == DType::i32 && type_of_input(model_) == DType::f32) {
    arrays->features = as_floats(arrays->features);
  }
  return std::move(*arrays);
}

}  // namespace concord::cli
