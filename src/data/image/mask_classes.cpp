// The numbers that occur in masks.
#include "concord/data/image/mask_classes.hpp"

#include <algorithm>
#include <bitset>

#include "concord/core/check.hpp"
#include "concord/core/log.hpp"
#include "concord/data/image/mask.hpp"
#include "concord/data/records/labels.hpp"

namespace concord::data {
namespace {

constexpr std::int64_t kSampledMasks = 32;

class NumbersInMasks {
 public:
  explicit NumbersInMasks(const Records& records) : records_(records) {}

  void add(std::int64_t row) {
    try {
      const Record mask = records_.read_mask(row, scratch_);
      decode_mask(mask, read_mask_info(mask), image_);
    } catch (const FormatError&) {
      return;
    } catch (const IoError&) {
      return;
    }
    for (const std::uint8_t number : image_.pixels) seen_.set(number);
    ++count_;
  }
  [[nodiscard]] std::int64_t count() const { return count_; }
  [[nodiscard]] bool has_no_class() const { return seen_.test(kNoClass); }
  /// Of the classes below mask_classes those that were seen, or that were not.
  [[nodiscard]] std::vector<std::string> classes(bool were_seen) const {
    std::vector<std::string> found;
    for (std::size_t c = 0; c < static_cast<std::size_t>(records_.mask_classes); ++c) {
      if (seen_.test(c) == were_seen) found.push_back(fmt::format("{}", c));
    }
    return found;
  }

 private:
  const Records& records_;
  std::vector<std::byte> scratch_;
  Image image_;
  std::bitset<256> seen_;
  std::int64_t count_ = 0;
};

}  // namespace

void check_classes_in_masks(const Records& records, bool may_be_one_class) {
  const std::int64_t size = records.size(), sampled = std::min(size, kSampledMasks);
  if (records.mask_classes == 0) return;
  NumbersInMasks numbers(records);
  for (std::int64_t i = 0; i < sampled; ++i) {
    numbers.add(i * size / sampled);
    if (numbers.classes(false).empty()) return;
  }
  if (!numbers.has_no_class()) return;
  // A rare class may be in none of a few masks.
  for (std::int64_t row = 0; row < size && numbers.classes(true).size() < 2; ++row) numbers.add(row);
  const std::vector<std::string> found = numbers.classes(true), absent = numbers.classes(false);
  if (absent.empty()) return;
  if (found.size() > 1) {
    log(LogLevel::warning,
        fmt::format("{}: none of {} masks has a pixel of the classes {}, but some have 255, which means no class. If "
                    "255 is a class, write it as a number below {}",
                    records.name, numbers.count(), some_of(absent), records.mask_classes));
    return;
  }
  const std::string alone = found.empty()
                                ? "no pixel of the masks has a class"
                                : fmt::format("all pixels of the masks with a class are of class {}", found[0]);
  const std::string text = fmt::format(
      "{}: {}; 255 means no class and does not count. Write the classes as the numbers 0 to {}, such as 1 "
      "instead of 255",
      records.name, alone, records.mask_classes - 1);
  CONCORD_CHECK(may_be_one_class, FormatError, "{}", text);
  log(LogLevel::warning, text);
}

}  // namespace concord::data
