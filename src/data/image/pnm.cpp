// PNM: PGM and PPM, as text (P2, P3) and as bytes (P5, P6). Of several images in a file the first is read.
#include "concord/data/image/pnm.hpp"

#include <charconv>
#include <vector>

#include "concord/core/check.hpp"
#include "concord/core/text.hpp"

namespace concord::data {
namespace {

constexpr std::string_view kPnm = "PNM";

// Reads the words of a file: whole numbers between spaces and comments.
class PnmWords {
 public:
  PnmWords(FileBytes file, std::size_t at) : text_(text_of(file)), at_(at) {}

  std::uint32_t next(std::string_view what, std::uint32_t most) {
    for (bool comment = false; at_ < text_.size() && (comment || is_space(text_[at_]) || text_[at_] == '#'); ++at_) {
      comment = text_[at_] == '#' || (comment && text_[at_] != '\n' && text_[at_] != '\r');
    }
    if (at_ == text_.size()) fail_to_decode(kPnm, at_, fmt::format("cut off: {}", what));
    std::uint32_t number = 0;
    const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), number);
    if (error == std::errc::invalid_argument) fail_to_decode(kPnm, at_, fmt::format("{} is not a number", what));
    if (error != std::errc{} || number > most) fail_to_decode(kPnm, at_, fmt::format("{} is above {}", what, most));
    at_ = static_cast<std::size_t>(end - text_.data());
    return number;
  }
  [[nodiscard]] std::size_t at() const { return at_; }

 private:
  std::string_view text_;
  std::size_t at_;
};

struct PnmHead {
  std::int64_t height = 0, width = 0, channels = 0;
  std::uint32_t most = 255;  // what white is
  bool is_text = false;
  std::size_t pixels = 0;
};

PnmHead pnm_head(FileBytes file) {
  constexpr std::uint32_t kLargest = 0x7FFFFFFF;
  PnmHead head;
  const char kind = text_of(file)[1];
  head.channels = kind == '2' || kind == '5' ? 1 : 3;
  head.is_text = kind <= '3';
  PnmWords words(file, 2);
  head.width = words.next("the width", kLargest);
  head.height = words.next("the height", kLargest);
  head.most = words.next("the largest value", 65535);
  head.pixels = words.at();
  if (head.most == 0) fail_to_decode(kPnm, head.pixels, "the largest value is 0");
  if (!head.is_text) {
    if (head.pixels == file.size()) fail_to_decode(kPnm, head.pixels, "cut off: the pixels");
    if (!is_space(text_of(file)[head.pixels++])) fail_to_decode(kPnm, head.pixels - 1, "no space before the pixels");
  }
  return head;
}

// Of 16 bits the upper 8; else the nearest of 255 steps.
std::uint8_t pnm_byte(std::uint32_t value, std::uint32_t most) {
  if (most == 255) return static_cast<std::uint8_t>(value);
  if (most == 65535) return static_cast<std::uint8_t>(value >> 8);
  return static_cast<std::uint8_t>((value * 255 + most / 2) / most);
}

}  // namespace

bool is_pnm(FileBytes file) {
  const std::string_view text = text_of(file);
  return text.size() >= 3 && text[0] == 'P' && (text[1] == '2' || text[1] == '3' || text[1] == '5' || text[1] == '6') &&
         (is_space(text[2]) || text[2] == '#');
}

ImageInfo pnm_info(FileBytes file) {
  const PnmHead head = pnm_head(file);
  ImageInfo info{.format = ImageFormat::pnm, .channels = head.channels, .bits = head.most > 255 ? 16 : 8};
  set_stored_size(info, head.height, head.width);
  return info;
}

const std::uint8_t* stored_pixels(FileBytes file, const ImageInfo& info) {
  if (info.format != ImageFormat::pnm) return nullptr;
  const PnmHead head = pnm_head(file);
  const auto bytes = static_cast<std::size_t>(info.height * info.width * info.channels);
  if (head.is_text || head.most != 255 || file.size() - head.pixels < bytes) return nullptr;
  return reinterpret_cast<const std::uint8_t*>(file.data() + head.pixels);
}

void decode_pnm(FileBytes file, const ImageInfo& info, const Window& window, std::int64_t channels, Image& to) {
  const PnmHead head = pnm_head(file);
  const auto row_values = static_cast<std::size_t>(info.width * info.channels);
  const std::size_t values = row_values * static_cast<std::size_t>(info.height);
  const std::size_t each = head.is_text      ? 2
                           : head.most > 255 ? 2
                                             : 1;  // at least a digit and a space, but for the last
  const std::size_t left = file.size() - head.pixels + (head.is_text ? 1 : 0);
  if (values > left / each) fail_to_decode(kPnm, file.size(), "cut off: the pixels");

  to.resize(window.height, window.width, channels);
  if (!head.is_text && head.most == 255) {  // as they are
    const auto* const pixels = reinterpret_cast<const std::uint8_t*>(file.data() + head.pixels);
    for (std::int64_t y = 0; y < window.height; ++y) {
      take_pixels(pixels + static_cast<std::size_t>(window.y + y) * row_values, info.channels, window.x, window.width,
                  channels, to.row(y));
    }
    return;
  }
  std::vector<std::uint8_t> row(row_values);
  PnmWords words(file, head.pixels);
  for (std::int64_t y = 0; y < window.y + window.height; ++y) {
    if (!head.is_text && y < window.y) continue;
    const std::size_t at = head.pixels + static_cast<std::size_t>(y) * row_values * each;
    for (std::size_t i = 0; i < row_values; ++i) {
      std::uint32_t value = 0;
      if (head.is_text) {
        value = words.next("a value", head.most);
      } else {
        value = each == 2 ? u16_big(file, at + 2 * i) : u8_at(file, at + i);
        if (value > head.most) fail_to_decode(kPnm, at + each * i, fmt::format("a value is above {}", head.most));
      }
      row[i] = pnm_byte(value, head.most);
    }
    if (y >= window.y) take_pixels(row.data(), info.channels, window.x, window.width, channels, to.row(y - window.y));
  }
}

}  // namespace concord::data
