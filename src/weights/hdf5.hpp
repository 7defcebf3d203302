// Hdf5File: the data sets of an HDF5 file, by libconcord-hdf5.so, which is loaded with the first file. Internal to the
// room.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "concord/io/safetensors.hpp"

namespace concord::weights {

class Hdf5File {
 public:
  /// Opens a file, or with `image` what was read of one, which `where` names in messages. Throws NotSupported where the
  /// library is missing, FormatError.
  explicit Hdf5File(const std::filesystem::path& path);
  Hdf5File(std::span<const std::byte> image, std::string where);
  Hdf5File(const Hdf5File&) = delete;
  Hdf5File& operator=(const Hdf5File&) = delete;
  ~Hdf5File();

  /// By path: "layers/conv2d/vars/0".
  [[nodiscard]] const std::map<std::string, io::TensorEntry>& datasets() const { return datasets_; }
  /// The attribute "name" of groups, by path.
  [[nodiscard]] const std::map<std::string, std::string>& group_names() const { return group_names_; }
  [[nodiscard]] std::vector<std::byte> read(const std::string& path) const;

 private:
  void list();

  const std::string where_;
  void* file_ = nullptr;
  std::map<std::string, io::TensorEntry> datasets_;
  std::map<std::string, std::string> group_names_;
};

}  // namespace concord::weights
