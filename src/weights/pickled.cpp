// The arguments of PyTorch's functions for storages and tensors; a window has to be inside its storage.
#include "concord/weights/pickled.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "concord/weights/torch_globals.hpp"

namespace concord::weights {
namespace {

using ValueKind = Pickled::Kind;

constexpr std::uint64_t kMostElements = std::uint64_t{1} << 60;

std::uint64_t count_of(const Pickled* value, std::string_view what) {
  check_pickle(value->kind == ValueKind::whole && value->whole >= 0,
               fmt::format("the {} of a tensor is not a number", what));
  return static_cast<std::uint64_t>(value->whole);
}

std::vector<std::int64_t> counts_of(const Pickled* value, std::string_view what) {
  check_pickle(value->kind == ValueKind::tuple || value->kind == ValueKind::list,
               fmt::format("the {} of a tensor is no list", what));
  check_pickle(value->items.size() <= Shape::kMaxRank,
               fmt::format("a tensor of more than {} dimensions", Shape::kMaxRank));
  std::vector<std::int64_t> counts;
  for (const Pickled* item : value->items) counts.push_back(static_cast<std::int64_t>(count_of(item, what)));
  return counts;
}

void check_window(const PickledTensor& tensor, std::uint64_t elements) {
  constexpr std::string_view kExpanded = "a tensor has more elements than its storage; expanded tensors are not read";
  constexpr std::string_view kBeyond = "a tensor reaches beyond its storage";
  check_pickle(elements < kMostElements, "a storage is too large");
  check_pickle(tensor.offset <= elements, kBeyond);
  if (std::ranges::count(tensor.dims, 0) > 0) {
    check_pickle(std::ranges::all_of(tensor.dims, [](std::int64_t size) { return size < 1 << 30; }), kExpanded);
    return;
  }
  std::uint64_t count = 1, last = tensor.offset;
  for (std::size_t i = 0; i < tensor.dims.size(); ++i) {
    const auto size = static_cast<std::uint64_t>(tensor.dims[i]);
    const auto stride = static_cast<std::uint64_t>(tensor.strides[i]);
    check_pickle(count <= elements / size, kExpanded);
    count *= size;
    if (size == 1) continue;
    check_pickle(stride == 0 || size - 1 <= elements / stride, kBeyond);
    last += (size - 1) * stride;
    check_pickle(last < elements, kBeyond);
  }
  check_pickle(last < elements, kBeyond);
}

}  // namespace

void check_pickle(bool right, std::string_view what) {
  if (!right) throw PickleProblem{std::string(what)};
}

PickledStorage storage_of(const Pickled& id) {
  const std::vector<Pickled*>& items = id.items;
  check_pickle(id.kind == ValueKind::tuple && (items.size() == 5 || items.size() == 6) &&
                   items[0]->kind == ValueKind::text && items[0]->text == "storage" &&
                   items[1]->kind == ValueKind::global && items[2]->kind == ValueKind::text,
               "a reference that is no storage");
  PickledStorage storage;
  const auto element = element_of_storage(items[1]->text);
  check_pickle(element.has_value(), fmt::format("a storage of type {}", items[1]->text));
  storage.element = *element;
  storage.key = items[2]->text;
  storage.elements = storage.whole = count_of(items[4], "storage");
  if (items.size() == 6 && items[5]->kind != ValueKind::none) {
    const std::vector<Pickled*>& part = items[5]->items;
    check_pickle(items[5]->kind == ValueKind::tuple && part.size() == 3, "a part of a storage that is no triple");
    storage.first = count_of(part[1], "part of a storage");
    const std::uint64_t size = count_of(part[2], "part of a storage");
    check_pickle(storage.first <= storage.elements && size <= storage.elements - storage.first,
                 "a part of a storage reaches beyond it");
    storage.elements = size;
  }
  return storage;
}

PickledTensor tensor_of(const std::vector<Pickled*>& arguments, bool has_type,
                        const std::vector<PickledStorage>& storages) {
  check_pickle(arguments.size() >= (has_type ? 7U : 4U) && arguments[0]->kind == ValueKind::storage,
               "a tensor without a storage");
  PickledTensor tensor;
  tensor.storage = storages[static_cast<std::size_t>(arguments[0]->whole)];
  tensor.element = tensor.storage.element;
  std::uint64_t elements = tensor.storage.elements;
  if (has_type) {
    tensor.element = arguments[6]->kind == ValueKind::global ? element_of_dtype(arguments[6]->text) : nullptr;
    if (tensor.element != nullptr) {
      const std::uint64_t unit = tensor.storage.element == nullptr ? 1 : tensor.storage.element->bytes;
      check_pickle(elements <= std::numeric_limits<std::uint64_t>::max() / unit, "a storage is too large");
      elements = elements * unit / tensor.element->bytes;
    }
  }
  check_pickle(tensor.element != nullptr, "a tensor of an unknown type");
  tensor.offset = count_of(arguments[1], "offset");
  tensor.dims = counts_of(arguments[2], "size");
  tensor.strides = counts_of(arguments[3], "stride");
  check_pickle(tensor.dims.size() == tensor.strides.size(), "a tensor with other numbers of sizes and strides");
  check_window(tensor, elements);
  return tensor;
}

}  // namespace concord::weights
