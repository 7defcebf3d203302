// Sums by channel of images that lie channels-last, of tokens, and of rows of floats: several in one launch, or one
// (cl_kernels/ops/channel_sums.cl).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "concord/opencl/formula/channels_last.hpp"
#include "concord/opencl/launch/context.hpp"
#include "concord/ops/reduce.hpp"

namespace concord::opencl {

/// Elements of a sum that goes together with others of any shape (grouped_sums.hpp).
inline constexpr std::int64_t kMostOfSmallSum = std::int64_t{1} << 20;

/// A sum over everything but the channels.
struct ChannelSum {
  ChannelsLast image;
  std::int64_t results;  // channels that have a sum; those behind them are padding
  std::optional<Prologue> prologue;
  [[nodiscard]] bool is_of_rows() const { return image.number() == DType::f32; }
};

/// Whether the operator sums over everything but the channels of tensors of this rank.
[[nodiscard]] bool is_by_channel(const ops::Reduce& op, std::size_t rank, ChannelAxis axis);
/// The request, of a Reduce or of one with a prologue, as such a sum; nothing for another sum or layout. The result
/// refers to the request's operator.
[[nodiscard]] std::optional<ChannelSum> channel_sum_of(const Context& context, const KernelRequest& request);
/// Sums for which this is the same go into one launch.
[[nodiscard]] std::string channel_sum_kind(Context& context, const ChannelSum& sum);
/// A kernel of all these requests, with their inputs and outputs one behind the other. Each sum has the bits that it
/// has alone. NVIDIA GPUs make up to eight sums by a launch, others by two.
[[nodiscard]] std::unique_ptr<Kernel> prepare_channel_sums(Context& context, std::span<const KernelRequest> requests);

}  // namespace concord::opencl
