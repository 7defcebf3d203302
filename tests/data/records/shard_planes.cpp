// Arrays of planes in shards: raw images without a format of their own.
#include "concord/data/image/image_samples.hpp"
#include "concord/data/records/array_file.hpp"
#include "data/records/tar_files.hpp"

using namespace concord;
using namespace concord::test;

TEST_CASE("arrays of planes in a shard are raw images that are read without a copy", "[data]") {
  const TemporaryFolder folder;
  std::string pixels;
  for (int i = 0; i < 3 * 4 * 5; ++i) pixels += static_cast<char>(i * 3);
  const std::string head = data::array_head({3, 4, 5});
  CHECK(head.size() == data::kArrayHeadBytes);
  CHECK_THAT(head, test::contains("{'descr': '|u1', 'fortran_order': False, 'shape': (3, 4, 5), }"));
  const auto sample = [](const std::string& key, std::string content) {
    return std::vector<TarFile>{{key + ".planes.npy", std::move(content)}, {key + ".cls", "1"}};
  };
  std::vector<TarFile> files = sample("a", head + pixels);
  for (const TarFile& file : sample("b", data::array_head({1, 12, 5}) + pixels)) files.push_back(file);
  for (const TarFile& file : sample("c", std::string(data::kArrayHeadBytes, ' ') + pixels)) files.push_back(file);
  const auto records = open_tar_of(folder, tar_of(files));
  REQUIRE(records->size() == 3);
  std::vector<std::byte> scratch;
  const data::Record record = records->read(0, scratch);
  REQUIRE(record.raw);
  CHECK((record.raw->channels == 3 && record.raw->height == 4 && record.raw->width == 5));
  CHECK(text_of(record.bytes) == pixels);
  std::vector<std::byte> planes(pixels.size());
  CHECK(records->read_planes(0, {3, 4, 5}, planes));
  CHECK(text_of(planes) == pixels);
  CHECK_FALSE(records->read_planes(0, {3, 5, 4}, planes));  // other sizes
  CHECK_FALSE(records->read_planes(1, {3, 4, 5}, planes));
  CHECK_FALSE(records->read_planes(2, {3, 4, 5}, planes));  // no array
  CHECK_FALSE(records->read_planes(0, {3, 4, 4}, std::span(planes).first(48)));
  // As samples: as they are, cut and mirrored.
  const auto bytes_of_sample = [&](const data::ImageTransform& transform) {
    std::vector<std::byte> image(static_cast<std::size_t>(3 * transform.height * transform.width)), label(4);
    const std::vector<std::span<std::byte>> columns{image, label};
    data::images(records, transform)->read(0, columns, {});
    return text_of(image);
  };
  data::ImageTransform transform{.height = 4, .width = 5, .resize = 4};
  CHECK(bytes_of_sample(transform) == pixels);
  transform.augmentation.flip = 1;
  CHECK(bytes_of_sample(transform)[0] == pixels[4]);
  transform.augmentation.flip = 0;
  transform.width = transform.resize = 3;
  CHECK(bytes_of_sample(transform)[0] == pixels[1]);
  // A shard that was cut off meanwhile is no crash.
  std::filesystem::resize_file(folder / "s.tar", 700);
  CHECK_THROWS_AS(records->read_planes(0, {3, 4, 5}, planes), FormatError);
}

TEST_CASE("arrays of other types, orders and ranks are refused by name", "[data]") {
  const std::string head = data::array_head({3, 4, 5});
  const auto refused = [&](const std::string& from, const std::string& to) {
    std::string other = head;
    other.replace(other.find(from), from.size(), to);
    return message_of<FormatError>([&] { (void)data::read_array_head(bytes_in(other)); });
  };
  for (const auto& [from, to] : {std::pair{"|u1", "<f4"}, {"False", "True "}, {"3, 4", "3; 4"}, {"5), }", "5, 6)"}}) {
    CHECK_THAT(refused(from, to), test::contains("not u8 [channels, rows, columns]"));
  }
  CHECK_THROWS_AS(data::read_array_head(bytes_in(std::string_view(head).substr(0, 90))), FormatError);
  CHECK_FALSE(data::read_array_head(bytes_in("P6\n1 1\n255\nabc")).has_value());
  CHECK_FALSE(data::read_array_head({}).has_value());
}
