// PNG through libpng. Its errors leave it by longjmp, so between guard() and libpng there are only objects without
// destructors.
#include "concord/data/image/png.hpp"

#include <png.h>

#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstring>
#include <vector>

#include "concord/core/check.hpp"
#include "concord/data/image/exif.hpp"

namespace concord::data {
namespace {

constexpr std::string_view kPng = "PNG";
constexpr std::size_t kPngSignature = 8;

struct PngChunk {
  std::size_t at;  // of its length
  std::string_view type;
  FileBytes data;
};

// The chunk at `at`; one of the picture's data may be incomplete if `beginning` is enough.
PngChunk png_chunk(FileBytes file, std::size_t at, bool beginning) {
  if (file.size() - at < 8) fail_to_decode(kPng, file.size(), "cut off");
  const std::size_t length = u32_big(file, at);
  const std::string_view type = text_of(file.subspan(at + 4, 4));
  const std::size_t left = file.size() - at - 8;
  if (length > 0x7FFFFFFF) fail_to_decode(kPng, at, "a chunk with a length out of range");
  const bool whole = left >= 4 && length <= left - 4;
  if (!whole && !(beginning && type == "IDAT")) fail_to_decode(kPng, file.size(), "cut off");
  return {at, type, file.subspan(at + 8, std::min(length, left))};
}

struct PngHead {
  std::int64_t height = 0, width = 0;
  int bits = 8, colour = 0, interlace = 0, orientation = 1;
};

PngHead png_head(FileBytes file) {
  PngHead head;
  for (std::size_t at = kPngSignature;;) {
    const PngChunk chunk = png_chunk(file, at, true);
    if (at == kPngSignature) {
      if (chunk.type != "IHDR" || chunk.data.size() != 13)
        fail_to_decode(kPng, at, "the header is not the first chunk");
      // More than kMostPixels, also as a number with a sign.
      head.width = u32_big(chunk.data, 0), head.height = u32_big(chunk.data, 4);
      head.bits = static_cast<int>(u8_at(chunk.data, 8));
      head.colour = static_cast<int>(u8_at(chunk.data, 9));
      head.interlace = static_cast<int>(u8_at(chunk.data, 12));
    } else if (chunk.type == "acTL") {
      fail_to_decode(kPng, at, "an animation; single images are read");
    } else if (chunk.type == "eXIf") {
      head.orientation = exif_orientation(chunk.data);
    } else if (chunk.type == "IDAT") {
      return head;
    } else if (chunk.type == "IEND") {
      fail_to_decode(kPng, at, "no picture in the file");
    }
    at += chunk.data.size() + 12;
  }
}

// Sees that the file is whole, before memory is taken for its pixels.
void require_png_end(FileBytes file) {
  for (std::size_t at = kPngSignature;;) {
    const PngChunk chunk = png_chunk(file, at, false);
    if (chunk.type == "IEND") return;
    at += chunk.data.size() + 12;
  }
}

class PngReader {
 public:
  explicit PngReader(FileBytes file) : PngReader() {  // so the destructor runs, whatever fails
    file_ = file;
    object_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, this, leave_libpng, ignore_warning);
    if (object_ != nullptr) info_ = png_create_info_struct(object_);
    if (info_ == nullptr) throw OutOfMemory("PNG: not enough memory");
    guard([&] {
      png_set_read_fn(object_, this, take_bytes);
      png_set_user_limits(object_, 0x7FFFFFFF, 0x7FFFFFFF);  // the size was checked
      // Of the chunks that libpng knows, only what pixels depend on is read.
      png_set_keep_unknown_chunks(object_, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
    });
  }
  PngReader(const PngReader&) = delete;
  PngReader& operator=(const PngReader&) = delete;
  ~PngReader() { png_destroy_read_struct(&object_, &info_, nullptr); }

  void read(const ImageInfo& info, const Window& window, std::int64_t channels, Image& to) {
    guard([&] {
      png_read_info(object_, info_);
      if (info.as_numbers) {
        png_set_packing(object_);  // a byte for each
      } else {
        png_set_expand(object_);
        png_set_strip_16(object_);
        png_set_strip_alpha(object_);
      }
      passes_ = png_set_interlace_handling(object_);
      png_read_update_info(object_, info_);
      row_channels_ = png_get_channels(object_, info_);
      row_bytes_ = png_get_rowbytes(object_, info_);
      height_ = png_get_image_height(object_, info_);
      width_ = png_get_image_width(object_, info_);
    });
    const StoredSize stored = stored_size(info);
    const bool as_announced = height_ == stored.height && width_ == stored.width &&
                              (row_channels_ == 1 || row_channels_ == 3) &&
                              row_bytes_ == static_cast<std::size_t>(stored.width * row_channels_);
    if (!as_announced) fail_to_decode(kPng, kPngSignature, "two headers that differ");
    to.resize(window.height, window.width, channels);
    if (passes_ > 1) {
      read_passes(window, to);
    } else {
      read_rows(window, to);
    }
    if (window.y + window.height == height_) guard([&] { png_read_end(object_, nullptr); });
  }

