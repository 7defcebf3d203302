// Caffe's .caffemodel: a NetParameter in protocol buffers (caffe.proto), with the blobs of each layer. They are named
// after the layer: "conv1.weight", "conv1.bias". The mean and variance of a BatchNorm are divided by its third blob.
#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <protozero/pbf_reader.hpp>
#include <utility>

#include "concord/core/check.hpp"
#include "concord/core/platform.hpp"
#include "concord/core/utf8.hpp"
#include "concord/weights/reader.hpp"

namespace concord::weights {
namespace {

// Fields of caffe.proto.
namespace net {
constexpr protozero::pbf_tag_type kOldLayers = 2, kLayers = 100;
}
namespace layer {
constexpr protozero::pbf_tag_type kName = 1, kType = 2, kBlobs = 7;
}
namespace old_layer {
constexpr protozero::pbf_tag_type kName = 4, kType = 5, kBlobs = 6;
constexpr std::int64_t kConvolution = 4, kInnerProduct = 14, kDeconvolution = 39;
}  // namespace old_layer
namespace blob {
constexpr protozero::pbf_tag_type kOldDims = 1, kLastOldDim = 4, kData = 5, kShape = 7, kDoubleData = 8;
}

struct Blob {
  const io::Element* element = nullptr;
  std::vector<std::int64_t> dims;
  std::vector<std::byte> numbers;
  std::size_t byte = 0;  // in the file
};

struct Layer {
  std::string name, type;
  std::vector<Blob> blobs;
};

class CaffeReader : public Reader {
 public:
  explicit CaffeReader(const std::filesystem::path& path) : where_(path.string()), file_(read_file(path)) {
    format = "Caffe";
    try {
      protozero::pbf_reader network(file_);
      while (network.next()) {
        at_ = offset_of(network.data().data());
        if (network.tag() == net::kLayers) {
          add(layer_of(message_in(network)));
        } else if (network.tag() == net::kOldLayers) {
          add(old_layer_of(message_in(network)));
        } else {
          network.skip();
        }
      }
    } catch (const protozero::exception& error) {
      fail(at_, fmt::format("not a caffemodel, or damaged: {}", error.what()));
    }
    if (tensors.empty()) fail(0, "no layer has blobs");
  }

  Tensor read_as(const std::string& name, DType type) override {
    const Blob& blob = blobs_.at(name);
    return converted(*blob.element, blob.numbers, Shape(blob.dims), type,
                     fmt::format("{}, byte {}: {}", where_, blob.byte, printable(name)));
  }

 private:
  [[noreturn]] void fail(std::size_t byte, std::string_view what) const {
    throw FormatError(fmt::format("{}, byte {}: {}", where_, byte, what));
  }
  [[nodiscard]] std::size_t offset_of(const char* at) const {
    return at == nullptr ? 0 : static_cast<std::size_t>(at - file_.data());
  }

  // A field in another encoding than its type has: the reader of the message would misread it.
  void check_encoding(const protozero::pbf_reader& message, protozero::pbf_wire_type type) const {
    if (message.wire_type() == type) return;
    fail(offset_of(message.data().data()),
         fmt::format("field {} has another encoding than in caffe.proto", message.tag()));
  }
  [[nodiscard]] protozero::pbf_reader message_in(protozero::pbf_reader& message) const {
    check_encoding(message, protozero::pbf_wire_type::length_delimited);
    return message.get_message();
  }
  [[nodiscard]] std::string text_in(protozero::pbf_reader& message) const {
    check_encoding(message, protozero::pbf_wire_type::length_delimited);
    return message.get_string();
  }
  [[nodiscard]] std::int64_t number_in(protozero::pbf_reader& message) const {
    check_encoding(message, protozero::pbf_wire_type::varint);
    return message.get_int64();
  }

