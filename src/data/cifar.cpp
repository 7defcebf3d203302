// CIFAR-10 and CIFAR-100, binary version: records of one or two label bytes and 3072 bytes of planes (R, G, B).
#include <algorithm>
#include <fstream>

#include "concord/core/check.hpp"
#include "concord/data/directory.hpp"
#include "concord/data/files.hpp"
#include "concord/data/input_file.hpp"

namespace concord::data {
namespace {

constexpr std::uint64_t kImage = 3 * 32 * 32;

struct Format {
  std::string_view name, folder;
  std::size_t label_bytes;  // the label wanted is the last of them
  int classes;
};
constexpr Format kCifar10{"cifar-10", "cifar-10-batches-bin", 1, 10};
constexpr Format kCifar100{"cifar-100", "cifar-100-binary", 2, 100};

std::vector<std::filesystem::path> find(const Format& format, const std::vector<std::string>& names,
                                        const std::filesystem::path& directory) {
  return find_files(format.name, names, search_path(format.name, directory, format.folder),
                    "download its binary version from https://www.cs.toronto.edu/~kriz/cifar.html");
}

struct BatchFile {
  InputFile file;
  std::uint64_t records;
};

BatchFile open_batch(const Format& format, const std::filesystem::path& path) {
  BatchFile batch{InputFile(path), 0};
  const std::uint64_t bytes = batch.file.remaining();
  const std::uint64_t record = format.label_bytes + kImage;
  if (bytes == 0) batch.file.fail("record 0", "the file is empty");
  if (bytes % record != 0) {
    batch.file.fail_at(bytes / record * record, fmt::format("record {}", bytes / record),
                       fmt::format("is incomplete: {} of {} bytes", bytes % record, record));
  }
  batch.records = bytes / record;
  return batch;
}

Dataset read(const Format& format, const std::vector<std::filesystem::path>& paths, std::string_view split) {
  std::vector<BatchFile> batches;
  std::uint64_t total = 0;
  for (const auto& path : paths) {
    batches.push_back(open_batch(format, path));
    total += batches.back().records;
  }
  Dataset dataset;
  dataset.name = fmt::format("{} {}", format.name, split);
  dataset.classes = format.classes;
  dataset.features = Tensor(DType::u8, {static_cast<std::int64_t>(total), 3, 32, 32});
  dataset.labels = Tensor(DType::i32, {static_cast<std::int64_t>(total)});
  const auto labels = dataset.labels.values<std::int32_t>();
  std::size_t row = 0;
  for (BatchFile& batch : batches) {
    for (std::uint64_t record = 0; record < batch.records; ++record, ++row) {
      std::byte label[2] = {};
      batch.file.read({label, format.label_bytes}, fmt::format("label of record {}", record));
      labels[row] = std::to_integer<std::int32_t>(label[format.label_bytes - 1]);
      if (labels[row] >= format.classes) {
        batch.file.fail(fmt::format("label of record {}", record),
                        fmt::format("{} is outside [0, {})", labels[row], format.classes));
      }
      batch.file.read(dataset.features.bytes().subspan(row * kImage, kImage),
                      fmt::format("image of record {}", record));
    }
    batch.file.expect_end();
  }
  return dataset;
}

std::vector<std::string> read_lines(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) {
    if (!line.empty()) lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace

Dataset cifar10(std::string_view split, const std::filesystem::path& directory) {
  check_split(split);
  std::vector<std::string> names{"test_batch.bin"};
  if (split == "train") {
    names.clear();
    for (int i = 1; i <= 5; ++i) names.push_back(fmt::format("data_batch_{}.bin", i));
  }
  Dataset dataset = read(kCifar10, find(kCifar10, names, directory), split);
  dataset.class_names = {"airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"};
  return dataset;
}

Dataset cifar100(std::string_view split, const std::filesystem::path& directory) {
  check_split(split);
  const auto paths = find(kCifar100, {fmt::format("{}.bin", split)}, directory);
  Dataset dataset = read(kCifar100, paths, split);
  auto class_names = read_lines(paths.front().parent_path() / "fine_label_names.txt");
  if (class_names.size() == static_cast<std::size_t>(dataset.classes)) dataset.class_names = std::move(class_names);
  return dataset;
}

}  // namespace concord::data
