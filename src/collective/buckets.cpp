// The filling of buckets, in the order of the vectors.
#include "concord/collective/buckets.hpp"

namespace concord::collective {

std::size_t bucket_bytes(bool is_one_machine) {
  constexpr std::size_t kOfOneMachine = std::size_t{32} << 20, kOfSeveral = std::size_t{4} << 20;
  return is_one_machine ? kOfOneMachine : kOfSeveral;
}

std::vector<std::size_t> buckets_of(std::span<const std::size_t> bytes, std::size_t most, bool is_end) {
  std::vector<std::size_t> buckets;
  std::size_t bucket = 0, filled = 0;
  for (const std::size_t size : bytes) {
    if (filled > 0 && filled + size > most) {
      ++bucket;
      filled = 0;
    }
    buckets.push_back(bucket);
    filled += size;
  }
  // What fills an eighth of a long one goes alone, or one vector of less than its half.
  if (!is_end || filled <= most / 2) return buckets;
  std::size_t alone = 0;
  for (std::size_t i = bytes.size(); i > 0 && buckets[i - 1] >= bucket; --i) {
    if (alone > 0 && alone + bytes[i - 1] > most / 8) break;
    alone += bytes[i - 1];
    if (2 * alone >= filled) break;
    buckets[i - 1] = bucket + 1;
  }
  return buckets;
}

}  // namespace concord::collective
