// Convolutions whose patches do not overlap, such as the first one of a vision transformer, as matrix multiplications
// of the patches.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "concord/compile/lowered.hpp"
#include "concord/ops/conv.hpp"
#include "concord/ops/copy.hpp"
#include "concord/ops/matmul.hpp"
#include "concord/ops/pointwise.hpp"

namespace concord {
namespace {

using Dims = std::vector<std::int64_t>;

/// A convolution, or the gradient of its weights: of `rows` patches of `values` numbers each.
struct Patches {
  Shape src, dst;
  std::int64_t rows, values;
};

class PatchProducts {
 public:
  PatchProducts(Lowered& program, const Device& device, Precision precision)
      : program_(program), device_(device), precision_(precision), readers_(program.values.size(), 0) {
    for (const LoweredNode& node : program.nodes) {
      for (const ValueId id : node.inputs) ++readers_[static_cast<std::size_t>(id)];
    }
    for (const LoweredAssignment& assignment : program.assignments) {
      readers_[static_cast<std::size_t>(assignment.value)] += 2;
    }
    for (std::size_t v = 0; v < readers_.size(); ++v) readers_[v] += program.values[v].keep ? 2 : 0;
  }

  void run() {
    const std::vector<LoweredNode> nodes = std::exchange(program_.nodes, {});
    std::map<std::size_t, std::size_t> waiting;  // a convolution, by the formula behind it that it is computed with
    for (std::size_t n = 0; n < nodes.size(); ++n) {
      const LoweredNode& node = nodes[n];
      if (const auto found = waiting.find(n); found != waiting.end()) {
        const LoweredNode& conv = nodes[found->second];
        add_product(conv, *patches_of(conv), &node);
        continue;
      }
      const std::optional<Patches> found = patches_of(node);
      if (!found) {
        program_.nodes.push_back(node);
      } else if (dynamic_cast<const ops::Conv*>(node.op.get()) == nullptr) {
        add_weights_gradient(node, *found);
      } else if (const auto behind = formula_behind(nodes, n); behind && waiting.emplace(*behind, n).second) {
        continue;  // no other convolution waits for that formula
      } else {
        add_product(node, *found, nullptr);
      }
    }
  }

 private:
  [[nodiscard]] const Shape& shape(ValueId id) const { return program_.value(id).spec.shape; }

  [[nodiscard]] std::optional<Patches> patches_of(const LoweredNode& node) const {
    const auto* const conv = dynamic_cast<const ops::ConvFamily*>(node.op.get());
    const bool is_gradient = dynamic_cast<const ops::ConvBackwardWeights*>(conv) != nullptr;
    if ((!is_gradient && dynamic_cast<const ops::Conv*>(conv) == nullptr) || program_.is_empty(node)) return {};
    const TensorSpec& src = program_.value(node.inputs[0]).spec;
    const TensorSpec& weights = program_.value(is_gradient ? node.outputs[0] : node.inputs[1]).spec;
    const ops::ConvSizes s = conv->sizes(program_.specs(node.inputs));
    const ops::ConvOptions& options = conv->options();
    const bool is_apart = options.groups == 1 && !s.is_padded() && s.od * s.kd == s.d && s.oh * s.kh == s.h &&
                          s.ow * s.kw == s.w && has_stride(options, weights.shape);
    if (!is_apart || s.taps() == 1 || !device_.multiplies_patches(src, weights, precision_)) return {};
    return Patches{src.shape, shape(is_gradient ? node.inputs[1] : node.outputs[0]), s.n * s.dst_plane(),
                   s.c * s.taps()};
  }

  /// Whether steps are as long as the kernel, whose numbers are neighbours.
  static bool has_stride(const ops::ConvOptions& options, const Shape& weights) {
    for (std::size_t axis = 2; axis < weights.rank(); ++axis) {
      const std::size_t place = axis + options.stride.size() - weights.rank();  // the last axes of a volume
      if (weights[axis] > 1 && options.dilation[place] != 1) return false;
      if (options.stride[place] != weights[axis]) return false;
    }
    return true;
  }

  /// The node that alone reads the convolution, if it is a formula of its result and of numbers by channel.
  [[nodiscard]] std::optional<std::size_t> formula_behind(const std::vector<LoweredNode>& nodes,
                                                          std::size_t conv) const {
    const ValueId result = nodes[conv].outputs[0];
    if (readers_[static_cast<std::size_t>(result)] != 1) return {};
    const auto reads = [&](const LoweredNode& node) {
      return std::ranges::find(node.inputs, result) != node.inputs.end();
    };
    const auto found = std::find_if(nodes.begin() + static_cast<std::ptrdiff_t>(conv), nodes.end(), reads);
    if (found == nodes.end()) return {};
    const auto* const formula = dynamic_cast<const ops::Pointwise*>(found->op.get());
    if (formula == nullptr || formula->expression().uses_coordinates() || found->outputs.size() != 1) return {};
    const Shape& whole = shape(result);
    const auto is_by_channel = [&](ValueId id) {
      const Shape& own = shape(id);
      return id == result || own.elements() == 1 ||
             (own.elements() == whole[1] && own.rank() + 1 >= whole.rank() &&
              own[own.rank() + 1 - whole.rank()] == own.elements());
    };
    if (shape(found->outputs[0]) != whole || !std::ranges::all_of(found->inputs, is_by_channel)) return {};
    return static_cast<std::size_t>(found - nodes.begin());
  }

