// .npz files: stored and deflated arrays are read, damage is an error with its place, and no size is believed.
#include "concord/io/npz.hpp"

#include "core/thrown.hpp"
#include "io/zip_file.hpp"

using namespace concord;
using namespace concord::test;

namespace {

std::vector<ZipEntry> npz_entries(const TemporaryFolder& folder) {
  std::vector<std::int32_t> numbers(1000);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<std::int32_t>(i / 10);
  return {{"x.npy", npy_content(folder, Tensor::of<float>(Shape{2, 2}, std::vector<float>{1, 2, 3, 4}))},
          {"notes.txt", "no array"},
          {"../y.npy", npy_content(folder, Tensor::of<std::int32_t>(Shape{1000}, numbers)), true}};
}

}  // namespace

TEST_CASE("stored and deflated arrays of an archive are read", "[io]") {
  const TemporaryFolder folder;
  const auto path = folder / "a.npz";
  write_file(path, zip_content(npz_entries(folder)));
  const io::NpzFile file(path);
  CHECK(file.names() == std::vector<std::string>{"x", "../y"});
  CHECK(file.has("x"));
  CHECK_FALSE(file.has("notes.txt"));
  const Tensor x = file.read("x"), y = file.read("../y");
  CHECK(x.spec() == TensorSpec{DType::f32, Shape{2, 2}});
  CHECK(x.values<float>()[3] == 4);
  CHECK(y.spec() == TensorSpec{DType::i32, Shape{1000}});
  CHECK(y.values<std::int32_t>()[999] == 99);
  CHECK_THAT(thrown([&] { static_cast<void>(file.read("z")); }),
             contains("ArgumentError: ") && contains("z.npy: there is no such array. There are: x, ../y"));
}

TEST_CASE("a damaged archive of arrays is an error that says where", "[io]") {
  const TemporaryFolder folder;
  const auto path = folder / "a.npz";
  const auto error_of = [&](const std::string& content) {
    write_file(path, content);
    return thrown([&] {
      const io::NpzFile file(path);
      for (const std::string& name : file.names()) static_cast<void>(file.read(name));
    });
  };
  CHECK_THAT(error_of("no archive at all, but text"), contains("a.npz, byte 27: this is no .npz file"));
  CHECK_THAT(thrown([&] { const io::NpzFile file(folder / "none.npz"); }), contains("none.npz"));
  CHECK_THAT(error_of(zip_content({{"x.npy", "no array"}})), contains("a.npz, x.npy, byte 0: this is no .npy file"));
  CHECK_THAT(error_of(zip_content({{"x.npy", "1"}, {"x.npy", "1"}})), contains("x.npy, byte 0: the zip archive has this entry twice"));

  const std::string whole = zip_content(npz_entries(folder));
  REQUIRE(error_of(whole) == "nothing");
  std::string wrong = whole;  // a number of the first array: its sum finds that
  wrong[whole.find("x.npy") + 5 + 128] ^= 1;
  CHECK_THAT(error_of(wrong), contains("a.npz, x.npy, byte ") && contains("CRC"));
  std::string huge = whole;  // sizes in the directory
  const std::size_t entry = huge.find("PK\x01\x02");
  huge.replace(entry + 24, 4, "\xff\xff\xff\x7f");
  CHECK_THAT(error_of(huge), contains("x.npy, byte 0: its size of 2147483647 bytes is impossible"));
  std::string other = whole;
  other[entry + 10] = 12;
  CHECK_THAT(error_of(other), contains("x.npy, byte 0: "));

  for (std::size_t length = 0; length < whole.size(); length += 7) {
    const std::string message = error_of(whole.substr(0, length));
    CHECK(contains(message, "a.npz, byte "));
  }
  for (std::size_t i = 0; i < whole.size(); ++i) {  // every flip is read or refused, and nothing else
    std::string flipped = whole;
    flipped[i] = static_cast<char>(flipped[i] ^ (1 << i % 8));
    const std::string message = error_of(flipped);
    CHECK((message == "nothing" || contains(message, "a.npz, ")));
  }
}
