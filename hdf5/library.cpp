// libconcord-hdf5.so: lists and reads the data sets of HDF5 files. src/weights loads it where a file needs it.
//
// A file is not trusted: links to other files, external storage, virtual data sets and filters of plugins are not
// followed, and a data set is no larger than its storage and the file can be, whatever they say.
#include <hdf5.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "concord/weights/hdf5_library.hpp"
#include "group_name.hpp"

#define CONCORD_HDF5_EXPORT __attribute__((visibility("default")))

namespace {

constexpr int kDeepest = 32;              // groups within each other
constexpr std::size_t kMost = 1'000'000;  // objects: a file may have circles
constexpr hsize_t kMostExpansion = 1032;  // bytes that deflate makes of one

// Debian's HDF5 is not made for several threads.
std::mutex& hdf5_lock() {
  static std::mutex mutex;
  return mutex;
}

/// A handle that is closed with this object.
class Handle {
 public:
  Handle(hid_t id, herr_t (*close)(hid_t), const char* what) : id_(id), close_(close) {
    if (id < 0) throw std::runtime_error(std::string("HDF5 cannot read ") + what);
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle() { close_(id_); }
  operator hid_t() const { return id_; }

 private:
  hid_t id_;
  herr_t (*close_)(hid_t);
};

/// An open file. HDF5's own size of a file may be the one that the file claims.
struct OpenFile {
  hid_t id;
  hsize_t bytes;
  std::unique_ptr<concord_hdf5::RawFile> raw;  // null for what is no file
};

template <class Work>
int guarded(ConcordHdf5Error* error, Work&& work) {
  const std::lock_guard lock(hdf5_lock());
  std::string text;
  try {
    work();
    return 0;
  } catch (const std::exception& problem) {
    text = problem.what();
  }
  text.resize(text.size() < sizeof error->text ? text.size() : sizeof error->text - 1);
  std::memcpy(error->text, text.c_str(), text.size() + 1);
  return 1;
}

const char* element_of(hid_t type) {
  const std::size_t bytes = H5Tget_size(type);
  if (H5Tget_class(type) == H5T_FLOAT) return bytes == 4 ? "F32" : bytes == 8 ? "F64" : bytes == 2 ? "F16" : nullptr;
  if (H5Tget_class(type) != H5T_INTEGER) return nullptr;
  const bool is_signed = H5Tget_sign(type) == H5T_SGN_2;
  switch (bytes) {
    case 1: return is_signed ? "I8" : "U8";
    case 2: return is_signed ? "I16" : "U16";
    case 4: return is_signed ? "I32" : "U32";
    case 8: return is_signed ? "I64" : "U64";
    default: return nullptr;
  }
}

/// Throws where `sizes` elements need more than `most` bytes; returns the bytes.
hsize_t checked_bytes(const std::vector<hsize_t>& sizes, std::size_t element_bytes, hsize_t most) {
  hsize_t bytes = element_bytes;
  for (const hsize_t size : sizes) {
    if (size != 0 && bytes > most / size) throw std::runtime_error("a data set is larger than its storage");
    bytes *= size;
  }
  return bytes;
}

struct Extent {
  std::vector<std::int64_t> dims;
  hsize_t bytes;
};

/// Sizes of a data set; throws where its storage, as far as it is in the file, cannot have so many elements, or lies in
/// other files.
Extent extent_of(hid_t dataset, std::size_t element_bytes, hsize_t file_bytes) {
  const Handle space(H5Dget_space(dataset), H5Sclose, "the shape of a data set");
  const int rank = H5Sget_simple_extent_ndims(space);
  if (rank < 0 || rank > 32) throw std::runtime_error("a data set has no shape");
  std::vector<hsize_t> sizes(static_cast<std::size_t>(rank));
  H5Sget_simple_extent_dims(space, sizes.data(), nullptr);
  const Handle properties(H5Dget_create_plist(dataset), H5Pclose, "the layout of a data set");
  if (H5Pget_external_count(properties) != 0) throw std::runtime_error("a data set lies in other files");
  const H5D_layout_t layout = H5Pget_layout(properties);
  if (layout != H5D_COMPACT && layout != H5D_CONTIGUOUS && layout != H5D_CHUNKED) {
    throw std::runtime_error("a data set has a layout that is not read");
  }
  hsize_t most = std::min<hsize_t>(H5Dget_storage_size(dataset), file_bytes);
  if (layout == H5D_CHUNKED) most *= kMostExpansion;
  const hsize_t bytes = checked_bytes(sizes, element_bytes, most);
  if (layout == H5D_CHUNKED && bytes > 0) {  // a chunk is read as a whole
    std::vector<hsize_t> chunk(sizes.size());
    if (H5Pget_chunk(properties, rank, chunk.data()) != rank) throw std::runtime_error("a data set has no chunks");
    checked_bytes(chunk, element_bytes, most);
  }
  return {{sizes.begin(), sizes.end()}, bytes};
}

class Lister {
 public:
  /// `raw` is null for what is no file, whose groups have no names.
  Lister(hsize_t file_bytes, concord_hdf5::RawFile* raw, void* context, ConcordHdf5Visit visit)
      : file_bytes_(file_bytes), raw_(raw), context_(context), visit_(visit) {}

