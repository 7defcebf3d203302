// The arrays of .npz files.
#include "concord/io/npz.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "concord/core/check.hpp"
#include "concord/core/host_memory.hpp"
#include "concord/core/utf8.hpp"
#include "concord/io/zip.hpp"

namespace concord::io {
namespace {

constexpr std::string_view kNpySuffix = ".npy";

}  // namespace

NpzFile::NpzFile(const std::filesystem::path& path) : archive_(std::make_unique<ZipArchive>(path, ".npz file")) {
  std::vector<std::pair<std::uint64_t, std::string>> in_order;
  for (const auto& [name, entry] : archive_->entries()) {
    if (name.ends_with(kNpySuffix)) in_order.emplace_back(entry.index, name.substr(0, name.size() - kNpySuffix.size()));
  }
  std::ranges::sort(in_order);
  for (auto& [index, name] : in_order) names_.push_back(std::move(name));
}

NpzFile::~NpzFile() = default;

bool NpzFile::has(std::string_view name) const { return std::ranges::find(names_, name) != names_.end(); }

Tensor NpzFile::read(std::string_view name) const { return read_array(name).tensor; }

NpyArray NpzFile::read_array(std::string_view name) const {
  const std::string entry = fmt::format("{}{}", name, kNpySuffix);
  const std::string place = archive_->place_of(entry);
  std::vector<std::string> shown;
  for (const std::string& one : names_) shown.push_back(printable(one));
  CONCORD_CHECK(has(name), ArgumentError, "{}: there is no such array. There are: {}", place,
                names_.empty() ? "none" : fmt::format("{}", fmt::join(shown, ", ")));
  return with_host_memory(place, [&] { return parse_npy_array(archive_->read_text(entry), place); });
}

}  // namespace concord::io
