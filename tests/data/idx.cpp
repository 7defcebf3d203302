// IDX files: what is read from whole ones, and the sentence for every kind of damage.
#include <zlib.h>

#include <cstring>

#include "concord/data/files.hpp"
#include "files.hpp"

using namespace concord;
using namespace concord::test;

namespace {

std::string big_endian(std::uint32_t value) {
  std::string text(4, '\0');
  for (int i = 0; i < 4; ++i) text[static_cast<std::size_t>(i)] = static_cast<char>(value >> (24 - 8 * i));
  return text;
}

std::string idx_file(unsigned char type, std::initializer_list<std::uint32_t> dims, const std::string& values) {
  std::string text{'\0', '\0', static_cast<char>(type), static_cast<char>(dims.size())};
  for (const std::uint32_t dim : dims) text += big_endian(dim);
  return text + values;
}

std::string gzipped(const std::string& content) {
  std::string result(compressBound(content.size()) + 64, '\0');
  z_stream stream{};
  deflateInit2(&stream, 9, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY);
  std::string input = content;
  stream.next_in = reinterpret_cast<Bytef*>(input.data());
  stream.avail_in = static_cast<uInt>(input.size());
  stream.next_out = reinterpret_cast<Bytef*>(result.data());
  stream.avail_out = static_cast<uInt>(result.size());
  deflate(&stream, Z_FINISH);
  result.resize(stream.total_out);
  deflateEnd(&stream);
  return result;
}

// Three images of 2x2, labels 0, 2, 1.
const std::string kImages = idx_file(0x08, {3, 2, 2}, std::string("\0\1\2\3\4\5\6\7\10\11\12\13", 12));
const std::string kLabels = idx_file(0x08, {3}, std::string("\0\2\1", 3));

Dataset read(const std::string& images, const std::string& labels, int classes = 0, int first_label = 0) {
  static const TemporaryFolder folder;  // one for all the damaged files
  write_file(folder / "images", images);
  write_file(folder / "labels", labels);
  return data::idx(folder / "images", folder / "labels", classes, first_label);
}

std::string refusal(const std::string& images, const std::string& labels, int classes = 0) {
  return message_of<FormatError>([&] { (void)read(images, labels, classes); });
}

}  // namespace

TEST_CASE("idx reads images and labels, plain and compressed", "[data]") {
  const std::string images = GENERATE(as<std::string>{}, kImages, gzipped(kImages));
  const std::string labels = GENERATE(as<std::string>{}, kLabels, gzipped(kLabels));
  const Dataset dataset = read(images, labels);
  CHECK(dataset.features.spec() == TensorSpec{DType::u8, {3, 1, 2, 2}});
  CHECK(dataset.feature_spec() == TensorSpec{DType::u8, {1, 2, 2}});
  CHECK(dataset.label_spec() == TensorSpec{DType::i32, {}});
  CHECK(dataset.bytes() == 12 + 12);
  CHECK(dataset.classes == 3);
  for (std::size_t i = 0; i < 12; ++i) CHECK(dataset.features.values<std::uint8_t>()[i] == i);
  const auto classes = dataset.labels.values<std::int32_t>();
  CHECK(std::vector<std::int32_t>(classes.begin(), classes.end()) == std::vector<std::int32_t>{0, 2, 1});
}

TEST_CASE("idx reads big-endian floats and integers, other ranks and shifted labels", "[data]") {
  const float value = -1.5f;
  std::uint32_t bits = 0;
  std::memcpy(&bits, &value, 4);
  const std::string images = idx_file(0x0d, {2, 1}, big_endian(bits) + big_endian(0));
  const Dataset dataset = read(images, idx_file(0x0c, {2}, big_endian(5) + big_endian(6)), 2, 5);
  CHECK(dataset.features.spec() == TensorSpec{DType::f32, {2, 1}});
  CHECK(dataset.features.values<float>()[0] == -1.5f);
  CHECK(dataset.labels.values<std::int32_t>()[0] == 0);
  CHECK(dataset.labels.values<std::int32_t>()[1] == 1);
}

TEST_CASE("idx refuses a file cut at any byte", "[data]") {
  const bool compressed = GENERATE(false, true);
  const std::string images = compressed ? gzipped(kImages) : kImages;
  const std::string labels = compressed ? gzipped(kLabels) : kLabels;
  for (std::size_t bytes = 0; bytes < images.size(); ++bytes) {
    INFO("images cut after " << bytes);
    CHECK(contains(refusal(images.substr(0, bytes), labels), "images, byte "));
  }
  for (std::size_t bytes = 0; bytes < labels.size(); ++bytes) {
    INFO("labels cut after " << bytes);
    CHECK(contains(refusal(images, labels.substr(0, bytes)), "labels, byte "));
  }
}

