// Functions that open stored samples. Internal to the module; spec.cpp calls them.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "concord/data/records/records.hpp"

namespace concord::data {

/// What all of them may be told.
struct RecordOptions {
  /// Names of classes in the order of their indices; empty: the sorted names of the folders, or what the file says. A
  /// trained model's names; a class that is not among them is an ArgumentError.
  std::vector<std::string> class_names = {};
  /// Of open_folder: a folder with a mask for each image, a PNG of class indices under the relative path of the image
  /// with the extension .png. Empty: no masks. With masks, images may lie directly in the folder and a list may consist
  /// of paths alone; the labels are then a column of class 0.
  std::filesystem::path masks = {};
  bool masks_in_shards = true;  // of open_tar: masks are read, where there are some
  int mask_classes = 0;         // 0: indices in masks are not checked
  int numbered_classes = 0;     // of a trained model whose classes are numbers without names (to_numbered_classes)
};

/// Files of images below a folder, sorted by the bytes of their paths: the class is the name of the folder in
/// `directory` that a file lies in, at any depth. Or, with `list`, the files that a text names, a line each: "path
/// label [label …]", in this order, paths relative to `directory`. Labels that are all whole numbers are classes,
/// others with a decimal point targets [N, 1], and words names of classes. Tabs may separate, and quotes enclose, paths
/// with blanks.
[[nodiscard]] RecordsPtr open_folder(const std::filesystem::path& directory, const std::filesystem::path& list,
                                     const RecordOptions& options);

/// Files of images, and those below folders, in the order of `paths`, without labels. Throws IoError for a path that
/// does not exist.
[[nodiscard]] RecordsPtr open_files(const std::vector<std::filesystem::path>& paths);

/// The images of a data set, u8 [N, 1 or 3, rows, columns], with its labels. Throws ArgumentError for other features.
[[nodiscard]] RecordsPtr open_arrays(const Dataset& dataset);

/// An LMDB environment with values of Caffe's message Datum.
[[nodiscard]] RecordsPtr open_lmdb(const std::filesystem::path& directory, const RecordOptions& options);

/// Tar files (WebDataset): files of one name without its extension are a sample.
[[nodiscard]] RecordsPtr open_tar(const std::vector<std::filesystem::path>& shards, const RecordOptions& options);

}  // namespace concord::data
