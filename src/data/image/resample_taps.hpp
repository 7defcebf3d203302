// The weights of a triangle filter along one axis. Used by resample.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace concord::data {

/// For each pixel of the result, the pixels of the source that it is a mean of. Weights are whole numbers whose sum is
/// 2^kWeightBits. They are in pairs, the second in the upper 16 bits: an odd number of them is followed by 0.
class FilterTaps {
 public:
  static constexpr int kWeightBits = 14;

  struct Pixel {
    std::size_t first = 0;  // of the source
    std::size_t pairs = 0;
    const std::int32_t* weights = nullptr;
  };

  /// The part [begin, begin + length) of an axis becomes `count` pixels. Pixels outside of the part are not used,
  /// except those that its edges cut. Memory is reused.
  void set(double begin, double length, std::int64_t count);

  [[nodiscard]] std::size_t size() const { return first_.size(); }
  [[nodiscard]] Pixel operator[](std::size_t i) const { return {first_[i], pairs_[i], &weights_[i * pairs_each_]}; }
  /// The first pixel of the source that is used, and the one after the last.
  [[nodiscard]] std::size_t begin() const { return begin_; }
  [[nodiscard]] std::size_t end() const { return end_; }

 private:
  std::size_t begin_ = 0, end_ = 0, pairs_each_ = 0;
  std::vector<std::size_t> first_, pairs_;
  std::vector<std::int32_t> weights_;
  std::vector<double> exact_;
};

}  // namespace concord::data