  Layer layer_of(protozero::pbf_reader message) {
    Layer result;
    while (message.next()) {
      switch (message.tag()) {
        case layer::kName: result.name = text_in(message); break;
        case layer::kType: result.type = text_in(message); break;
        case layer::kBlobs: result.blobs.push_back(blob_of(message_in(message))); break;
        default: message.skip();
      }
    }
    return result;
  }

  Layer old_layer_of(protozero::pbf_reader message) {
    Layer result;
    while (message.next()) {
      switch (message.tag()) {
        case old_layer::kName: result.name = text_in(message); break;
        case old_layer::kType: result.type = old_type(number_in(message)); break;
        case old_layer::kBlobs: result.blobs.push_back(blob_of(message_in(message))); break;
        default: message.skip();
      }
    }
    return result;
  }

  static std::string old_type(std::int64_t type) {
    if (type == old_layer::kConvolution) return "Convolution";
    if (type == old_layer::kDeconvolution) return "Deconvolution";
    return type == old_layer::kInnerProduct ? "InnerProduct" : "";
  }

  Blob blob_of(protozero::pbf_reader message) {
    Blob result;
    at_ = result.byte = offset_of(message.data().data());
    std::array<std::int64_t, 4> old_dims{1, 1, 1, 1};
    bool has_old_dims = false, has_shape = false;
    while (message.next()) {
      const protozero::pbf_tag_type tag = message.tag();
      if (tag >= blob::kOldDims && tag <= blob::kLastOldDim) {
        old_dims.at(tag - blob::kOldDims) = number_in(message);
        has_old_dims = true;
      } else if (tag == blob::kShape) {
        read_shape(message_in(message), result);
        has_shape = true;
      } else if (tag == blob::kData || tag == blob::kDoubleData) {
        append_numbers(message, tag == blob::kData ? "F32" : "F64", result);
      } else {
        message.skip();
      }
    }
    if (has_old_dims && !has_shape) result.dims.assign(old_dims.begin(), old_dims.end());
    check_size(result);
    return result;
  }

  void read_shape(protozero::pbf_reader message, Blob& blob) const {
    while (message.next(1)) {
      if (message.wire_type() == protozero::pbf_wire_type::varint) {
        blob.dims.push_back(message.get_int64());
      } else {
        check_encoding(message, protozero::pbf_wire_type::length_delimited);
        for (const std::int64_t dim : message.get_packed_int64()) blob.dims.push_back(dim);
      }
      if (blob.dims.size() > Shape::kMaxRank) fail(blob.byte, "a blob has too many dimensions");
    }
  }

  // Packed, or each number with a tag of its own.
  void append_numbers(protozero::pbf_reader& message, const char* type, Blob& blob) const {
    if (blob.element != nullptr && blob.element != io::find_element(type)) fail(blob.byte, "a blob of two types");
    blob.element = io::find_element(type);
    const auto append = [&](std::span<const std::byte> bytes) {
      blob.numbers.insert(blob.numbers.end(), bytes.begin(), bytes.end());
    };
    if (message.wire_type() == protozero::pbf_wire_type::length_delimited) {
      const auto bytes = message.get_view();
      if (bytes.size() % blob.element->bytes != 0) fail(blob.byte, "a blob ends within a number");
      append(std::as_bytes(std::span(bytes.data(), bytes.size())));
      to_host_order(std::span(blob.numbers).last(bytes.size()), blob.element->bytes);
    } else if (blob.element->bytes == sizeof(float)) {
      check_encoding(message, protozero::pbf_wire_type::fixed32);
      const float number = message.get_float();
      append(std::as_bytes(std::span(&number, 1)));
    } else {
      check_encoding(message, protozero::pbf_wire_type::fixed64);
      const double number = message.get_double();
      append(std::as_bytes(std::span(&number, 1)));
    }
  }