  void list(hid_t group, const std::string& path, int depth) {
    if (depth > kDeepest) throw std::runtime_error("groups within each other are too deep");
    H5G_info_t info;
    if (H5Gget_info(group, &info) < 0) throw std::runtime_error("HDF5 cannot read the group '" + path + "'");
    for (hsize_t i = 0; i < info.nlinks; ++i) {
      if (++objects_ > kMost) throw std::runtime_error("a file of too many objects");
      const std::string name = name_of(group, i);
      H5L_info_t link;
      if (H5Lget_info(group, name.c_str(), &link, H5P_DEFAULT) < 0) {
        throw std::runtime_error("HDF5 cannot read '" + path + name + "'");
      }
      if (link.type != H5L_TYPE_HARD) continue;
      const Handle object(H5Oopen(group, name.c_str(), H5P_DEFAULT), H5Oclose, ("'" + path + name + "'").c_str());
      if (H5Iget_type(object) == H5I_GROUP) {
        const std::string group_name = name_of(object);
        if (!group_name.empty()) {
          const std::string group_path = path + name;
          const ConcordHdf5Dataset found{group_path.c_str(), nullptr, nullptr, 0, group_name.c_str()};
          visit_(context_, &found);
        }
        list(object, path + name + "/", depth + 1);
      }
      if (H5Iget_type(object) == H5I_DATASET) report(object, path + name);
    }
  }

 private:
  std::string name_of(hid_t group) {
    H5G_stat_t place;
    if (raw_ == nullptr || H5Gget_objinfo(group, ".", 0, &place) < 0) return {};
    static_assert(sizeof place.objno[0] == 8);
    return raw_->name_of_object(place.objno[0]);
  }

  static std::string name_of(hid_t group, hsize_t index) {
    std::array<char, 1024> name{};
    const ssize_t length =
        H5Lget_name_by_idx(group, ".", H5_INDEX_NAME, H5_ITER_INC, index, name.data(), name.size(), H5P_DEFAULT);
    if (length <= 0 || static_cast<std::size_t>(length) >= name.size()) {
      throw std::runtime_error("HDF5 cannot read a name, or it is too long");
    }
    return name.data();
  }

  void report(hid_t dataset, const std::string& path) {
    const Handle type(H5Dget_type(dataset), H5Tclose, ("the type of '" + path + "'").c_str());
    const char* const element = element_of(type);
    Extent extent{};
    if (element != nullptr) extent = extent_of(dataset, H5Tget_size(type), file_bytes_);
    if (extent.bytes > file_bytes_ * kMostExpansion - bytes_) {
      throw std::runtime_error("the data sets are larger than the file can be");
    }
    bytes_ += extent.bytes;
    const ConcordHdf5Dataset found{path.c_str(), element, extent.dims.data(), extent.dims.size(), nullptr};
    visit_(context_, &found);
  }

