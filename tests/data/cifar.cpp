// CIFAR binaries: files made here in the published form, whole and damaged.
#include "concord/data/files.hpp"
#include "files.hpp"

using namespace concord;
using namespace concord::test;

namespace {

// A record whose 3072 bytes all are `pixel`.
std::string record(const std::string& labels, char pixel) { return labels + std::string(3072, pixel); }

}  // namespace

TEST_CASE("cifar10 joins its five batches in order", "[data]") {
  const TemporaryFolder folder;
  const auto inner = folder / "cifar-10-batches-bin";
  std::filesystem::create_directory(inner);
  for (char i = 1; i <= 5; ++i) {
    if (i == 5)
      CHECK(contains(message_of<IoError>([&] { (void)data::cifar10("train", folder.path()); }), "batch_5.bin"));
    write_file(inner / ("data_batch_" + std::to_string(i) + ".bin"), record({i}, i) + record({'\0'}, 'x'));
  }
  for (const auto& directory : {folder.path(), inner}) {
    const Dataset dataset = data::cifar10("train", directory);
    CHECK(dataset.features.spec() == TensorSpec{DType::u8, {10, 3, 32, 32}});
    CHECK(dataset.classes == 10);
    CHECK(dataset.class_names.at(1) == "automobile");
    CHECK(dataset.labels.values<std::int32_t>()[2] == 2);
    CHECK(dataset.labels.values<std::int32_t>()[3] == 0);
    CHECK(dataset.features.values<std::uint8_t>()[2 * 3072 + 3071] == 2);
    CHECK(dataset.features.values<std::uint8_t>()[3 * 3072] == 'x');
  }
}

TEST_CASE("cifar100 takes the fine labels and their names", "[data]") {
  const TemporaryFolder folder;
  write_file(folder / "test.bin", record("\x13\x63", 'p') + record({'\1', '\0'}, 'q'));
  CHECK(data::cifar100("test", folder.path()).class_names.empty());
  std::string names;
  for (int i = 0; i < 100; ++i) names += "class" + std::to_string(i) + "\n";
  write_file(folder / "fine_label_names.txt", names);
  const Dataset dataset = data::cifar100("test", folder.path());
  CHECK(dataset.labels.values<std::int32_t>()[0] == 99);
  CHECK(dataset.labels.values<std::int32_t>()[1] == 0);
  CHECK(dataset.class_names.at(99) == "class99");
  CHECK(dataset.features.values<std::uint8_t>()[3072] == 'q');
}

TEST_CASE("cifar refuses empty, cut and mislabelled files", "[data]") {
  const TemporaryFolder folder;
  const auto refusal = [&](const std::string& content) {
    write_file(folder / "test_batch.bin", content);
    return message_of<FormatError>([&] { (void)data::cifar10("test", folder.path()); });
  };
  const std::string whole = record({'\3'}, 'a') + record({'\4'}, 'b');
  CHECK(contains(refusal(""), "byte 0: record 0: the file is empty"));
  for (const std::size_t bytes : {1, 2, 3072, 3074, 6145}) {
    CHECK(
        contains(refusal(whole.substr(0, bytes)), "is incomplete: " + std::to_string(bytes % 3073) + " of 3073 bytes"));
  }
  CHECK(contains(refusal(whole + "x"), "byte 6146: record 2: is incomplete: 1 of 3073"));
  CHECK(contains(refusal(whole + record({'\12'}, 'c')), "byte 6146: label of record 2: 10 is outside [0, 10)"));
}