 private:
  PngReader() = default;

  void read_rows(const Window& window, Image& to) {
    std::vector<std::uint8_t> row(row_bytes_);
    for (std::int64_t y = 0; y < window.y + window.height; ++y) {
      guard([&] { png_read_row(object_, row.data(), nullptr); });
      if (y >= window.y) {
        take_pixels(row.data(), row_channels_, window.x, window.width, to.channels, to.row(y - window.y));
      }
    }
  }
  void read_passes(const Window& window, Image& to) {
    std::vector<std::uint8_t> pixels(row_bytes_ * static_cast<std::size_t>(height_));
    std::vector<std::uint8_t*> rows;
    for (std::int64_t y = 0; y < height_; ++y) rows.push_back(&pixels[row_bytes_ * static_cast<std::size_t>(y)]);
    guard([&] { png_read_image(object_, rows.data()); });
    for (std::int64_t y = 0; y < window.height; ++y) {
      take_pixels(rows[static_cast<std::size_t>(window.y + y)], row_channels_, window.x, window.width, to.channels,
                  to.row(y));
    }
  }

  template <class Action>
  void guard(const Action& action) {
    if (setjmp(leave_) != 0) fail_to_decode(kPng, at_, message_.data());
    action();
  }
  static void leave_libpng(png_structp object, png_const_charp message) {
    auto* const reader = static_cast<PngReader*>(png_get_error_ptr(object));
    std::strncpy(reader->message_.data(), message, reader->message_.size() - 1);
    std::longjmp(reader->leave_, 1);
  }
  static void ignore_warning(png_structp, png_const_charp) {}
  static void take_bytes(png_structp object, png_bytep to, std::size_t bytes) {
    auto* const reader = static_cast<PngReader*>(png_get_io_ptr(object));
    if (reader->file_.size() - reader->at_ < bytes) png_error(object, "cut off");
    std::memcpy(to, reader->file_.data() + reader->at_, bytes);
    reader->at_ += bytes;
  }

  FileBytes file_;
  std::size_t at_ = 0;
  png_structp object_ = nullptr;
  png_infop info_ = nullptr;
  int passes_ = 1;
  std::int64_t row_channels_ = 0, height_ = 0, width_ = 0;
  std::size_t row_bytes_ = 0;
  std::array<char, 128> message_{};
  std::jmp_buf leave_;
};

}  // namespace

bool is_png(FileBytes file) { return begins_with(file, {"\x89PNG\r\n\x1A\n", kPngSignature}); }

ImageInfo png_info(FileBytes file) {
  const PngHead head = png_head(file);
  constexpr std::array kChannels{1, 0, 3, 3, 2, 0, 4};
  const auto colour = static_cast<std::size_t>(head.colour);
  if (colour >= kChannels.size() || kChannels[colour] == 0) {
    fail_to_decode(kPng, 25, fmt::format("an unknown kind of colour: {}", head.colour));
  }
  ImageInfo info{
      .format = ImageFormat::png, .channels = kChannels[colour], .bits = head.bits, .orientation = head.orientation};
  set_stored_size(info, head.height, head.width);
  return info;
}

void decode_png(FileBytes file, const ImageInfo& info, const Window& window, std::int64_t channels, Image& to) {
  require_png_end(file);
  // Deflate makes at most 1032 bytes of one; a row has a byte for its filter.
  const StoredSize stored = stored_size(info);
  const PngHead head = png_head(file);
  const std::int64_t samples = head.colour == 3 ? 1 : info.channels;
  const std::int64_t least = stored.height * (1 + (stored.width * samples * info.bits + 7) / 8);
  if (least / 1032 > static_cast<std::int64_t>(file.size())) fail_to_decode(kPng, file.size(), "cut off");
  PngReader(file).read(info, window, channels, to);
}

}  // namespace concord::data
