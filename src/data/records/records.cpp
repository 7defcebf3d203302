// Records: what most of them have in common.
#include "concord/data/records/records.hpp"

#include "concord/core/check.hpp"
#include "concord/core/utf8.hpp"

namespace concord::data {

Record Records::read_mask(std::int64_t row, std::vector<std::byte>& /*scratch*/) const {
  throw ArgumentError(fmt::format("{}: {} has no mask", name, printable(name_of(row))));
}

}  // namespace concord::data
