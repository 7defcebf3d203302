// The collections: search for files, names, EMNIST's transposed images, the real Fashion-MNIST where it is installed.
#include <cstdlib>

#include "concord/data/files.hpp"
#include "files.hpp"

using namespace concord;
using namespace concord::test;

namespace {

// Two images of 2x2 with the pixels 0 1 / 2 3 and 4 5 / 6 7.
const std::string kImages("\0\0\x08\3\0\0\0\2\0\0\0\2\0\0\0\2\0\1\2\3\4\5\6\7", 24);

std::string labels(char a, char b) { return std::string("\0\0\x08\1\0\0\0\2", 8) + a + b; }

}  // namespace

TEST_CASE("a missing data set is named with its files and its package", "[data]") {
  const TemporaryFolder folder;
  const std::string message = message_of<IoError>([&] { (void)data::fashion_mnist("train", folder.path()); });
  CHECK(contains(message, "fashion-mnist not found"));
  CHECK(contains(message, "train-images-idx3-ubyte, train-labels-idx1-ubyte"));
  CHECK(contains(message, folder.path().string()));
  CHECK(contains(message, "apt-get install dataset-fashion-mnist"));
  CHECK(contains(message_of<IoError>([&] { (void)data::cifar10("test", folder.path()); }), "cifar-10-batches-bin"));
  CHECK(contains(message_of<ArgumentError>([&] { (void)data::mnist("valid", folder.path()); }), "no split \"valid\""));
}

TEST_CASE("mnist is found by its file names", "[data]") {
  const TemporaryFolder folder;
  write_file(folder / "t10k-images-idx3-ubyte", kImages);
  write_file(folder / "t10k-labels-idx1-ubyte", labels(9, 0));
  const Dataset dataset = data::mnist("test", folder.path());
  CHECK(dataset.name == "mnist test");
  CHECK(dataset.classes == 10);
  CHECK(dataset.size() == 2);
  write_file(folder / "t10k-labels-idx1-ubyte", labels(10, 0));
  CHECK(contains(message_of<FormatError>([&] { (void)data::mnist("test", folder.path()); }), "10 is outside [0, 10)"));
}

TEST_CASE("emnist puts images upright and letters to zero", "[data]") {
  const TemporaryFolder folder;
  write_file(folder / "emnist-letters-train-images-idx3-ubyte", kImages);
  write_file(folder / "emnist-letters-train-labels-idx1-ubyte", labels(1, 26));
  const Dataset upright = data::emnist("letters", "train", folder.path());
  const auto pixels = upright.features.values<std::uint8_t>();
  CHECK(std::vector<int>(pixels.begin(), pixels.end()) == std::vector<int>{0, 2, 1, 3, 4, 6, 5, 7});
  CHECK(upright.classes == 26);
  CHECK(upright.labels.values<std::int32_t>()[0] == 0);
  CHECK(upright.labels.values<std::int32_t>()[1] == 25);
  const Dataset stored = data::emnist("letters", "train", folder.path(), false);
  CHECK(stored.features.values<std::uint8_t>()[1] == 1);
  CHECK(contains(message_of<ArgumentError>([&] { (void)data::emnist("runes", "train", folder.path()); }), "balanced"));
}

TEST_CASE("the installed Fashion-MNIST is read whole", "[data]") {
  if (!std::filesystem::exists("/usr/share/datasets/fashion-mnist")) {
    WARN("skipped: dataset-fashion-mnist is not installed");
    return;
  }
  const Dataset test = data::fashion_mnist("test", "/usr/share/datasets/fashion-mnist");
  CHECK(test.features.spec() == TensorSpec{DType::u8, {10000, 1, 28, 28}});
  CHECK(test.class_names.at(9) == "Ankle boot");
  std::vector<int> count(10);
  for (const std::int32_t label : test.labels.values<std::int32_t>()) ++count.at(static_cast<std::size_t>(label));
  CHECK(count == std::vector<int>(10, 1000));
  std::uint64_t sum = 0;
  for (const std::uint8_t pixel : test.features.values<std::uint8_t>()) sum += pixel;
  CHECK(sum == 573469082);
}
