// From the values of a pickle to named tensors, and from storages to their elements.
#include "concord/weights/torch_state.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include "concord/core/check.hpp"
#include "concord/core/utf8.hpp"

namespace concord::weights {
namespace {

using Kind = Pickled::Kind;

constexpr std::size_t kDeepest = 16;
constexpr std::size_t kMostVisits = 200'000;  // values may be reached on more ways than a file has bytes
constexpr std::size_t kLongestName = 1024;

struct Wrapper {
  std::string_view key;
  bool may_be_layer = true;  // whether a network may have a layer of this name
};
// Of the dictionaries of a checkpoint, in the order in which they are taken.
constexpr std::array<Wrapper, 13> kWrappers{{{"state_dict", false},
                                             {"model_state_dict", false},
                                             {"model_state", false},
                                             {"model"},
                                             {"module"},
                                             {"network"},
                                             {"net"},
                                             {"weights"},
                                             {"params"},
                                             {"generator"},
                                             {"state_dict_ema", false},
                                             {"model_ema", false},
                                             {"ema"}}};

class Collector {
 public:
  Collector(const Pickle& pickle, std::string where) : pickle_(pickle), where_(std::move(where)) {}

  void collect(const Pickled& root) {
    const Pickled& state = unwrapped(root);
    add(state, "", 0);
    CONCORD_CHECK(!result.tensors.empty(), FormatError, "{}: it has no tensors", where_);
    if (!left_out_.empty()) result.notes.push_back(fmt::format("left out: {}", listed()));
  }

  TorchState result = {};

 private:
  static std::optional<std::string> key_of(const Pickled& key) {
    if (key.kind == Kind::text && is_utf8(key.text)) return std::string(key.text);
    if (key.kind == Kind::whole) return fmt::format("{}", key.whole);
    return std::nullopt;
  }

  static const Pickled* find(const Pickled& dict, std::string_view key) {
    const Pickled* found = nullptr;  // the last, as in Python
    for (std::size_t i = 0; i + 1 < dict.items.size(); i += 2) {
      if (dict.items[i]->kind == Kind::text && dict.items[i]->text == key) found = dict.items[i + 1];
    }
    return found;
  }

  /// Whether a tensor is somewhere in a value.
  bool holds_tensor(const Pickled& value, std::size_t depth) {
    if (value.kind == Kind::tensor) return true;
    if (depth == 0 || ++searched_ > kMostVisits) return false;
    const std::size_t first = value.kind == Kind::dict ? 1 : 0, step = first + 1;
    if (value.kind != Kind::dict && value.kind != Kind::list && value.kind != Kind::tuple) return false;
    for (std::size_t i = first; i < value.items.size(); i += step) {
      if (holds_tensor(*value.items[i], depth - 1)) return true;
    }
    return false;
  }

  /// Whether a dictionary has tensors of its own of more than one number: checkpoints have single ones, such as the
  /// best accuracy, beside the weights.
  [[nodiscard]] bool has_arrays(const Pickled& dict) const {
    for (std::size_t i = 1; i < dict.items.size(); i += 2) {
      if (dict.items[i]->kind != Kind::tensor) continue;
      const std::vector<std::int64_t>& dims = pickle_.tensor(*dict.items[i]).dims;
      if (std::ranges::any_of(dims, [](std::int64_t size) { return size > 1; })) return true;
    }
    return false;
  }

  const Pickled& unwrapped(const Pickled& root) {
    const Pickled* at = &root;
    for (std::size_t depth = 0; depth < kDeepest && at->kind == Kind::dict; ++depth) {
      const bool is_network = has_arrays(*at);
      const Pickled* inner = nullptr;
      std::string_view name;
      for (const Wrapper& wrapper : kWrappers) {
        if (is_network && wrapper.may_be_layer) continue;
        const Pickled* const found = find(*at, wrapper.key);
        if (found == nullptr || found->kind != Kind::dict || !holds_tensor(*found, kDeepest)) continue;
        inner = found;
        name = wrapper.key;
        break;
      }
      if (inner == nullptr) break;
      result.notes.push_back(fmt::format("the tensors are those of \"{}\"", name));
      for (std::size_t i = 0; i + 1 < at->items.size(); i += 2) {
        if (at->items[i + 1] != inner) leave_out(key_of(*at->items[i]).value_or("?"));
      }
      at = inner;
    }
    return *at;
  }

