// Which sizes of a graph are multiples of the batch.
#include "concord/onnx/export/sizes.hpp"

#include <algorithm>
#include <optional>

#include "concord/core/check.hpp"
#include "concord/ops/conv.hpp"
#include "concord/ops/copy.hpp"
#include "concord/ops/pointwise.hpp"

namespace concord::onnx {
namespace {

/// Whether two operators differ in nothing but shapes, which the sizes tell.
bool differ_in_shapes_alone(const Operator& a, const Operator& b) {
  if (a.name() != b.name()) return false;
  if (a.attributes() == b.attributes()) return true;
  if (dynamic_cast<const ops::Reshape*>(&a) != nullptr) return dynamic_cast<const ops::Reshape*>(&b) != nullptr;
  if (const auto* slice = dynamic_cast<const ops::Slice*>(&a)) {
    const auto* other = dynamic_cast<const ops::Slice*>(&b);
    return other != nullptr && slice->start() == other->start() && slice->step() == other->step();
  }
  if (const auto* pad = dynamic_cast<const ops::Pad*>(&a)) {
    const auto* other = dynamic_cast<const ops::Pad*>(&b);
    return other != nullptr && pad->before() == other->before() && pad->step() == other->step() &&
           pad->value() == other->value();
  }
  if (const auto* conv = dynamic_cast<const ops::ConvBackwardData*>(&a)) {
    const auto* other = dynamic_cast<const ops::ConvBackwardData*>(&b);
    return other != nullptr && conv->options() == other->options();
  }
  if (const auto* pointwise = dynamic_cast<const ops::Pointwise*>(&a)) {
    const auto* other = dynamic_cast<const ops::Pointwise*>(&b);
    return other != nullptr && pointwise->expression().str() == other->expression().str() &&
           pointwise->types() == other->types();
  }
  return false;
}

std::optional<Size> size_of(std::int64_t a, std::int64_t batch_a, std::int64_t b, std::int64_t batch_b) {
  if (a == b) return Size{a, false};
  if (a % batch_a == 0 && b % batch_b == 0 && a / batch_a == b / batch_b) return Size{a / batch_a, true};
  return std::nullopt;
}

}  // namespace

Sizes fixed_sizes(const Shape& shape) {
  Sizes sizes;
  for (const std::int64_t dim : shape.dims()) sizes.push_back({dim, false});
  return sizes;
}

bool is_fixed(const Sizes& sizes) { return std::ranges::none_of(sizes, &Size::free); }

Shape shape_of(const Sizes& sizes) {
  std::vector<std::int64_t> dims;
  for (const Size& size : sizes) dims.push_back(size.number);
  return Shape(std::move(dims));
}

Sizes broadcast(const Sizes& a, const Sizes& b) {
  Sizes all = a.size() < b.size() ? b : a;
  const Sizes& few = a.size() < b.size() ? a : b;
  for (std::size_t i = 0; i < few.size(); ++i) {
    Size& size = all[all.size() - 1 - i];
    if (size == Size{}) size = few[few.size() - 1 - i];
  }
  return all;
}

GraphSizes sizes_of(const Graph& graph) {
  GraphSizes all;
  for (std::int32_t id = 0; id < graph.size(); ++id) {
    auto& outputs = all.nodes.emplace_back();
    for (const TensorSpec& spec : graph.node(id).outputs) outputs.push_back({fixed_sizes(spec.shape)});
  }
  return all;
}

GraphSizes sizes_of(const Graph& a, std::int64_t batch_a, const Graph& b, std::int64_t batch_b) {
  GraphSizes all = sizes_of(a);
  const auto expect = [](bool same, const Node& node) {
    CONCORD_CHECK(same, NotSupported,
                  "the network cannot be exported with a free batch: at '{}' it does another thing with another batch; "
                  "a fixed batch works",
                  node.name);
  };
  for (std::int32_t id = 0; id < a.size(); ++id) {
    const Node& node = a.node(id);
    expect(id < b.size(), node);
    const Node& other = b.node(id);
    expect(bool(node.op) == bool(other.op) && node.inputs.size() == other.inputs.size() &&
               node.outputs.size() == other.outputs.size(),
           node);
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      expect(
          node.inputs[i].node_id() == other.inputs[i].node_id() && node.inputs[i].output() == other.inputs[i].output(),
          node);
    }
    for (std::size_t k = 0; k < node.outputs.size(); ++k) {
      GraphSizes::Output& output = all.nodes[static_cast<std::size_t>(id)][k];
      const auto dims = node.outputs[k].shape.dims(), other_dims = other.outputs[k].shape.dims();
      expect(dims.size() == other_dims.size(), node);
      for (std::size_t d = 0; d < dims.size(); ++d) {
        const auto size = size_of(dims[d], batch_a, other_dims[d], batch_b);
        if (size) {
          output.sizes[d] = *size;
        } else {
          output.reason = fmt::format("a size is {} for a batch of {} and {} for {}, which is no multiple", dims[d],
                                      batch_a, other_dims[d], batch_b);
        }
      }
    }
    if (node.op && !differ_in_shapes_alone(*node.op, *other.op)) {
      for (auto& output : all.nodes[static_cast<std::size_t>(id)]) {
        output.reason = fmt::format("it depends on the batch: {} for a batch of {}, {} for {}", node.op->attributes(),
                                    batch_a, other.op->attributes(), batch_b);
      }
    }
  }
  return all;
}

}  // namespace concord::onnx
