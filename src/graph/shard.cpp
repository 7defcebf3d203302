// A part of a tensor is a run of bytes in each block of each outer index.
#include "concord/graph/shard.hpp"

#include <algorithm>

#include "concord/core/check.hpp"

namespace concord {
namespace {

/// Calls `move(offset in the whole, offset in the part, bytes)` for each run.
template <class Move>
void for_runs(const TensorSpec& whole, const Shard& shard, const Move& move) {
  const auto dims = whole.shape.dims();
  std::size_t outer = 1, inner = size_of(whole.dtype);
  for (std::size_t i = 0; i < shard.axis; ++i) outer *= static_cast<std::size_t>(dims[i]);
  for (std::size_t i = shard.axis + 1; i < dims.size(); ++i) inner *= static_cast<std::size_t>(dims[i]);
  const auto ranks = static_cast<std::size_t>(shard.ranks);
  const std::size_t blocks = outer * static_cast<std::size_t>(shard.blocks);
  const std::size_t bytes = static_cast<std::size_t>(dims[shard.axis] / shard.blocks) / ranks * inner;
  for (std::size_t block = 0; block < blocks; ++block) {
    move((block * ranks + static_cast<std::size_t>(shard.rank)) * bytes, block * bytes, bytes);
  }
}

Shape with_dimension(const Shape& shape, std::size_t axis, std::int64_t size) {
  std::vector<std::int64_t> dims(shape.dims().begin(), shape.dims().end());
  dims[axis] = size;
  return Shape(std::move(dims));
}

}  // namespace

Shape part_of(const Shape& whole, const Shard& shard) {
  if (shard.is_whole()) return whole;
  CONCORD_CHECK(shard.axis < whole.rank() && whole.dims()[shard.axis] % (shard.blocks * shard.ranks) == 0, ShapeError,
                "dimension {} of {} cannot be divided into {} equal parts", shard.axis, whole.str(),
                shard.blocks * shard.ranks);
  return with_dimension(whole, shard.axis, whole.dims()[shard.axis] / shard.ranks);
}

TensorSpec whole_of(const TensorSpec& part, const Shard& shard) {
  if (shard.is_whole()) return part;
  return {part.dtype, with_dimension(part.shape, shard.axis, part.shape.dims()[shard.axis] * shard.ranks)};
}

Tensor part_of(const Tensor& whole, const Shard& shard) {
  if (shard.is_whole()) return whole;
  Tensor part = Tensor::unset({whole.dtype(), part_of(whole.shape(), shard)});
  for_runs(whole.spec(), shard, [&](std::size_t from, std::size_t to, std::size_t bytes) {
    std::ranges::copy(whole.bytes().subspan(from, bytes), part.bytes().subspan(to).begin());
  });
  return part;
}

void put_part(Tensor& whole, const Tensor& part, const Shard& shard) {
  CONCORD_CHECK(part.spec() == TensorSpec(whole.dtype(), part_of(whole.shape(), shard)), ShapeError,
                "a part {} does not belong to {}", part.spec().str(), whole.spec().str());
  if (shard.is_whole()) return std::ranges::copy(part.bytes(), whole.bytes().begin()), void();
  for_runs(whole.spec(), shard, [&](std::size_t to, std::size_t from, std::size_t bytes) {
    std::ranges::copy(part.bytes().subspan(from, bytes), whole.bytes().subspan(to).begin());
  });
}

}  // namespace concord
