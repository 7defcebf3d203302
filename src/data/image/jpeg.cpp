// JPEG through the API of libjpeg. Its errors leave it by longjmp, so between guard() and libjpeg there are only
// objects without destructors.
#include "concord/data/image/jpeg.hpp"

#include <algorithm>
#include <vector>

#include "concord/core/check.hpp"
#include "concord/data/image/exif.hpp"
#include "concord/data/image/jpeg_errors.hpp"

// libjpeg-turbo decodes parts of an image, in these versions without mistakes.
#if defined(LIBJPEG_TURBO_VERSION_NUMBER) && LIBJPEG_TURBO_VERSION_NUMBER >= 2001000
#define CONCORD_JPEG_PARTS 1
#else
#define CONCORD_JPEG_PARTS 0
#endif

namespace concord::data {
namespace {

constexpr std::string_view kJpeg = "JPEG";

// --- The frame

// What is before the first scan: ITU-T T.81, annex B.
struct JpegFrame {
  std::int64_t height = 0, width = 0;
  int precision = 8, components = 0, orientation = 1;
  bool huffman = true;
};

JpegFrame jpeg_frame(FileBytes file) {
  JpegFrame frame;
  std::size_t at = 2;
  const auto require = [&](std::size_t bytes) {
    if (file.size() - at < bytes) fail_to_decode(kJpeg, file.size(), "cut off within the header");
  };
  for (;;) {
    do {  // libjpeg, too, goes over bytes between segments
      require(2);
    } while (u8_at(file, at++) != 0xFF || u8_at(file, at) == 0xFF || u8_at(file, at) == 0);
    const std::size_t marker_at = at - 1;
    const std::uint32_t marker = u8_at(file, at++);
    if (marker == 0x01 || (marker >= 0xD0 && marker <= 0xD7)) continue;
    if (marker >= 0xD8 && marker <= 0xDA) fail_to_decode(kJpeg, marker_at, "no frame before the first scan");
    require(2);
    const std::size_t length = u16_big(file, at);
    if (length < 2) fail_to_decode(kJpeg, marker_at, "a segment without a length");
    require(length);
    const FileBytes segment = file.subspan(at + 2, length - 2);
    const bool is_frame = marker >= 0xC0 && marker <= 0xCF && marker != 0xC4 && marker != 0xC8 && marker != 0xCC;
    if (marker == 0xE1 && begins_with(segment, {"Exif\0", 5}) && segment.size() > 6 && frame.orientation == 1) {
      frame.orientation = exif_orientation(segment.subspan(6));
    }
    if (is_frame) {
      if (segment.size() < 6) fail_to_decode(kJpeg, marker_at, "a frame without sizes");
      frame.precision = static_cast<int>(u8_at(segment, 0));
      frame.height = u16_big(segment, 1), frame.width = u16_big(segment, 3);
      frame.components = static_cast<int>(u8_at(segment, 5));
      if (marker == 0xC3 || marker >= 0xCB || (marker >= 0xC5 && marker <= 0xC7)) {
        fail_to_decode(kJpeg, marker_at, "lossless and hierarchical JPEG are not read");
      }
      if (frame.precision != 8) {
        fail_to_decode(kJpeg, marker_at, fmt::format("{} bits a channel; 8 are read", frame.precision));
      }
      if (frame.components != 1 && frame.components != 3 && frame.components != 4) {
        fail_to_decode(kJpeg, marker_at, fmt::format("{} channels; 1, 3 and 4 are read", frame.components));
      }
      frame.huffman = marker <= 0xC2;
      return frame;
    }
    at += length;
  }
}

// --- libjpeg

class JpegReader {
 public:
  explicit JpegReader(FileBytes file) : JpegReader() {  // so the destructor runs, whatever fails
    file_ = file;
    guard([&] { jpeg_create_decompress(&object_); });
    progress_.progress_monitor = limit_scans;
    object_.progress = &progress_;
  }
  JpegReader(const JpegReader&) = delete;
  JpegReader& operator=(const JpegReader&) = delete;
  ~JpegReader() { jpeg_destroy_decompress(&object_); }

  Window read(const ImageInfo& info, Window window, std::int64_t channels, Image& to) {
    guard([&] {
      jpeg_mem_src(&object_, reinterpret_cast<const unsigned char*>(file_.data()),
                   static_cast<unsigned long>(file_.size()));
      jpeg_read_header(&object_, TRUE);
    });
    const StoredSize stored = stored_size(info);
    if (object_.image_width != stored.width || object_.image_height != stored.height) {
      fail_to_decode(kJpeg, 0, "two frames of different sizes");
    }
    const bool inks = object_.num_components == 4;
    object_.out_color_space = inks ? JCS_CMYK : channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    object_.do_block_smoothing = FALSE;  // it would depend on the window
    guard([&] { jpeg_start_decompress(&object_); });
    window = crop(window, stored.width);
    to.resize(window.height, window.width, channels);
    if (inks) {
      read_inks(window, channels, to);
    } else {
      guard([&] {
        skip_rows(window.y);
        while (object_.output_scanline < window.y + window.height) {
          JSAMPROW row = to.row(object_.output_scanline - window.y);
          jpeg_read_scanlines(&object_, &row, 1);
        }
      });
    }
    finish();
    return window;
  }

