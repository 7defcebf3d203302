// Equal samples, found by sorting their fingerprints.
#include <algorithm>

#include "concord/cli/data/check_samples.hpp"

namespace concord::cli {

std::vector<DuplicateGroup> duplicates_among(std::vector<SeenSample> samples,
                                             const std::function<DuplicateGroup::Member(const SeenSample&)>& member) {
  std::ranges::sort(samples, [](const SeenSample& a, const SeenSample& b) {
    if (a.content != b.content) return a.content < b.content;
    return a.part != b.part ? a.part < b.part : a.row < b.row;
  });
  std::vector<DuplicateGroup> groups;
  for (std::size_t begin = 0, end = 0; begin < samples.size(); begin = end) {
    end = begin + 1;
    while (end < samples.size() && samples[end].content == samples[begin].content) ++end;
    if (end - begin < 2) continue;
    DuplicateGroup& group = groups.emplace_back();
    group.has_equal_bytes = true;
    for (std::size_t i = begin; i < end; ++i) {
      group.members.push_back(member(samples[i]));
      group.is_across_parts = group.is_across_parts || samples[i].part != samples[begin].part;
      group.has_other_labels = group.has_other_labels || group.members.back().label != group.members.front().label;
      group.has_equal_bytes = group.has_equal_bytes && samples[i].stored == samples[begin].stored;
    }
  }
  // What leaks from one part into another comes first; then what contradicts itself; then as the samples come.
  std::ranges::sort(groups, [](const DuplicateGroup& a, const DuplicateGroup& b) {
    if (a.is_across_parts != b.is_across_parts) return a.is_across_parts;
    if (a.has_other_labels != b.has_other_labels) return a.has_other_labels;
    const auto& x = a.members[0];
    const auto& y = b.members[0];
    return x.part != y.part ? x.part < y.part : x.row < y.row;
  });
  return groups;
}

}  // namespace concord::cli
