// ImageSet: labelled images as a folder, a database or an archive stores them, of any number and any size.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "concord/core/export.hpp"
#include "concord/data/dataset.hpp"
#include "concord/data/image/transform.hpp"
#include "concord/data/samples.hpp"

namespace concord::data {
class Records;
}

namespace CONCORD_PUBLIC concord {
namespace data {

/// Bytes for decoded images. Copies are of one budget: several sets may share it.
struct CacheBudget {
  CacheBudget(std::uint64_t most) : bytes(most) {}
  std::uint64_t bytes;
  std::shared_ptr<std::atomic<std::uint64_t>> used = std::make_shared<std::atomic<std::uint64_t>>(0);
};

/// Stored images with their labels. Copies share them. `with` makes samples of them; several views, such as one with
/// augmentation to train on and one without to validate on, share the files.
class ImageSet {
 public:
  explicit ImageSet(std::shared_ptr<Records> records) : records_(std::move(records)) {}

  [[nodiscard]] std::int64_t size() const;
  [[nodiscard]] const std::string& name() const;
  /// Of the first column of labels; may be empty.
  [[nodiscard]] const std::vector<std::string>& class_names() const;
  /// The labels of all images: [N, …], the first without a name.
  [[nodiscard]] const std::vector<Column>& labels() const;
  /// Whether each image has a mask of classes, which becomes a column of labels.
  [[nodiscard]] bool has_masks() const;
  /// What messages call an image: its path or its key.
  [[nodiscard]] std::string name_of(std::int64_t row) const;

  /// The same images, each decoded once and kept while the budget suffices; in memory, or with a `directory` in a file
  /// there that goes with the process. `channels` are those of the transform that it is read with. Throws IoError if
  /// nothing can be written there.
  [[nodiscard]] ImageSet cached(const CacheBudget& budget, const std::filesystem::path& directory = {},
                                std::int64_t channels = 3) const;
  /// The same with a budget of its own, in bytes.
  [[nodiscard]] ImageSet cached(std::uint64_t bytes, const std::filesystem::path& directory = {},
                                std::int64_t channels = 3) const;

  /// Samples with features u8 [channels, height, width]. An image is decoded when it is read; Samples::read throws
  /// FormatError with its name if it is damaged. Throws ArgumentError for a transform that is out of range.
  [[nodiscard]] SharedSamples with(const ImageTransform& transform) const;

 private:
  std::shared_ptr<Records> records_;
};

struct ImageOptions {
  /// The classes in the order of their indices, such as those of a trained model; empty: as stored. Throws
  /// ArgumentError for an image of another class.
  std::vector<std::string> class_names = {};
  std::filesystem::path list = {};   // of a folder: a text with a path and labels on each line
  std::filesystem::path masks = {};  // of a folder: a folder with a PNG of class indices for each image
  /// Of tar files with masks: whether these are the labels; else they are not used.
  bool masks_in_shards = true;
  int mask_classes = 0;  // indices in masks are below it, or are ImageTransform::mask_fill; 0: not checked
  /// Of a trained model whose classes are numbers without names: their number. Classes with names have to be named by
  /// these numbers, or by classes.txt, whose lines they are; then they have no names. Throws ArgumentError for others.
  int numbered_classes = 0;
};

// The functions below throw IoError for what cannot be read, FormatError for what is damaged, and ArgumentError if
// there is no image.

/// JPEG, PNG, BMP and PNM files below a folder. The class of a file is the folder in `directory` in which it lies, at
/// any depth; classes are sorted by the bytes of their names. With a list: "path label [label …]" on each line, paths
/// relative to `directory`. Labels that are all whole numbers are class indices, words are names of classes, and
/// numbers with a decimal point are targets.
[[nodiscard]] ImageSet folder(const std::filesystem::path& directory, const ImageOptions& options = {});

/// The named files, and those below named folders, without labels: to predict.
[[nodiscard]] ImageSet image_files(const std::vector<std::filesystem::path>& paths);

/// The images of a data set in memory, u8 [N, 1 or 3, rows, columns], to be augmented as those of files are. Throws
/// ArgumentError for other features.
[[nodiscard]] ImageSet image_set(const Dataset& dataset);

/// An LMDB database of Caffe's Datum messages: files of images, or raw pixels.
[[nodiscard]] ImageSet lmdb(const std::filesystem::path& path, const ImageOptions& options = {});

/// Tar files as WebDataset writes them: "train-{000000..000146}.tar". Files with one name up to the first dot are a
/// sample: an image (jpg, jpeg, png, bmp, ppm, pgm), and a label (cls, or "label" in json) or a mask (seg.png,
/// mask.png). The first opening writes an index beside each tar file.
[[nodiscard]] ImageSet tar(const std::string& pattern, const ImageOptions& options = {});

}  // namespace data
}  // namespace concord
