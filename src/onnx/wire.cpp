// What the structs of the wire format can answer themselves.
#include "concord/onnx/wire.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace concord::onnx {
namespace {

struct ElementEntry {
  const char* name;
  std::size_t bits;
};
constexpr std::array<ElementEntry, 24> kElements{
    {{"undefined", 0},      {"float", 32},    {"uint8", 8},        {"int8", 8},           {"uint16", 16},
     {"int16", 16},         {"int32", 32},    {"int64", 64},       {"string", 0},         {"bool", 8},
     {"float16", 16},       {"double", 64},   {"uint32", 32},      {"uint64", 64},        {"complex64", 64},
     {"complex128", 128},   {"bfloat16", 16}, {"float8e4m3fn", 8}, {"float8e4m3fnuz", 8}, {"float8e5m2", 8},
     {"float8e5m2fnuz", 8}, {"uint4", 4},     {"int4", 4},         {"float4e2m1", 4}}};

const ElementEntry* element_entry(ElementType type) {
  const auto index = static_cast<std::int32_t>(type);
  return index >= 0 && index < static_cast<std::int32_t>(kElements.size()) ? &kElements[static_cast<std::size_t>(index)]
                                                                           : nullptr;
}

}  // namespace

std::string name_of(ElementType type) {
  const ElementEntry* const entry = element_entry(type);
  return entry != nullptr ? entry->name : fmt::format("type {}", static_cast<std::int32_t>(type));
}

std::size_t bits_of(ElementType type) {
  const ElementEntry* const entry = element_entry(type);
  return entry != nullptr ? entry->bits : 0;
}

Bytes bytes_of(std::span<const std::byte> bytes) {
  auto copy = std::make_shared<std::vector<std::byte>>(bytes.begin(), bytes.end());
  const std::span<const std::byte> data = *copy;
  return {std::move(copy), data};
}

std::int64_t TensorProto::elements() const {
  std::int64_t product = 1;
  for (const std::int64_t dim : dims) product *= dim;
  return product;
}

GraphList::GraphList() = default;
GraphList::GraphList(GraphList&& other) noexcept = default;
GraphList::~GraphList() = default;
GraphList::GraphList(const GraphList& other)
    : graphs_(other.graphs_ ? std::make_unique<std::vector<GraphDef>>(*other.graphs_) : nullptr) {}

GraphList& GraphList::operator=(GraphList other) noexcept {
  graphs_ = std::move(other.graphs_);
  return *this;
}

void GraphList::push_back(GraphDef graph) { emplace_back() = std::move(graph); }

GraphDef& GraphList::emplace_back() {
  if (!graphs_) graphs_ = std::make_unique<std::vector<GraphDef>>();
  return graphs_->emplace_back();
}

std::size_t GraphList::size() const { return graphs_ ? graphs_->size() : 0; }
GraphDef& GraphList::operator[](std::size_t i) { return graphs_->at(i); }
const GraphDef& GraphList::operator[](std::size_t i) const { return graphs_->at(i); }
GraphDef* GraphList::begin() { return graphs_ ? graphs_->data() : nullptr; }
GraphDef* GraphList::end() { return graphs_ ? graphs_->data() + graphs_->size() : nullptr; }
const GraphDef* GraphList::begin() const { return graphs_ ? graphs_->data() : nullptr; }
const GraphDef* GraphList::end() const { return graphs_ ? graphs_->data() + graphs_->size() : nullptr; }

const Attribute* NodeDef::find(std::string_view attribute) const {
  const auto found = std::ranges::find(attributes, attribute, &Attribute::name);
  return found == attributes.end() ? nullptr : &*found;
}

}  // namespace concord::onnx