  const hsize_t file_bytes_;
  concord_hdf5::RawFile* const raw_;
  void* const context_;
  const ConcordHdf5Visit visit_;
  std::size_t objects_ = 0;
  hsize_t bytes_ = 0;  // of all data sets
};

void read_dataset(const OpenFile& file, const char* path, void* bytes, std::size_t count) {
  const std::string quoted = std::string("'") + path + "'";
  const Handle dataset(H5Dopen2(file.id, path, H5P_DEFAULT), H5Dclose, quoted.c_str());
  const Handle stored(H5Dget_type(dataset), H5Tclose, quoted.c_str());
  if (element_of(stored) == nullptr) throw std::runtime_error(quoted + " has no numbers");
  if (extent_of(dataset, H5Tget_size(stored), file.bytes).bytes != count)
    throw std::runtime_error(quoted + " has changed");
  const Handle wanted(H5Tcopy(stored), H5Tclose, quoted.c_str());
  const H5T_order_t host = H5Tget_order(H5T_NATIVE_INT);
  if (H5Tget_size(wanted) > 1 && H5Tset_order(wanted, host) < 0)
    throw std::runtime_error(quoted + " has no byte order");
  if (H5Dread(dataset, wanted, H5S_ALL, H5S_ALL, H5P_DEFAULT, bytes) < 0) {
    throw std::runtime_error("HDF5 cannot read the numbers of " + quoted);
  }
}

OpenFile& opened(void* file) { return *static_cast<OpenFile*>(file); }

}  // namespace

extern "C" {

CONCORD_HDF5_EXPORT ConcordHdf5Version concord_hdf5_version;
CONCORD_HDF5_EXPORT ConcordHdf5Open concord_hdf5_open;
CONCORD_HDF5_EXPORT ConcordHdf5Close concord_hdf5_close;
CONCORD_HDF5_EXPORT ConcordHdf5List concord_hdf5_list;
CONCORD_HDF5_EXPORT ConcordHdf5Read concord_hdf5_read;

int concord_hdf5_version() { return kConcordHdf5Version; }

void* concord_hdf5_open(const char* path, const void* bytes, std::size_t count, ConcordHdf5Error* error) {
  OpenFile* file = nullptr;
  guarded(error, [&] {
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
    H5PLset_loading_state(0);  // no filters of plugins
    const Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose, "a file");
    if (bytes != nullptr) {
      constexpr std::size_t kStep = 1 << 20;
      H5Pset_fapl_core(access, kStep, 0);
      H5Pset_file_image(access, const_cast<void*>(bytes), count);  // takes a copy
    }
    const hsize_t size = bytes != nullptr ? count : std::filesystem::file_size(path);
    const hid_t id = H5Fopen(path, H5F_ACC_RDONLY, access);
    if (id < 0) throw std::runtime_error("HDF5 cannot read its superblock, or the file ends too early");
    file = new OpenFile{id, size, bytes != nullptr ? nullptr : std::make_unique<concord_hdf5::RawFile>(path)};
  });
  return file;
}

void concord_hdf5_close(void* file) {
  const std::lock_guard lock(hdf5_lock());
  H5Fclose(opened(file).id);
  delete static_cast<OpenFile*>(file);
}

int concord_hdf5_list(void* file, void* context, ConcordHdf5Visit visit, ConcordHdf5Error* error) {
  return guarded(error, [&] {
    const Handle root(H5Gopen2(opened(file).id, "/", H5P_DEFAULT), H5Gclose, "the root group");
    Lister(opened(file).bytes, opened(file).raw.get(), context, visit).list(root, "", 0);
  });
}

int concord_hdf5_read(void* file, const char* path, void* bytes, std::size_t count, ConcordHdf5Error* error) {
  return guarded(error, [&] { read_dataset(opened(file), path, bytes, count); });
}

}  // extern "C"