TEST_CASE("idx never crashes on a damaged byte", "[data]") {
  const std::string whole = GENERATE(as<std::string>{}, kImages, gzipped(kImages));
  for (std::size_t at = 0; at < whole.size(); ++at) {
    for (const int change : {0x01, 0x80, 0xff}) {
      std::string damaged = whole;
      damaged[at] = static_cast<char>(damaged[at] ^ change);
      try {
        (void)read(damaged, kLabels);  // a changed pixel is not damage that a reader can see
      } catch (const FormatError& error) {
        CHECK(contains(error.what(), ", byte "));
      }
    }
  }
}

TEST_CASE("idx names the field and the byte of what is wrong", "[data]") {
  const std::string pixels(12, 'x');
  CHECK(contains(refusal("", kLabels), "byte 0: magic number: the file ends after 0 of 4 bytes"));
  CHECK(contains(refusal("garbage-garbage", kLabels), "byte 0: magic number: 0x67617262 does not begin"));
  CHECK(contains(refusal(idx_file(0x0e, {3, 2, 2}, pixels), kLabels), "element type: 0x0e (double)"));
  CHECK(contains(refusal(idx_file(0x33, {3, 2, 2}, pixels), kLabels), "element type: 0x33"));
  CHECK(contains(refusal(idx_file(0x08, {}, pixels), kLabels), "rank: 0 dimensions"));
  CHECK(contains(refusal(idx_file(0x08, {1, 1, 1, 1, 1, 1, 1, 1, 1}, "x"), kLabels), "rank: 9 dimensions"));
  CHECK(contains(refusal(idx_file(0x08, {3, 0, 2}, ""), kLabels), "byte 8: dimension 1: is 0"));
  CHECK(contains(refusal(idx_file(0x08, {3, 2, 3}, pixels), kLabels),
                 "byte 16: values: the header declares 18 bytes, but the file has 12 more"));
  CHECK(contains(refusal(kImages + "y", kLabels), "byte 28: end of file: there is more data"));
  CHECK(contains(refusal(kImages, idx_file(0x08, {2}, "ab")), "labels, byte 4: dimension 0: 2 labels for 3 images"));
  CHECK(contains(refusal(kImages, idx_file(0x08, {3, 1}, "abc")), "labels must have one dimension"));
  CHECK(contains(refusal(kImages, kLabels, 2), "labels, byte 9: label 1: 2 is outside [0, 2)"));
  CHECK(contains(refusal(kImages, idx_file(0x0c, {3}, std::string(12, '\xff'))), "label 0: -1 is outside"));
}

TEST_CASE("idx takes no memory on the word of a header", "[data]") {
  const std::initializer_list<std::uint32_t> huge = {0xffffffff, 0xffff, 0xfff};
  CHECK(contains(refusal(idx_file(0x08, huge, "x"), kLabels), "byte 16: values: "));
  CHECK(contains(refusal(gzipped(idx_file(0x08, huge, "x")), kLabels), "byte 16 of the decompressed data: values: "));
  CHECK(contains(refusal(idx_file(0x08, {~0u, ~0u, ~0u, ~0u}, "x"), kLabels), "the dimensions is too large"));
}

TEST_CASE("idx sees damage inside and after compressed data", "[data]") {
  std::string wrong_sum = gzipped(kImages);
  wrong_sum[wrong_sum.size() - 6] ^= 1;
  CHECK(contains(refusal(wrong_sum, kLabels), "gzip: incorrect data check"));
  CHECK(contains(refusal(gzipped(kImages) + "rest", kLabels), "gzip: incorrect header check"));
  CHECK(contains(refusal(gzipped(kImages + "y"), kLabels), "there is more data"));
  // Two joined members are one file.
  CHECK(read(gzipped(kImages.substr(0, 9)) + gzipped(kImages.substr(9)), kLabels).size() == 3);
  // Zeros shrink a thousandfold: more than is trusted at sight, and right all the same.
  CHECK(read(gzipped(idx_file(0x08, {3, 512, 512}, std::string(3 * 512 * 512, '\0'))), kLabels).size() == 3);
}

TEST_CASE("idx says when a file is missing or a folder", "[data]") {
  const TemporaryFolder folder;
  CHECK(contains(message_of<IoError>([&] { (void)data::idx(folder / "none", folder / "none"); }), "no such file"));
  CHECK(contains(message_of<IoError>([&] { (void)data::idx(folder.path(), folder.path()); }), "not a regular file"));
}
