// concord predict --sheet: a picture of pictures, with their classes.
#include <fmt/format.h>

#include "cli/pictures.hpp"
#include "cli/process.hpp"

using namespace concord;
using namespace concord::test;

namespace {

constexpr std::int64_t kSide = 28, kFactor = 4;  // pictures of this side are enlarged so many times
constexpr std::int64_t kMargin = 8 + (128 - kSide * kFactor) / 2;
constexpr std::int64_t kCellWidth = 144, kCellHeight = 8 + 128 + 4 + 2 * 18;

data::Image read_sheet(const std::filesystem::path& file) {
  const std::string bytes = content_of(file);
  data::Image image;
  data::decode_image(std::as_bytes(std::span(bytes.data(), bytes.size())), 3, image);
  return image;
}

std::uint8_t red_at(const data::Image& image, std::int64_t y, std::int64_t x) { return image.row(y)[3 * x]; }

/// Black pixels of the two lines below a picture.
std::int64_t ink_below(const data::Image& sheet, std::int64_t row, std::int64_t column, std::int64_t line) {
  std::int64_t ink = 0;
  for (std::int64_t y = 0; y < 14; ++y) {
    for (std::int64_t x = 0; x < kCellWidth; ++x) {
      ink += red_at(sheet, row * kCellHeight + 8 + 128 + 4 + 18 * line + y, column * kCellWidth + x) == 0 ? 1 : 0;
    }
  }
  return ink;
}

}  // namespace

TEST_CASE("a sheet shows pictures, their classes and probabilities", "[cli][own_data]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  for (const int i : {0, 1, 2, 3}) {
    write_picture(folder, fmt::format("data/a long name of a class {}/{}.png", i % 2, i), kSide, kSide, 1, i);
  }
  const std::string data = "folder:" + (folder / "data").string(), weights = (folder / "w.safetensors").string();
  const Arguments device{"--device", cheap_device()};
  REQUIRE(run_command(with({"train", "lenet", "--data", data, "--batch", "4", "--validate", "none", "--quiet", "--out",
                            weights},
                           device))
              .code == 0);
  write_file(folder / "broken.png", "no picture");
  const std::filesystem::path sheet = folder / "sheet.png";
  const std::string first = (folder / "data/a long name of a class 0/0.png").string();
  const std::string second = (folder / "data/a long name of a class 1/1.png").string();
  const Ended ended = run_command(
      with({"predict", weights, first, second, (folder / "broken.png").string(), "--sheet", sheet.string()}, device));
  CHECK(ended.code == 1);  // of the one that cannot be read
  CHECK_THAT(ended.err, test::contains("the sheet of 3 pictures is " + sheet.string()));
  const data::Image image = read_sheet(sheet);
  CHECK(image.width == 2 * kCellWidth);
  REQUIRE(image.height == 2 * kCellHeight + 8);
  for (const int i : {0, 1}) {
    const data::Image picture = make_picture(kSide, kSide, 1, i);
    std::int64_t wrong = 0;
    for (std::int64_t y = 0; y < kSide * kFactor; ++y) {
      for (std::int64_t x = 0; x < kSide * kFactor; ++x) {
        const std::uint8_t expected = picture.row(y / kFactor)[x / kFactor];
        wrong += red_at(image, y + kMargin, x + kMargin + i * kCellWidth) == expected ? 0 : 1;
      }
    }
    CHECK(wrong == 0);
    CHECK(ink_below(image, 0, i, 0) > 100);  // the class
    CHECK(ink_below(image, 0, i, 1) > 60);   // the probability
  }
  CHECK(red_at(image, kCellHeight + 72, 72) == 190);  // what could not be read is grey
  CHECK(ink_below(image, 1, 0, 0) > 100);

  // Samples of a data set, all in one row of three or fewer.
  const Ended samples =
      run_command(with({"predict", weights, "--data", data, "--split", "train", "--sheet", sheet.string()}, device));
  INFO(samples.err);
  CHECK(samples.code == 0);
  CHECK(read_sheet(sheet).height == 2 * kCellHeight + 8);
  check_refusal(with({"predict", weights, first, "--out", sheet.string(), "--sheet", sheet.string()}, device), 2,
                {"--out and --sheet would both write"});
  write_file(folder / "t.csv", "x,y\n1,0\n2,1\n3,0\n");
  const std::string table = (folder / "t.safetensors").string(), csv = "csv:" + (folder / "t.csv").string();
  REQUIRE(
      run_command(with({"train", "mlp:width=4", "--data", csv + ",label=y", "--quiet", "--out", table}, device)).code ==
      0);
  check_refusal(with({"predict", table, "--data", csv, "--sheet", sheet.string()}, device), 2,
                {"--sheet shows pictures", "was trained on a table"});
}
