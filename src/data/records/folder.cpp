// Folders of images: the class is the folder that a file lies in, or a list says it.
#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "concord/core/check.hpp"
#include "concord/core/log.hpp"
#include "concord/core/platform.hpp"
#include "concord/core/text.hpp"
#include "concord/core/utf8.hpp"
#include "concord/data/records/class_file.hpp"
#include "concord/data/records/file_tree.hpp"
#include "concord/data/records/image_names.hpp"
#include "concord/data/records/labels.hpp"
#include "concord/data/records/open.hpp"
#include "concord/data/records/sample_list.hpp"
#include "concord/data/records/stored_file.hpp"

namespace concord::data {
namespace {

class FolderRecords final : public Records {
 public:
  FolderRecords(std::filesystem::path directory, std::filesystem::path masks, NameTable paths)
      : directory_(std::move(directory)), masks_(std::move(masks)), paths_(std::move(paths)) {}

  [[nodiscard]] std::int64_t size() const override { return static_cast<std::int64_t>(paths_.size()); }
  [[nodiscard]] std::string name_of(std::int64_t row) const override { return path_of(row).string(); }

  [[nodiscard]] Record read(std::int64_t row, std::vector<std::byte>& scratch) const override {
    return {read_stored_file(path_of(row), scratch)};
  }

  [[nodiscard]] bool has_mask() const override { return !masks_.empty(); }
  [[nodiscard]] Record read_mask(std::int64_t row, std::vector<std::byte>& scratch) const override {
    if (masks_.empty()) return Records::read_mask(row, scratch);
    const std::filesystem::path mask = (masks_ / relative(row)).replace_extension(".png");
    try {
      return {read_stored_file(mask, scratch)};
    } catch (const IoError& error) {
      throw IoError(fmt::format("{}: there is no mask: {}", printable(name_of(row)), error.what()));
    }
  }

 private:
  [[nodiscard]] std::filesystem::path relative(std::int64_t row) const { return paths_[static_cast<std::size_t>(row)]; }
  [[nodiscard]] std::filesystem::path path_of(std::int64_t row) const { return directory_ / relative(row); }

