// Data sets in files: IDX (MNIST and its relatives), CIFAR binaries. Each may be gzip-compressed, by name or content.
// Used by the trainer's callers, the command and the samples.
//
// A file that is not there is an IoError that names what was looked for and where to get it; a damaged, truncated,
// oversized or lying one is a FormatError with file, byte offset (of the decompressed data) and field. Nothing is
// allocated on the word of a header that the file's own size does not bear out.
#pragma once

#include <filesystem>
#include <string_view>

#include "concord/core/export.hpp"
#include "concord/data/dataset.hpp"

namespace CONCORD_PUBLIC concord {
namespace data {

/// Any pair of IDX files: images u8 or f32 (big-endian, as the format has it) [N, H, W] → features [N, 1, H, W], other
/// ranks as they are; labels u8 or i32 [N], from `first_label` on. `classes` 0 takes the largest label + 1.
[[nodiscard]] Dataset idx(const std::filesystem::path& images, const std::filesystem::path& labels, int classes = 0,
                          int first_label = 0);

// `split` is "train" or "test". An empty directory means: $CONCORD_DATA_DIR/<name>, $CONCORD_DATA_DIR,
// /usr/share/datasets/<name>, where <name> is "mnist", "fashion-mnist", "emnist", "cifar-10", "cifar-100"; the first
// that holds the files. Files are found with and without ".gz".

/// 60,000 / 10,000 grey images 28x28 of ten digits (LeCun, Cortes, Burges).
[[nodiscard]] Dataset mnist(std::string_view split, const std::filesystem::path& directory = {});

/// 60,000 / 10,000 grey images 28x28 of ten kinds of clothing (Xiao, Rasul, Vollgraf 2017). Debian has it as
/// dataset-fashion-mnist.
[[nodiscard]] Dataset fashion_mnist(std::string_view split, const std::filesystem::path& directory = {});

/// Handwritten letters and digits (Cohen, Afshar, Tapson, van Schaik 2017). `part` is "balanced", "byclass", "bymerge",
/// "letters", "digits" or "mnist". The files hold each image with rows and columns exchanged; `upright` puts it right.
/// The letters' labels 1 … 26 become 0 … 25.
[[nodiscard]] Dataset emnist(std::string_view part, std::string_view split, const std::filesystem::path& directory = {},
                             bool upright = true);

/// Colour images 32x32 of ten classes (Krizhevsky 2009), "binary version": data_batch_1.bin … data_batch_5.bin or
/// test_batch.bin, in the directory or its folder cifar-10-batches-bin.
[[nodiscard]] Dataset cifar10(std::string_view split, const std::filesystem::path& directory = {});

/// The same with a hundred classes: train.bin or test.bin, in the directory or its folder cifar-100-binary. The labels
/// are the fine ones; class names come from fine_label_names.txt where it is there.
[[nodiscard]] Dataset cifar100(std::string_view split, const std::filesystem::path& directory = {});

}  // namespace data
}  // namespace concord
