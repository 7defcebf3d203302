// Whether masks have what a network can learn from. Internal to the library.
#pragma once

#include "concord/data/records/records.hpp"

namespace concord::data {

/// Looks at some masks, evenly spaced. Logs a warning for classes below `mask_classes` that no pixel has, where others
/// are kNoClass: masks of two classes are often stored as 0 and 255. Throws FormatError if no pixel of any mask has a
/// class, or all that have one the same, where others are kNoClass; with `may_be_one_class` that is only a warning.
/// Masks that cannot be read are passed over. Does nothing for 0 `mask_classes`.
void check_classes_in_masks(const Records& records, bool may_be_one_class);

}  // namespace concord::data
