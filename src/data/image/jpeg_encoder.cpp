// JPEG files are written through the API of libjpeg. Its errors leave it by longjmp, so between guard() and libjpeg
// there are only objects without destructors.
#include <array>
#include <new>
#include <string>
#include <utility>

#include "concord/core/check.hpp"
#include "concord/data/image/codec.hpp"
#include "concord/data/image/jpeg_errors.hpp"

namespace concord::data {
namespace {

class JpegWriter {
 public:
  [[nodiscard]] static std::string write(const Image& image, int quality) {
    JpegWriter writer;
    writer.write_all(image, quality);
    return std::move(writer.file_);
  }

  JpegWriter(const JpegWriter&) = delete;
  JpegWriter& operator=(const JpegWriter&) = delete;
  ~JpegWriter() { jpeg_destroy_compress(&object_); }

 private:
  struct Destination {
    jpeg_destination_mgr manager;  // the first member: libjpeg's pointer to it is one to the whole
    JpegWriter* writer;
  };

  JpegWriter() { errors_.set(object_.err); }

  void write_all(const Image& image, int quality) {
    guard([&] {
      jpeg_create_compress(&object_);
      destination_.manager.init_destination = empty_buffer;
      destination_.manager.empty_output_buffer = append_buffer;
      destination_.manager.term_destination = append_rest;
      destination_.writer = this;
      object_.dest = &destination_.manager;
      object_.image_width = static_cast<JDIMENSION>(image.width);
      object_.image_height = static_cast<JDIMENSION>(image.height);
      object_.input_components = static_cast<int>(image.channels);
      object_.in_color_space = image.channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
      jpeg_set_defaults(&object_);
      jpeg_set_quality(&object_, quality, TRUE);
      jpeg_start_compress(&object_, TRUE);
      while (object_.next_scanline < object_.image_height) {
        JSAMPROW row = const_cast<std::uint8_t*>(image.row(object_.next_scanline));
        jpeg_write_scanlines(&object_, &row, 1);
      }
      jpeg_finish_compress(&object_);
    });
  }

  template <class Action>
  void guard(const Action& action) {
    if (setjmp(errors_.leave) != 0) throw OutOfMemory("cannot encode an image as JPEG: not enough memory");
    action();
  }

  static JpegWriter& writer_of(j_compress_ptr object) { return *reinterpret_cast<Destination*>(object->dest)->writer; }
  static void empty_buffer(j_compress_ptr object) {
    object->dest->next_output_byte = writer_of(object).buffer_.data();
    object->dest->free_in_buffer = writer_of(object).buffer_.size();
  }
  static boolean append_buffer(j_compress_ptr object) {
    writer_of(object).append(writer_of(object).buffer_.size());
    empty_buffer(object);
    return TRUE;
  }
  static void append_rest(j_compress_ptr object) {
    writer_of(object).append(writer_of(object).buffer_.size() - object->dest->free_in_buffer);
  }
  void append(std::size_t bytes) {
    bool appended = true;
    try {
      file_.append(reinterpret_cast<const char*>(buffer_.data()), bytes);
    } catch (const std::bad_alloc&) {
      appended = false;
    }
    if (!appended) JpegErrors::leave_libjpeg(reinterpret_cast<j_common_ptr>(&object_));
  }

  jpeg_compress_struct object_{};
  Destination destination_{};
  JpegErrors errors_{};
  std::array<JOCTET, 16384> buffer_;
  std::string file_;
};

}  // namespace

std::string encode_jpeg(const Image& image, int quality) {
  constexpr std::int64_t kLongest = 65500;  // libjpeg's own limit
  const bool is_image = image.height >= 1 && image.height <= kLongest && image.width >= 1 && image.width <= kLongest &&
                        (image.channels == 1 || image.channels == 3) &&
                        image.pixels.size() == image.row_bytes() * static_cast<std::size_t>(image.height) &&
                        quality >= 1 && quality <= 100;
  CONCORD_CHECK(is_image, ArgumentError, "an image of {}x{} with {} channels cannot be a JPEG of quality {}",
                image.width, image.height, image.channels, quality);
  return JpegWriter::write(image, quality);
}

}  // namespace concord::data