  /// Adds a node that makes `result`, or else a new value: a part of what `of` makes, and so called, because replays
  /// know values by their names.
  ValueId add(const LoweredNode& of, std::string_view part, std::shared_ptr<const Operator> op,
              std::vector<ValueId> inputs, ValueId result = -1) {
    LoweredNode& node = program_.nodes.emplace_back();
    node.name = of.name;
    node.pass = of.pass;
    node.op = std::move(op);
    if (result < 0) {
      result = static_cast<ValueId>(program_.values.size());
      const TensorSpec spec = node.op->infer(program_.specs(inputs)).front();
      const std::string name = program_.value(of.outputs[0]).name;
      LoweredValue& value = program_.values.emplace_back();
      value.name = fmt::format("{}{}", name, part);
      value.spec = spec;
    }
    if (node.is_alias()) program_.value(result).alias_of = inputs[0];
    node.inputs = std::move(inputs);
    node.outputs = {result};
    return result;
  }
  ValueId reshaped(const LoweredNode& of, std::string_view part, ValueId value, const Shape& to, ValueId result = -1) {
    return add(of, part, std::make_shared<const ops::Reshape>(to), {value}, result);
  }
  ValueId transposed(const LoweredNode& of, std::string_view part, ValueId value, std::vector<std::size_t> order,
                     ValueId result = -1) {
    return add(of, part, std::make_shared<const ops::Transpose>(std::move(order)), {value}, result);
  }

  /// (N, C, …) as (rows, values): made once for all that read the image.
  ValueId patches(const LoweredNode& of, const Patches& p) {
    const auto [found, is_new] =
        patches_.try_emplace({of.inputs[0], Dims(p.dst.dims().begin() + 2, p.dst.dims().end())}, -1);
    if (!is_new) return found->second;
    Dims cut{p.src[0], p.src[1]};
    std::vector<std::size_t> order{0}, inner{1};
    for (std::size_t axis = 2; axis < p.src.rank(); ++axis) {
      order.push_back(cut.size());
      inner.push_back(cut.size() + 1);
      cut.insert(cut.end(), {p.dst[axis], p.src[axis] / p.dst[axis]});
    }
    order.insert(order.end(), inner.begin(), inner.end());
    const ValueId moved = transposed(of, "/moved", reshaped(of, "/cut", of.inputs[0], Shape(cut)), order);
    return found->second = reshaped(of, "/patches", moved, Shape{p.rows, p.values});
  }

  void add_product(const LoweredNode& conv, const Patches& p, const LoweredNode* behind) {
    const std::int64_t channels = p.dst[1];
    const ValueId weights = reshaped(conv, "/weights", conv.inputs[1], Shape{channels, p.values});
    ValueId rows = add(conv, "/rows", std::make_shared<const ops::Matmul>(false, true), {patches(conv, p), weights});
    if (behind != nullptr) {
      const auto& formula = dynamic_cast<const ops::Pointwise&>(*behind->op);
      std::vector<ValueId> inputs;
      for (const ValueId id : behind->inputs) {
        const std::int64_t own = shape(id).elements();
        inputs.push_back(id == conv.outputs[0] ? rows : reshaped(*behind, "/operand", id, Shape{own}));
      }
      rows = add(*behind, "/rows",
                 std::make_shared<const ops::Pointwise>(formula.expression(), formula.types(),
                                                        std::string(formula.name()), shape(rows)),
                 std::move(inputs));
    }
    const LoweredNode& last = behind != nullptr ? *behind : conv;
    Dims dims{p.dst[0]};
    std::vector<std::size_t> order{0, p.dst.rank() - 1};
    for (std::size_t axis = 2; axis < p.dst.rank(); ++axis) {
      dims.push_back(p.dst[axis]);
      order.push_back(axis - 1);
    }
    dims.push_back(channels);
    transposed(last, "", reshaped(last, "/places", rows, Shape(dims)), order, last.outputs[0]);
  }

  void add_weights_gradient(const LoweredNode& node, const Patches& p) {
    const ValueId src = patches(node, p);
    std::vector<std::size_t> order{0};
    for (std::size_t axis = 2; axis < p.dst.rank(); ++axis) order.push_back(axis);
    order.push_back(1);
    const ValueId diff =
        reshaped(node, "/rows", transposed(node, "/places", node.inputs[1], order), Shape{p.rows, p.dst[1]});
    // The same numbers as the result, so with its name.
    const ValueId product = add(node, "", std::make_shared<const ops::Matmul>(true, false), {diff, src});
    reshaped(node, "", product, shape(node.outputs[0]), node.outputs[0]);
  }

  Lowered& program_;
  const Device& device_;
  Precision precision_;
  std::vector<int> readers_;                             // by value
  std::map<std::pair<ValueId, Dims>, ValueId> patches_;  // by image and patches along its axes
};

}  // namespace

void multiply_patches(Lowered& program, const Device& device, Precision precision) {
  PatchProducts(program, device, precision).run();
}

}  // namespace concord