  void check_size(Blob& blob) const {
    if (blob.element == nullptr) blob.element = io::find_element("F32");
    const std::uint64_t count = blob.numbers.size() / blob.element->bytes;
    std::uint64_t wanted = 1;
    for (const std::int64_t dim : blob.dims) {
      const bool is_possible = dim >= 0 && (dim == 0 || wanted <= count / static_cast<std::uint64_t>(dim));
      if (!is_possible) fail(blob.byte, fmt::format("a blob has {} numbers, fewer than its shape", count));
      wanted *= static_cast<std::uint64_t>(dim);
    }
    if (wanted != count) fail(blob.byte, fmt::format("a blob has {} numbers, its shape {}", count, wanted));
  }

  void add(Layer layer) {
    std::vector<Blob>& blobs = layer.blobs;
    if (layer.type == "BatchNorm" && blobs.size() == 3) {
      unscale(blobs);
      add(layer.name + ".running_mean", std::move(blobs[0]));
      add(layer.name + ".running_var", std::move(blobs[1]));
      return;
    }
    const bool is_product = layer.type == "InnerProduct";
    const bool is_named = is_product || layer.type == "Convolution" || layer.type == "Deconvolution" ||
                          layer.type == "Scale" || layer.type == "PReLU" || layer.type == "Embed" ||
                          layer.type == "Bias";
    for (std::size_t i = 0; i < blobs.size(); ++i) {
      // Before shapes had any rank, all had four dimensions.
      const std::size_t rank = i == 0 && is_product ? 2 : 1;
      const bool is_flat = is_product || i > 0;
      while (is_flat && blobs[i].dims.size() > rank && blobs[i].dims[0] == 1)
        blobs[i].dims.erase(blobs[i].dims.begin());
      const std::string part = !is_named || i > 1 ? fmt::format("{}", i) : i == 0 ? "weight" : "bias";
      add(fmt::format("{}.{}", layer.name, part), std::move(blobs[i]));
    }
  }

  void add(std::string name, Blob blob) {
    if (!is_utf8(name)) fail(blob.byte, fmt::format("the name of a layer is not UTF-8: {}", printable(name)));
    const std::size_t byte = blob.byte;
    const std::string where = fmt::format("{}, byte {}: {}", where_, byte, printable(name));
    tensors.emplace(name, io::TensorEntry{blob.element->name, shape_of(blob.dims, where)});
    if (!blobs_.emplace(name, std::move(blob)).second) fail(byte, fmt::format("{} is there twice", printable(name)));
  }

  // Mean and variance are sums; the third blob says of how many parts.
  void unscale(std::vector<Blob>& blobs) const {
    for (const Blob& blob : blobs) {
      if (std::string_view(blob.element->name) != "F32") fail(blob.byte, "a BatchNorm of another type than float");
    }
    if (blobs[2].numbers.size() != sizeof(float))
      fail(blobs[2].byte, "the third blob of a BatchNorm is not one number");
    float parts = 0;
    std::memcpy(&parts, blobs[2].numbers.data(), sizeof parts);
    const float scale = parts == 0 ? 0 : 1 / parts;
    for (std::size_t i = 0; i < 2; ++i) {
      for (std::size_t at = 0; at < blobs[i].numbers.size(); at += sizeof(float)) {
        float value = 0;
        std::memcpy(&value, blobs[i].numbers.data() + at, sizeof value);
        value *= scale;
        std::memcpy(blobs[i].numbers.data() + at, &value, sizeof value);
      }
    }
  }

  const std::string where_;
  const std::string file_;
  std::size_t at_ = 0;
  std::map<std::string, Blob> blobs_;
};

}  // namespace

bool is_caffe(std::string_view begin) {
  // A name, a layer of the old form, or one of the new. In a safetensors file the ninth byte is a brace.
  const bool is_tag = begin.starts_with('\n') || begin.starts_with('\x12') || begin.starts_with("\xa2\x06");
  return is_tag && begin.size() > 8 && begin[8] != '{';
}

std::unique_ptr<Reader> open_caffe(const std::filesystem::path& path) { return std::make_unique<CaffeReader>(path); }

}  // namespace concord::weights
