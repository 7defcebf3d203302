// A folder with a folder of images for each class, and list.txt, which has them in the order of the source.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "concord/cli/data/pack_files.hpp"
#include "concord/cli/data/pack_output.hpp"
#include "concord/core/check.hpp"
#include "concord/core/platform.hpp"
#include "concord/core/text.hpp"
#include "concord/data/records/class_file.hpp"

namespace concord::cli {
namespace {

constexpr const char* kListFile = "list.txt";

/// Indices as names that sort like the numbers.
std::vector<std::string> numbered_names(int classes) {
  const std::size_t digits = fmt::format("{}", std::max(classes - 1, 0)).size();
  std::vector<std::string> names;
  for (int i = 0; i < classes; ++i) names.push_back(fmt::format("{:0{}}", i, digits));
  return names;
}

/// What an earlier run has written into a folder.
std::set<std::string> packed_files(const std::filesystem::path& folder) {
  std::set<std::string> files{kListFile, data::kClassFile};
  std::error_code error;
  if (!std::filesystem::is_regular_file(folder / kListFile, error)) return {};
  for (const std::string& line : split(read_file(folder / kListFile), '\n'))
    files.insert(line.substr(0, line.find('\t')));
  return files;
}

class FolderOutput final : public PackOutput {
 public:
  FolderOutput(const std::string& out, const PackLabels& labels, bool is_forced)
      : labels_(labels),
        folder_(
            out, is_forced,
            [files = packed_files(out)](const std::filesystem::path& name) { return files.contains(name.string()); }),
        names_(labels.class_names()) {
    if (names_.empty()) names_ = numbered_names(labels.classes());
    check_class_file(folder_.temporary(), names_, true);
    folders_ = data::class_folders(names_);
    if (labels.classes() == 0) folders_ = {"images"};
    for (const std::string& folder : folders_) std::filesystem::create_directory(folder_.temporary() / folder);
  }

  void add(const std::string& key, std::int64_t row, const PackedSample& sample) override {
    const std::size_t index = labels_.classes() == 0 ? 0 : static_cast<std::size_t>(labels_.class_of(row));
    const std::string name = fmt::format("{}/{}.{}", folders_.at(index), key, sample.extension);
    write_packed_file(folder_.temporary() / name, sample.bytes);
    list_ += name;
    for (std::size_t column = 0; column < labels_.columns(); ++column) list_ += "\t" + labels_.text(column, row);
    list_ += '\n';
  }
  void finish() override {
    for (const std::string& folder : folders_) {  // a class without samples would be a folder without a file
      std::error_code ignored;
      std::filesystem::remove(folder_.temporary() / folder, ignored);
    }
    write_packed_file(folder_.temporary() / kListFile, list_);
    if (!names_.empty()) write_class_file(folder_.temporary(), names_);
    folder_.finish();
  }
  [[nodiscard]] std::string spec() const override {
    return fmt::format("folder:{},list={}", folder_.path().string(), (folder_.path() / kListFile).string());
  }
  [[nodiscard]] std::string what() const override { return "a folder"; }

 private:
  const PackLabels& labels_;
  NewFolder folder_;
  std::vector<std::string> names_, folders_;
  std::string list_;
};

}  // namespace

std::unique_ptr<PackOutput> pack_into_folder(const std::string& out, const PackLabels& labels, bool is_forced) {
  return std::make_unique<FolderOutput>(out, labels, is_forced);
}

}  // namespace concord::cli
