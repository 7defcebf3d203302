// Collapsing of strided loops, and their index arithmetic as kernel text.
#include "concord/opencl/launch/strides.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>

namespace concord::opencl {
namespace {

// A factor of an index expression; an empty string stands for 0.
std::string times(const std::string& coordinate, std::int64_t stride, const std::string& name) {
  if (stride == 0) return {};
  return stride == 1 ? coordinate : coordinate + " * " + name;
}

bool can_join(const StridedLoop& loop, std::size_t outer, std::size_t inner) {
  return std::ranges::all_of(loop.strides, [&](const std::vector<std::int64_t>& strides) {
    return strides[outer] == strides[inner] * loop.dims[inner];
  });
}

void erase_dimension(StridedLoop& loop, std::size_t dimension) {
  const auto at = static_cast<std::ptrdiff_t>(dimension);
  loop.dims.erase(loop.dims.begin() + at);
  loop.axes.erase(loop.axes.begin() + at);
  for (std::vector<std::int64_t>& strides : loop.strides) strides.erase(strides.begin() + at);
}

}  // namespace

std::int64_t StridedLoop::elements() const {
  std::int64_t product = 1;
  for (const std::int64_t dim : dims) product *= dim;
  return product;
}

bool StridedLoop::is_wide() const {
  return is_wide_index(elements()) || std::ranges::any_of(strides, [&](const std::vector<std::int64_t>& operand) {
           std::int64_t last = 0;
           for (std::size_t d = 0; d < dims.size(); ++d) last += (dims[d] - 1) * operand[d];
           return is_wide_index(last);
         });
}

std::vector<std::int64_t> broadcast_strides(const Shape& operand, const Shape& dst) {
  std::vector<std::int64_t> strides(dst.rank(), 0);
  const std::vector<std::int64_t> own = operand.strides();
  const std::size_t missing = dst.rank() - operand.rank();
  for (std::size_t d = 0; d < operand.rank(); ++d) {
    if (operand.dims()[d] != 1) strides[missing + d] = own[d];
  }
  return strides;
}

StridedLoop collapsed(StridedLoop loop, std::span<const std::size_t> kept) {
  loop.axes.resize(loop.dims.size());
  for (std::size_t d = 0; d < loop.axes.size(); ++d) loop.axes[d] = d;
  const auto is_kept = [&](std::size_t d) { return std::ranges::find(kept, loop.axes[d]) != kept.end(); };
  for (std::size_t d = loop.dims.size(); d-- > 0;) {
    if (loop.dims[d] == 1) erase_dimension(loop, d);
  }
  for (std::size_t inner = loop.dims.size(); inner-- > 1;) {
    const std::size_t outer = inner - 1;
    if (is_kept(inner) || is_kept(outer) || !can_join(loop, outer, inner)) continue;
    loop.dims[outer] *= loop.dims[inner];
    loop.axes[outer] = loop.axes[inner];
    for (std::vector<std::int64_t>& strides : loop.strides) strides[outer] = strides[inner];
    erase_dimension(loop, inner);
  }
  if (loop.dims.empty()) {
    loop.dims.push_back(1);
    loop.axes.push_back(0);
    for (std::vector<std::int64_t>& strides : loop.strides) strides.push_back(1);
  }
  return loop;
}

bool is_wide_index(std::int64_t elements) { return elements > std::numeric_limits<std::int32_t>::max(); }

Argument index_argument(std::int64_t value, bool wide) {
  return wide ? Argument(static_cast<std::uint64_t>(value)) : Argument(static_cast<std::uint32_t>(value));
}

FastDivisor fast_divisor(std::int64_t divisor) {
  if (divisor == 0) return {};
  const auto d = static_cast<std::uint64_t>(divisor);
  const auto shift = static_cast<std::uint32_t>(std::bit_width(d - 1));
  const std::uint64_t multiplier = ((((std::uint64_t{1} << shift) - d) << 32U) / d) + 1;
  return {static_cast<std::uint32_t>(d), static_cast<std::uint32_t>(multiplier), shift};
}

void add_divisor(std::vector<Argument>& arguments, std::int64_t divisor) {
  const FastDivisor d = fast_divisor(divisor);
  for (const std::uint32_t number : {d.divisor, d.multiplier, d.shift}) arguments.emplace_back(number);
}

IndexText::IndexText(const StridedLoop& loop, bool wide) : wide_(wide), rank_(loop.dims.size()) {
  std::string rest = "i";
  for (std::size_t d = rank_; d-- > 1;) {
    const FastDivisor fast = wide_ ? FastDivisor{} : fast_divisor(loop.dims[d]);
    add_index(fmt::format("d{}", d), loop.dims[d]);
    add_parameter("uint", fmt::format("m{}", d), fast.multiplier);
    add_parameter("uint", fmt::format("h{}", d), fast.shift);
    coordinates_ +=
        fmt::format("  const index_t q{0} = index_divide({1}, d{0}, m{0}, h{0}), c{0} = {1} - q{0} * d{0};\n", d, rest);
    rest = fmt::format("q{}", d);
  }
  coordinates_ += fmt::format("  const index_t c0 = {};\n", rest);
  for (std::size_t k = 0; k < loop.strides.size(); ++k) {
    std::string place;
    for (std::size_t d = 0; d < rank_; ++d) {
      const std::int64_t stride = loop.strides[k][d];
      const std::string name = fmt::format("s{}_{}", k, d);
      const std::string factor = times(fmt::format("c{}", d), stride, name);
      if (stride > 1) add_index(name, stride);
      if (!factor.empty()) place += (place.empty() ? "" : " + ") + factor;
    }
    places_.push_back(place.empty() ? "0" : place);
    const std::int64_t step = loop.strides[k].back();
    steps_.push_back(step > 1 ? fmt::format("s{}_{}", k, rank_ - 1) : std::to_string(step));
  }
}

std::string IndexText::run_length() const {
  if (rank_ == 1) return "end - i";
  return fmt::format("min(end - i, d{0} - c{0})", rank_ - 1);
}

void IndexText::add_parameter(const std::string& type, const std::string& name, Argument value) {
  parameters_ += ", const " + type + " " + name;
  names_ += ", " + name;
  arguments_.push_back(value);
}

void IndexText::add_index(const std::string& name, std::int64_t value) {
  add_parameter("index_t", name, index_argument(value, wide_));
}

std::optional<std::vector<std::int64_t>> grouped_strides(const Shape& extra, const Shape& output,
                                                         std::span<const std::size_t> ends) {
  if (extra.rank() > output.rank()) return std::nullopt;
  const std::vector<std::int64_t> by_axis = broadcast_strides(extra, output);
  std::vector<std::int64_t> strides;
  std::size_t begin = 0;
  for (const std::size_t end : ends) {
    std::int64_t stride = 0, expected = 0;
    bool any = false;
    for (std::size_t axis = end; axis-- > begin;) {
      const std::int64_t size = output.dims()[axis];
      if (size == 1) continue;
      if (!any) {
        stride = expected = by_axis[axis];
        any = true;
      } else if (by_axis[axis] != expected) {
        return std::nullopt;
      }
      expected *= size;
    }
    strides.push_back(stride);
    begin = end;
  }
  return strides;
}

}  // namespace concord::opencl
