// Images that a caller names, without labels: to predict.
#include <algorithm>
#include <array>

#include "concord/core/check.hpp"
#include "concord/core/platform.hpp"
#include "concord/core/text.hpp"
#include "concord/core/utf8.hpp"
#include "concord/data/records/file_tree.hpp"
#include "concord/data/records/image_names.hpp"
#include "concord/data/records/labels.hpp"
#include "concord/data/records/open.hpp"
#include "concord/data/records/stored_file.hpp"

namespace concord::data {
namespace {

class NamedFiles final : public Records {
 public:
  explicit NamedFiles(NameTable paths) : paths_(std::move(paths)) {
    name = "images";
    check_samples(name, paths_.size());
  }
  [[nodiscard]] std::int64_t size() const override { return static_cast<std::int64_t>(paths_.size()); }
  [[nodiscard]] std::string name_of(std::int64_t row) const override {
    return std::string(paths_[static_cast<std::size_t>(row)]);
  }
  [[nodiscard]] Record read(std::int64_t row, std::vector<std::byte>& scratch) const override {
    return {read_stored_file(name_of(row), scratch)};
  }

 private:
  NameTable paths_;
};

}  // namespace

bool is_image_name(std::string_view name) {
  constexpr std::array<std::string_view, 7> kExtensions = {".jpg", ".jpeg", ".png", ".bmp", ".ppm", ".pgm", ".pnm"};
  const std::size_t point = name.rfind('.');
  if (point == std::string_view::npos) return false;
  return std::ranges::find(kExtensions, lower(name.substr(point))) != kExtensions.end();
}

RecordsPtr open_files(const std::vector<std::filesystem::path>& paths) {
  NameTable names;
  for (const std::filesystem::path& path : paths) {
    CONCORD_CHECK(std::filesystem::exists(path), IoError, "{}: there is no such file or folder",
                  printable(path.string()));
    if (!std::filesystem::is_directory(path)) {
      names.add(path.string());
      continue;
    }
    const FileTree tree = list_tree(path, is_image_name);
    CONCORD_CHECK(tree.paths.size() > 0, ArgumentError, "{}: no image was found; looked for {}",
                  printable(path.string()), kImageWords);
    for (std::size_t i = 0; i < tree.paths.size(); ++i) names.add((path / tree.paths[i]).string());
  }
  return std::make_shared<NamedFiles>(std::move(names));
}

}  // namespace concord::data
