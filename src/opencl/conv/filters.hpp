// Filters: the layout of the weights of a convolution that the copy engine's GEMM reads as its left operand
// (gemm/hopper/tma.cpp), in 16 bits. A line of the product holds the numbers of one tap after those of another, each
// tap padded with zeros to whole tiles of k. Weights that only change at the end of a step are packed once, all in a
// few launches (Device::prepare_reorders), and in a program that does not change them, once for all runs.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "concord/device/device.hpp"
#include "concord/opencl/launch/context.hpp"
#include "concord/ops/conv.hpp"

namespace concord::opencl {

class Filters final : public LayoutDescription {
 public:
  /// How the packed numbers lie in the row-major weights; strides are in elements.
  struct Walk {
    std::int64_t lines, line_stride;
    /// Numbers of a tap: `run` neighbours each, runs being run_stride apart; and their number with the padding.
    std::int64_t numbers, run, run_stride, padded;
    /// Where the taps of each product begin. A convolution is one product, a data gradient one for each phase of its
    /// stride.
    std::vector<std::vector<std::uint32_t>> phases;
    bool operator==(const Walk&) const = default;
  };

  Filters(DType number, Walk walk) : number_(number), walk_(std::move(walk)) {}
  [[nodiscard]] std::size_t bytes() const override { return begin_of(walk_.phases.size()); }
  [[nodiscard]] bool equals(const LayoutDescription& other) const override;
  [[nodiscard]] std::string str() const override;
  [[nodiscard]] bool is_made_in_groups() const override { return true; }

  [[nodiscard]] DType number() const { return number_; }
  [[nodiscard]] const Walk& walk() const { return walk_; }
  /// The byte where the weights of a phase begin; of the number of phases, the end.
  [[nodiscard]] std::size_t begin_of(std::size_t phase) const;

 private:
  DType number_;
  Walk walk_;
};

/// Of the forward pass: a line for each output channel.
[[nodiscard]] std::shared_ptr<const Filters> forward_filters(const ops::ConvSizes& sizes, DType number,
                                                             std::int64_t padded);
/// Of the data gradient: a line for each channel of the image. `phases` has the taps of each product, by their numbers.
[[nodiscard]] std::shared_ptr<const Filters> backward_filters(const ops::ConvSizes& sizes, DType number,
                                                              std::int64_t padded,
                                                              std::vector<std::vector<std::uint32_t>> phases);
/// Of the forward pass of an image that is row-unrolled: the taps of a row of the kernel are numbers of one tap.
[[nodiscard]] std::shared_ptr<const Filters> row_unrolled_filters(const ops::ConvSizes& sizes, DType number,
                                                                  std::int64_t padded);

/// Device::prepare_reorders to filters of one type; null for others.
[[nodiscard]] std::unique_ptr<Kernel> prepare_filters(Context& context, std::span<const Device::Reorder> reorders);

}  // namespace concord::opencl