 private:
  JpegReader() { errors_.set(object_.err); }

  template <class Action>
  void guard(const Action& action) {
    if (setjmp(errors_.leave) != 0) fail();
    action();
  }
  [[noreturn]] void fail() {
    if (errors_.manager.msg_code == JERR_OUT_OF_MEMORY) throw OutOfMemory("JPEG: not enough memory");
    const jpeg_source_mgr* source = object_.src;
    const bool cut_off = errors_.manager.msg_code == JWRN_JPEG_EOF;
    const std::size_t left = source == nullptr || cut_off ? 0 : source->bytes_in_buffer;
    char message[JMSG_LENGTH_MAX];
    errors_.manager.format_message(reinterpret_cast<j_common_ptr>(&object_), message);
    fail_to_decode(kJpeg, file_.size() - std::min(left, file_.size()),
                   cut_off ? "cut off" : static_cast<const char*>(message));
  }

  // A file of many scans takes as long as so many files: those of the field have up to about 20.
  static void limit_scans(j_common_ptr object) {
    constexpr int kMostScans = 200;
    const auto* reader = reinterpret_cast<j_decompress_ptr>(object);
    if (reader->input_scan_number <= kMostScans) return;
    object->err->msg_code = JERR_BAD_PROGRESSION;
    JpegErrors::leave_libjpeg(object);
  }

  // Chooses what is decoded of each row.
  Window crop(Window window, std::int64_t stored_width) {
#if CONCORD_JPEG_PARTS
    // Upsampled chroma of a pixel depends on that of two pixels to either side.
    constexpr std::int64_t kReach = 2;
    const std::int64_t end = std::min(window.x + window.width + kReach, stored_width);
    auto x = static_cast<JDIMENSION>(std::max(window.x - kReach, std::int64_t{0}));
    auto width = static_cast<JDIMENSION>(end - x);
    if (width < stored_width) guard([&] { jpeg_crop_scanline(&object_, &x, &width); });
    window.x = x, window.width = width;
    return window;
#else
    return {0, 0, stored_width, window.y + window.height};
#endif
  }

  void skip_rows([[maybe_unused]] std::int64_t rows) {
#if CONCORD_JPEG_PARTS
    if (rows > 0) jpeg_skip_scanlines(&object_, static_cast<JDIMENSION>(rows));
#endif
  }

  // Of four inks, which Adobe's programs store inverted. As PIL converts them.
  void read_inks(const Window& window, std::int64_t channels, Image& to) {
    std::vector<std::uint8_t> inks(static_cast<std::size_t>(4 * window.width));
    std::vector<std::uint8_t> colours(static_cast<std::size_t>(3 * window.width));
    const std::uint8_t inverted = object_.saw_Adobe_marker != 0 ? 0 : 255;
    for (std::int64_t y = 0; y < window.height; ++y) {
      guard([&] {
        if (y == 0) skip_rows(window.y);
        JSAMPROW row = inks.data();
        jpeg_read_scanlines(&object_, &row, 1);
      });
      for (std::size_t x = 0; x < static_cast<std::size_t>(window.width); ++x) {
        const std::uint32_t light = inks[4 * x + 3] ^ inverted;
        for (std::size_t c = 0; c < 3; ++c) {
          const std::uint32_t product = (inks[4 * x + c] ^ inverted) * light + 128;
          colours[3 * x + c] = static_cast<std::uint8_t>((product + (product >> 8)) >> 8);
        }
      }
      take_pixels(colours.data(), 3, 0, window.width, channels, to.row(y));
    }
  }

  // Sees that the end of the file is there, without decoding up to it.
  void finish() {
    if (object_.output_scanline == object_.output_height) {
      guard([&] { jpeg_finish_decompress(&object_); });
      return;
    }
    if (object_.unread_marker != 0 || jpeg_has_multiple_scans(&object_) != 0) return;
    const FileBytes rest = file_.last(std::min(file_.size(), object_.src->bytes_in_buffer));
    if (text_of(rest).find("\xFF\xD9") == std::string_view::npos) fail_to_decode(kJpeg, file_.size(), "cut off");
  }

  FileBytes file_;
  jpeg_decompress_struct object_{};
  jpeg_progress_mgr progress_{};
  JpegErrors errors_{};
};

}  // namespace

bool is_jpeg(FileBytes file) { return begins_with(file, "\xFF\xD8\xFF"); }

ImageInfo jpeg_info(FileBytes file) {
  const JpegFrame frame = jpeg_frame(file);
  ImageInfo info{.format = ImageFormat::jpeg, .channels = frame.components, .orientation = frame.orientation};
  set_stored_size(info, frame.height, frame.width);
  return info;
}

Window decode_jpeg(FileBytes file, const ImageInfo& info, const Window& window, std::int64_t channels, Image& to) {
  // Every block has its first coefficient, and that at least one bit.
  const std::int64_t blocks = ((info.height + 7) / 8) * ((info.width + 7) / 8);
  if (jpeg_frame(file).huffman && static_cast<std::int64_t>(file.size()) < blocks / 8) {
    fail_to_decode(kJpeg, file.size(), "cut off");
  }
  return JpegReader(file).read(info, window, channels, to);
}

}  // namespace concord::data
