// Preprocessing: what a trained network expects of its images. It is saved with the weights, so that evaluate, predict
// and compare prepare an image as the training did.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "concord/core/export.hpp"
#include "concord/data/image/transform.hpp"

namespace CONCORD_PUBLIC concord {
namespace data {

/// The fields are those of ImageTransform.
struct Preprocessing {
  std::int64_t height = 224, width = 224;
  std::int64_t resize = 0;
  std::int64_t channels = 3;
  std::vector<float> mean = {}, deviation = {};
  std::vector<std::string> class_names = {};  // any bytes; empty: not known

  /// One line of JSON. from_json() of it is equal to the last bit.
  [[nodiscard]] std::string to_json() const;
  /// Throws FormatError, which begins with `subject` ("model.safetensors: preprocessing"), if the text is not JSON, if
  /// a field is missing, unknown, of another type or out of range.
  [[nodiscard]] static Preprocessing from_json(std::string_view text, std::string_view subject);
  friend bool operator==(const Preprocessing&, const Preprocessing&) = default;
};

/// The transform without augmentation. Throws ArgumentError if a field is out of range.
[[nodiscard]] ImageTransform evaluation_of(const Preprocessing& preprocessing);

/// What a network expects that was trained with `transform`.
[[nodiscard]] Preprocessing preprocessing_of(const ImageTransform& transform, std::vector<std::string> class_names);

}  // namespace data
}  // namespace concord
