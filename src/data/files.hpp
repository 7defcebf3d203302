// Data sets in files: IDX (MNIST and similar sets) and CIFAR binaries. A file may be gzip-compressed; name or content
// shows it.
//
// A missing file is an IoError that says what was looked for and where to get it. A damaged, truncated, oversized or
// inconsistent file is a FormatError with the file, the byte offset (in the decompressed data) and the field. A header
// is checked against the size of the file before memory is allocated.
#pragma once

#include <filesystem>
#include <string_view>

#include "concord/core/export.hpp"
#include "concord/data/dataset.hpp"

namespace CONCORD_PUBLIC concord {
namespace data {

/// Reads a pair of IDX files. Images are u8 or f32 (big-endian, as in the format): [N, H, W] becomes features [N, 1, H,
/// W], other ranks stay. Labels are u8 or i32 [N] and start at `first_label`. `classes` 0 means the largest label + 1.
[[nodiscard]] Dataset idx(const std::filesystem::path& images, const std::filesystem::path& labels, int classes = 0,
                          int first_label = 0);

// For the functions below: `split` is "train" or "test". An empty `directory` means the first of
// $CONCORD_DATA_DIR/<name>, $CONCORD_DATA_DIR and /usr/share/datasets/<name> that contains the files. <name> is
// "mnist", "fashion-mnist", "emnist", "cifar-10" or "cifar-100". Files are found with and without ".gz".

/// 60,000 / 10,000 grey images 28x28 of ten digits (LeCun, Cortes and Burges).
[[nodiscard]] Dataset mnist(std::string_view split, const std::filesystem::path& directory = {});

/// 60,000 / 10,000 grey images 28x28 of ten kinds of clothing (Xiao, Rasul and Vollgraf, 2017). The Debian package is
/// dataset-fashion-mnist.
[[nodiscard]] Dataset fashion_mnist(std::string_view split, const std::filesystem::path& directory = {});

/// Handwritten letters and digits (Cohen, Afshar, Tapson and van Schaik, 2017). `part` is "balanced", "byclass",
/// "bymerge", "letters", "digits" or "mnist". The files store each image transposed; `upright` transposes it back. The
/// labels 1 … 26 of the letters become 0 … 25.
[[nodiscard]] Dataset emnist(std::string_view part, std::string_view split, const std::filesystem::path& directory = {},
                             bool upright = true);

/// Colour images 32x32 of ten classes (Krizhevsky, 2009), binary version: data_batch_1.bin … data_batch_5.bin or
/// test_batch.bin, in `directory` or in its folder cifar-10-batches-bin.
[[nodiscard]] Dataset cifar10(std::string_view split, const std::filesystem::path& directory = {});

/// Colour images 32x32 of a hundred classes: train.bin or test.bin, in `directory` or in its folder cifar-100-binary.
/// The labels are the fine ones. Class names come from fine_label_names.txt if that file exists.
[[nodiscard]] Dataset cifar100(std::string_view split, const std::filesystem::path& directory = {});

}  // namespace data
}  // namespace concord