  void add(const Pickled& value, const std::string& name, std::size_t depth) {
    CONCORD_CHECK(depth <= kDeepest, FormatError, "{}: dictionaries within each other more than {} deep", where_,
                  kDeepest);
    CONCORD_CHECK(++visits_ <= kMostVisits, FormatError, "{}: more than {} values", where_, kMostVisits);
    CONCORD_CHECK(name.size() <= kLongestName, FormatError, "{}: a name of {} bytes: {}", where_, name.size(),
                  printable(name));
    const std::string prefix = name.empty() ? "" : name + ".";
    if (value.kind == Kind::tensor) {
      result.tensors[name.empty() ? "tensor" : name] = pickle_.tensor(value);
    } else if (value.kind == Kind::dict) {
      for (std::size_t i = 0; i + 1 < value.items.size(); i += 2) {
        const auto key = key_of(*value.items[i]);
        if (key) {
          add(*value.items[i + 1], prefix + *key, depth + 1);
        } else {
          leave_out(prefix + "?");
        }
      }
    } else if (value.kind == Kind::list || value.kind == Kind::tuple) {
      for (std::size_t i = 0; i < value.items.size(); ++i)
        add(*value.items[i], prefix + fmt::format("{}", i), depth + 1);
    } else {
      leave_out(name);
    }
  }

  void leave_out(const std::string& name) {
    ++left_out_count_;
    constexpr std::size_t kShown = 8;
    if (left_out_.size() < kShown) left_out_.push_back(printable(name));
  }
  [[nodiscard]] std::string listed() const {
    const std::size_t more = left_out_count_ - left_out_.size();
    return fmt::format("{}{}", fmt::join(left_out_, ", "), more > 0 ? fmt::format(" and {} more", more) : "");
  }

  const Pickle& pickle_;
  const std::string where_;
  std::size_t visits_ = 0, searched_ = 0, left_out_count_ = 0;
  std::vector<std::string> left_out_;
};

}  // namespace

TorchState torch_state(const Pickle& pickle, const std::string& where) {
  Collector collector(pickle, where);
  collector.collect(pickle.value());
  return std::move(collector.result);
}

std::vector<std::byte> gather(const PickledTensor& tensor, std::span<const std::byte> storage) {
  const std::size_t width = tensor.element->bytes;
  const std::size_t unit = tensor.storage.element == nullptr ? 1 : tensor.storage.element->bytes;
  const Shape shape(tensor.dims);
  std::vector<std::byte> result(static_cast<std::size_t>(shape.elements()) * width);
  if (result.empty()) return result;
  const std::byte* const first = storage.data() + tensor.storage.first * unit + tensor.offset * width;
  const std::vector<std::int64_t> dense = shape.strides();
  bool is_dense = true;
  for (std::size_t i = 0; i < dense.size(); ++i) is_dense &= tensor.dims[i] == 1 || tensor.strides[i] == dense[i];
  if (is_dense) {
    std::memcpy(result.data(), first, result.size());
    return result;
  }
  std::vector<std::int64_t> index(tensor.dims.size(), 0);
  std::int64_t at = 0;  // in the storage
  for (std::size_t to = 0; to < result.size(); to += width) {
    std::memcpy(result.data() + to, first + static_cast<std::size_t>(at) * width, width);
    for (std::size_t axis = index.size(); axis-- > 0;) {
      at += tensor.strides[axis];
      if (++index[axis] < tensor.dims[axis]) break;
      at -= tensor.strides[axis] * tensor.dims[axis];
      index[axis] = 0;
    }
  }
  return result;
}

}  // namespace concord::weights
