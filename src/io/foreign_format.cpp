// By the first bytes; by the ending of the name where a format has none of its own.
#include "concord/io/foreign_format.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "concord/core/text.hpp"

namespace concord::io {
namespace {

using namespace std::string_view_literals;

struct Format {
  std::string_view begin;                        // of the file
  std::array<std::string_view, 5> endings = {};  // of its name; none: whatever it is
  std::string_view what, conversion;
};

constexpr std::string_view kConvert = "concord convert FILE weights.safetensors";
constexpr std::string_view kNumpy = "in Python: safetensors.numpy.save_file(dict(numpy.load(FILE)), ...)";
constexpr std::string_view kAny =
    "read it with its own library and write the tensors with the Python package safetensors";

constexpr Format kFormats[] = {
    {"PK\x03\x04"sv, {".npz"}, "a NumPy archive (.npz)", kNumpy},
    {"PK\x03\x04"sv, {".keras"}, "a Keras file (.keras)", kConvert},
    {"PK\x03\x04"sv, {}, "a PyTorch file (.pth, .pt: a zip archive with pickled tensors)", kConvert},
    {"\x80\x02"sv,
     {".pth", ".pt", ".bin", ".ckpt", ".tar"},
     "a PyTorch file from before version 1.6 (a pickle)",
     kConvert},
    {"\x80"sv, {".pkl", ".pickle", ".pth", ".pt", ".ckpt"}, "a Python pickle", kConvert},
    {"\x89HDF\r\n\x1a\n"sv, {}, "an HDF5 file (.h5, as Keras writes it)", kConvert},
    {"\x93NUMPY"sv, {}, "a NumPy array (.npy)", kNumpy},
    {"GGUF"sv, {}, "a GGUF file", kAny},
    {"\x1f\x8b"sv, {}, "a gzip archive", "unpack it first"},
    {"\xfd"
     "7zXZ"sv,
     {},
     "an xz archive",
     "unpack it first"},
    {"version https://git-lfs"sv, {}, "a Git LFS pointer instead of the file", "`git lfs pull` gets the file"},
    {"<!DOCTYPE"sv, {}, "an HTML page, perhaps from a failed download", "download the file again"},
    {"<html"sv, {}, "an HTML page, perhaps from a failed download", "download the file again"},
    {""sv, {".onnx"}, "an ONNX file", "in Python: the initializers of onnx.load(FILE).graph, written with safetensors"},
    {""sv, {".pth", ".pt"}, "named like a PyTorch file", kConvert},
    {""sv, {".h5", ".hdf5", ".keras"}, "named like a Keras file", kConvert},
    {""sv, {".pb", ".tflite"}, "a TensorFlow file", kAny},
    {""sv, {".caffemodel"}, "named like Caffe's weights", kConvert},
    {""sv, {".prototxt"}, "Caffe's description of a network", "its weights are in a .caffemodel file"},
    {""sv, {".npz", ".npy"}, "named like a NumPy file", kNumpy},
};

}  // namespace

std::string foreign_format(const std::filesystem::path& path, std::string_view begin) {
  const std::string ending = lower(path.extension().string());
  for (const Format& format : kFormats) {
    const bool is_named =
        format.endings[0].empty() || (!ending.empty() && std::ranges::count(format.endings, ending) > 0);
    if (is_named && begin.starts_with(format.begin)) {
      return fmt::format("it is {}, not safetensors. To convert it: {}", format.what, format.conversion);
    }
  }
  return {};
}

}  // namespace concord::io
