// PNG: files that libpng reads back, and grids.
#include "concord/io/png.hpp"

#include <png.h>

#include <cmath>

#include "concord_test.hpp"
#include "files.hpp"

using namespace concord;
using namespace concord::test;

namespace {

/// The pixels of a file, interleaved, as 8-bit numbers.
std::vector<std::uint8_t> read_png(const std::filesystem::path& path, bool colour, std::uint32_t& width) {
  png_image image = {};
  image.version = PNG_IMAGE_VERSION;
  REQUIRE(png_image_begin_read_from_file(&image, path.c_str()) != 0);
  CHECK(((image.format & PNG_FORMAT_FLAG_COLOR) != 0) == colour);
  image.format = colour ? PNG_FORMAT_RGB : PNG_FORMAT_GRAY;
  std::vector<std::uint8_t> pixels(PNG_IMAGE_SIZE(image));
  REQUIRE(png_image_finish_read(&image, nullptr, pixels.data(), 0, nullptr) != 0);
  width = image.width;
  return pixels;
}

using Bytes = std::vector<std::uint8_t>;

}  // namespace

TEST_CASE("a written picture reads back", "[io]") {
  const TemporaryFolder folder;
  const auto path = folder / "picture.png";
  std::uint32_t width = 0;
  io::write_png(path, Tensor::of<std::uint8_t>(Shape{3, 1, 2}, Bytes{1, 2, 3, 4, 5, 6}));
  CHECK(read_png(path, true, width) == Bytes{1, 3, 5, 2, 4, 6});
  io::write_png(path, Tensor::of<std::uint8_t>(Shape{1, 2, 2}, Bytes{0, 100, 200, 255}));
  CHECK(read_png(path, false, width) == Bytes{0, 100, 200, 255});
  CHECK(width == 2);
  CHECK_THROWS_AS(io::write_png(path, Tensor(DType::f32, Shape{1, 2, 2})), ShapeError);
  CHECK_THROWS_AS(io::write_png(path, Tensor(DType::u8, Shape{2, 2, 2})), ShapeError);
  CHECK_THROWS_AS(io::write_png(folder / "no" / "picture.png", Tensor(DType::u8, Shape{1, 2, 2})), IoError);
}

TEST_CASE("pictures are laid out in a grid", "[io]") {
  const Tensor pictures = Tensor::of<float>(Shape{3, 1, 1, 1}, std::vector<float>{0, 2, NAN});
  const Tensor grid = io::picture_grid(pictures, 2);
  REQUIRE(grid.shape() == Shape{1, 3, 3});
  const auto values = grid.values<std::uint8_t>();
  CHECK(Bytes(values.begin(), values.end()) == Bytes{0, 128, 255, 128, 128, 128, 0, 128, 128});
  CHECK(io::picture_grid(pictures, 9).shape() == Shape{1, 1, 5});
  CHECK_THROWS_AS(io::picture_grid(pictures, 0), ArgumentError);
  CHECK_THROWS_AS(io::picture_grid(Tensor(DType::f32, Shape{3, 2, 4, 4}), 2), ShapeError);
}