  std::filesystem::path directory_, masks_;  // from the root; no masks: empty
  NameTable paths_;
};

void warn_of_tree(const std::string& name, const FileTree& tree) {
  warn_of(name, tree.different, "files with other extensions are left out");
  warn_of(name, tree.hidden, "hidden files and folders are left out");
  warn_of(name, tree.dead, "links that lead nowhere are left out");
  warn_of(name, tree.repeated, "folders that a link reaches once more are left out");
}

std::shared_ptr<FolderRecords> records_in(const std::filesystem::path& directory, const std::filesystem::path& masks,
                                          NameTable paths, std::string name) {
  check_samples(name, paths.size());
  auto records = std::make_shared<FolderRecords>(absolute_path(directory), absolute_path(masks), std::move(paths));
  records->name = std::move(name);
  return records;
}

// Without classes, where masks are the labels.
RecordsPtr one_class(std::shared_ptr<FolderRecords> records) {
  records->labels.push_back(class_column(std::vector<std::int32_t>(static_cast<std::size_t>(records->size())), 1));
  return records;
}

// The names of the classes that the folders stand for: as classes.txt has them, or those of the folders.
std::vector<std::string> names_of_folders(const std::filesystem::path& directory, const FileTree& tree,
                                          const std::string& name, std::vector<std::string>& all) {
  const std::vector<std::string> stored = read_class_file(directory), folders = class_folders(stored);
  const ClassTable table(folders);
  std::vector<std::string> names;
  all = tree.folders;
  if (stored.empty()) return tree.folders;
  for (const std::string& folder : tree.folders) {
    const auto found = table.find(folder);
    if (!found) {
      log(LogLevel::warning,
          fmt::format("{}: {} is not used: it does not name the folder \"{}\"", name, kClassFile, printable(folder)));
      return tree.folders;
    }
    names.push_back(stored[static_cast<std::size_t>(*found)]);
  }
  all = stored;
  return names;
}

// The paths in a folder for each class; files directly in `directory` have none.
RecordsPtr classes_by_folder(const std::filesystem::path& directory, const FileTree& tree, std::string name,
                             const RecordOptions& options) {
  for (const std::string& folder : tree.folders) check_class_name(folder, name + ": the name of the folder");
  std::vector<std::string> class_names;
  const std::vector<std::string> folder_names = names_of_folders(directory, tree, name, class_names);
  if (!options.class_names.empty()) class_names = options.class_names;
  const ClassTable classes(class_names);
  std::vector<std::int32_t> class_of;
  for (const std::string& folder : folder_names) {
    const auto found = classes.find(folder);
    CONCORD_CHECK(found.has_value(), ArgumentError, "{}: the folder \"{}\" is not one of the classes of the model: {}",
                  name, printable(folder), some_of(class_names));
    class_of.push_back(*found);
  }
  NameTable paths;
  std::vector<std::int32_t> labels;
  LeftOut direct;
  for (std::size_t i = 0; i < tree.paths.size(); ++i) {
    if (tree.folder[i] < 0) {
      direct.add(tree.paths[i]);
    } else {
      paths.add(tree.paths[i]);
      labels.push_back(class_of[static_cast<std::size_t>(tree.folder[i])]);
    }
  }
  CONCORD_CHECK(!labels.empty(), ArgumentError,
                "{}: no image was found; looked for {} in its subfolders, one for each class{}", name, kImageWords,
                direct.count == 0
                    ? std::string()
                    : fmt::format(" ({} images lie directly in it; a list may name their classes)", direct.count));
  warn_of(name, direct, "images that lie in no subfolder are left out");
  const auto records = records_in(directory, options.masks, std::move(paths), std::move(name));
  records->labels.push_back(class_column(labels, static_cast<int>(class_names.size())));
  records->class_names = std::move(class_names);
  if (options.masks.empty()) warn_of_classes(records->name, records->labels[0], records->class_names);
  return records;
}

RecordsPtr open_tree(const std::filesystem::path& directory, std::string name, const RecordOptions& options) {
  FileTree tree = list_tree(directory, is_image_name);
  warn_of_tree(name, tree);
  const bool has_direct = std::find(tree.folder.begin(), tree.folder.end(), -1) != tree.folder.end();
  if (options.masks.empty() || !has_direct) return classes_by_folder(directory, tree, std::move(name), options);
  return one_class(records_in(directory, options.masks, std::move(tree.paths), std::move(name)));
}

// A list that belongs to another folder is told at once; single files that are missing, when they are read.
void check_first_paths(const std::filesystem::path& directory, const std::filesystem::path& list,
                       const NameTable& paths) {
  constexpr std::size_t kTried = 8;
  std::error_code ignored;
  for (std::size_t i = 0; i < std::min(paths.size(), kTried); ++i) {
    if (std::filesystem::exists(directory / paths[i], ignored)) return;
  }
  throw IoError(fmt::format("{}: there is no file {}, nor those of the next lines; paths are relative to {}",
                            printable(list.string()), printable(paths[0]), printable(directory.string())));
}

RecordsPtr open_list(const std::filesystem::path& directory, const std::filesystem::path& list,
                     const RecordOptions& options) {
  const std::string text = read_file(list);
  const std::vector<std::string> stored = read_class_file(directory);
  // With classes.txt, numbers in a list are its lines, whatever the order of the classes of a model.
  SampleList samples = parse_sample_list(text, list, stored.empty() ? options : RecordOptions{{}, options.masks});
  const bool has_indices = !samples.labels.empty() && samples.labels[0].values.dtype() == DType::i32 &&
                           samples.class_names.empty() && !stored.empty();
  if (!stored.empty() && !has_indices) samples = parse_sample_list(text, list, options);
  check_first_paths(directory, list, samples.paths);
  for (std::size_t i = 0; i < samples.paths.size() && !options.masks.empty(); ++i) {
    CONCORD_CHECK(std::filesystem::path(samples.paths[i]).is_relative(), ArgumentError,
                  "{}: with masks, paths are relative to the folder; got {}", printable(list.string()),
                  printable(samples.paths[i]));
  }
  const auto records =
      records_in(directory, options.masks, std::move(samples.paths), fmt::format("list {}", printable(list.string())));
  if (samples.labels.empty()) return one_class(records);
  if (has_indices) {
    samples.class_names = name_classes(samples.labels[0], stored, options.class_names, records->name);
  }
  records->labels = std::move(samples.labels);
  records->class_names = std::move(samples.class_names);
  if (options.masks.empty() && records->labels[0].values.dtype() == DType::i32) {
    warn_of_classes(records->name, records->labels[0], records->class_names);
  }
  return records;
}

}  // namespace

RecordsPtr open_folder(const std::filesystem::path& directory, const std::filesystem::path& list,
                       const RecordOptions& options) {
  std::error_code error;
  CONCORD_CHECK(options.masks.empty() || std::filesystem::is_directory(options.masks, error), IoError,
                "there is no folder of masks {}", printable(options.masks.string()));
  RecordsPtr records = !list.empty()
                           ? open_list(directory, list, options)
                           : open_tree(directory, fmt::format("folder {}", printable(directory.string())), options);
  records->mask_classes = options.mask_classes;
  if (options.numbered_classes > 0) to_numbered_classes(*records, read_class_file(directory), options.numbered_classes);
  return records;
}

}  // namespace concord::data
