// What all transports have in common.
#include "concord/collective/group.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "concord/collective/rounding.hpp"
#include "concord/core/check.hpp"
#include "concord/core/platform.hpp"
#include "concord/core/text.hpp"

namespace concord::collective {

Part part_of(std::size_t elements, int size, int rank) {
  const auto ranks = static_cast<std::size_t>(size);
  const std::size_t each = (elements + ranks - 1) / ranks;
  const std::size_t begin = std::min(elements, static_cast<std::size_t>(rank) * each);
  return {begin, std::min(elements, begin + each)};
}

void Group::all_reduce(std::span<float> values, std::span<const float> start) {
  reduce_scatter(values, start);
  all_gather(std::as_writable_bytes(values), sizeof(float));
}

void Group::all_reduce_rounded(std::span<float> values, Precision precision) {
  float scale = 1;
  if (precision == Precision::fp16) {
    std::vector<float> largest(static_cast<std::size_t>(size()));
    largest[static_cast<std::size_t>(rank())] = largest_magnitude(values);
    all_gather(std::as_writable_bytes(std::span(largest)), sizeof(float));
    scale = scale_to_fp16(*std::ranges::max_element(largest), size());
  }
  sum_rounded(values, precision, scale);
}

void Group::sum_rounded(std::span<float> values, Precision precision, float scale) {
  round_in_place(values, precision, scale, 1);
  all_reduce(values);
  round_in_place(values, precision, 1, 1 / scale);
}

GroupPtr Group::survivors() {
  throw NotSupported(fmt::format("the transport {} cannot go on without a rank", transport()));
}

int least_ranks() {
  const std::optional<std::string> text = environment("CONCORD_MIN_RANKS");
  if (!text) return 0;
  const std::optional<int> ranks = number_in_text<int>(*text);
  CONCORD_CHECK(ranks && *ranks > 0, ArgumentError, "CONCORD_MIN_RANKS is '{}'; it must be a whole number above 0",
                *text);
  return *ranks;
}

double deadline_seconds() {
  constexpr double kDefault = 300, kMost = 1e6;
  const std::optional<std::string> text = environment("CONCORD_DEADLINE");
  if (!text) return kDefault;
  const std::optional<double> seconds = number_in_text<double>(*text);
  CONCORD_CHECK(seconds && *seconds > 0 && *seconds <= kMost, ArgumentError,
                "CONCORD_DEADLINE is '{}'; it must be a number of seconds above 0, at most 1e6", *text);
  return *seconds;
}

}  // namespace concord::collective
