// Loading libconcord-hdf5.so, and calling it.
#include "concord/weights/hdf5.hpp"

#include <algorithm>

#include "concord/core/access.hpp"
#include "concord/core/check.hpp"
#include "concord/core/platform.hpp"
#include "concord/core/utf8.hpp"
#include "concord/io/element.hpp"
#include "concord/weights/hdf5_library.hpp"

namespace concord::weights {
namespace {

constexpr const char* kLibrary = "libconcord-hdf5.so";

/// The functions of the library; it stays loaded.
struct Hdf5Functions {
  ConcordHdf5Open* open = nullptr;
  ConcordHdf5Close* close = nullptr;
  ConcordHdf5List* list = nullptr;
  ConcordHdf5Read* read = nullptr;
  explicit Hdf5Functions(const std::string& name) : library_(name) {
    ConcordHdf5Version* version = nullptr;
    is_there_ = library_.find("concord_hdf5_version", version) && version() == kConcordHdf5Version &&
                library_.find("concord_hdf5_open", open) && library_.find("concord_hdf5_close", close) &&
                library_.find("concord_hdf5_list", list) && library_.find("concord_hdf5_read", read);
  }
  [[nodiscard]] bool is_there() const { return is_there_; }

 private:
  SharedLibrary library_;
  bool is_there_ = false;
};

/// Beside this library, else where the system looks.
std::string place_of_library() {
  std::error_code unknown;
  for (const std::filesystem::path& prefix : library_prefixes()) {
    for (const char* folder : {CONCORD_LIBDIR, "lib"}) {
      const std::filesystem::path path = prefix / folder / kLibrary;
      if (std::filesystem::exists(path, unknown)) return path.string();
    }
  }
  return kLibrary;
}

const Hdf5Functions& hdf5_functions(const std::string& file) {
  static const Hdf5Functions functions(place_of_library());
  CONCORD_CHECK(functions.is_there(), NotSupported,
                "{}: an HDF5 file (Keras); its reader, {}, is not there or of another version. Install it beside "
                "libconcord, or build Concord with -DCONCORD_HDF5=ON",
                file, kLibrary);
  return functions;
}

}  // namespace

Hdf5File::Hdf5File(const std::filesystem::path& path) : where_(path.string()) {
  ConcordHdf5Error error{};
  file_ = hdf5_functions(where_).open(where_.c_str(), nullptr, 0, &error);
  CONCORD_CHECK(file_ != nullptr, FormatError, "{}, byte 0: {}", where_, error.text);
  list();
}

Hdf5File::Hdf5File(std::span<const std::byte> image, std::string where) : where_(std::move(where)) {
  ConcordHdf5Error error{};
  file_ = hdf5_functions(where_).open(where_.c_str(), image.data(), image.size(), &error);
  CONCORD_CHECK(file_ != nullptr, FormatError, "{}, byte 0: {}", where_, error.text);
  list();
}

Hdf5File::~Hdf5File() {
  if (file_ != nullptr) hdf5_functions(where_).close(file_);
}

void Hdf5File::list() {
  struct Found {
    std::map<std::string, io::TensorEntry>& datasets;
    std::map<std::string, std::string>& group_names;
    std::string problem;
  } found{datasets_, group_names_, {}};
  const auto visit = [](void* context, const ConcordHdf5Dataset* dataset) {
    auto& [datasets, group_names, problem] = *static_cast<Found*>(context);
    if (dataset->group_name != nullptr) {
      if (is_utf8(dataset->group_name)) group_names.emplace(dataset->path, dataset->group_name);
      return;
    }
    if (dataset->element == nullptr) return;
    if (dataset->rank > Shape::kMaxRank) {
      problem = fmt::format("{} has {} dimensions", printable(dataset->path), dataset->rank);
    } else {
      const std::vector<std::int64_t> dims(dataset->dims, dataset->dims + dataset->rank);
      const bool is_possible = std::ranges::all_of(dims, [](std::int64_t size) { return size >= 0 && size < 1 << 30; });
      if (is_possible) {
        datasets.emplace(dataset->path, io::TensorEntry{dataset->element, Shape(dims)});
      } else {
        problem = fmt::format("{} has an impossible size", printable(dataset->path));
      }
    }
  };
  ConcordHdf5Error error{};
  const int code = hdf5_functions(where_).list(file_, &found, visit, &error);
  if (code != 0) found.problem = error.text;
  if (found.problem.empty()) return;
  hdf5_functions(where_).close(file_);
  file_ = nullptr;
  throw FormatError(fmt::format("{}, byte 0: {}", where_, found.problem));
}

std::vector<std::byte> Hdf5File::read(const std::string& path) const {
  const io::TensorEntry& entry = datasets_.at(path);
  const std::size_t width = io::find_element(entry.dtype)->bytes;
  std::vector<std::byte> bytes(static_cast<std::size_t>(entry.shape.elements()) * width);
  ConcordHdf5Error error{};
  const int code = hdf5_functions(where_).read(file_, path.c_str(), bytes.data(), bytes.size(), &error);
  CONCORD_CHECK(code == 0, FormatError, "{}, byte 0: {}", where_, error.text);
  return bytes;
}

}  // namespace concord::weights
