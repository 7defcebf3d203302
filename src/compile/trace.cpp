// Traced runs: the time of every kernel, and the search for the first value that is not finite.
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "concord/compile/program_impl.hpp"
#include "concord/compile/step_parts.hpp"
#include "concord/core/check.hpp"
#include "concord/core/timeline_label.hpp"
#include "concord/ops/gather.hpp"
#include "concord/ops/gather_along.hpp"
#include "concord/ops/loss_gradient.hpp"
#include "concord/ops/operator_group.hpp"
#include "concord/ops/pointwise_group.hpp"
#include "concord/ops/softmax.hpp"

namespace concord {
namespace {

ValueRange range_of(std::string name, const Tensor& tensor) {
  ValueRange range{std::move(name), tensor.elements()};
  bool is_first = true;
  for (const float v : tensor.values<float>()) {
    if (!std::isfinite(v)) {
      ++range.not_finite;
      continue;
    }
    range.least = is_first ? v : std::min(range.least, v);
    range.greatest = is_first ? v : std::max(range.greatest, v);
    is_first = false;
  }
  return range;
}

/// How many rows the indices of an operator may name, which gives NaN for others; 0 of an operator without indices.
std::int64_t index_limit(const Operator& op, const Shape& src) {
  if (dynamic_cast<const ops::Gather*>(&op) != nullptr) return src[0];
  const bool is_joined = dynamic_cast<const ops::CrossEntropyWithGradient*>(&op) != nullptr;
  if (is_joined || dynamic_cast<const ops::CrossEntropy*>(&op) != nullptr) return src[1];
  if (const auto* along = dynamic_cast<const ops::GatherAlong*>(&op)) return src.dims()[along->axis()];
  return 0;
}

/// The first wrong index that this node reads.
std::optional<WrongIndex> wrong_index(const LoweredNode& node, ProgramImpl& program) {
  if (node.inputs.size() < 2) return {};
  const LoweredValue& indices = program.lowered.value(program.lowered.source(node.inputs[1]));
  const std::int64_t limit = index_limit(*node.op, program.lowered.value(node.inputs[0]).spec.shape);
  if (limit == 0 || indices.spec.dtype != DType::i32) return {};
  const Tensor held = program.read(program.lowered.source(node.inputs[1]));
  const auto values = held.values<std::int32_t>();
  const auto wrong = std::ranges::find_if(values, [&](std::int32_t v) { return v < 0 || v >= limit; });
  if (wrong == values.end()) return {};
  return WrongIndex{indices.name, held.shape(), wrong - values.begin(), *wrong, limit};
}

std::string text_of(const ValueRange& range) {
  if (range.not_finite == range.elements)
    return fmt::format("{} with no finite value of {}", range.name, range.elements);
  return fmt::format("{} in [{}, {}]{}", range.name, range.least, range.greatest,
                     range.not_finite > 0 ? fmt::format(" and {} not finite", range.not_finite) : "");
}

/// What `concord plan` reads of a launch of a training step; the first launch says which part of the step begins.
timeline::Arguments arguments_of(const StepParts& parts, std::size_t launch) {
  constexpr std::array kParts{"step", "before exchange", "after exchange"};
  constexpr std::array kPasses{"forward", "gradient", "update"};
  if (parts.launches.empty()) return {};
  timeline::Arguments arguments;
  if (launch == 0) arguments.emplace_back("begins", kParts.at(static_cast<std::size_t>(parts.part)));
  arguments.emplace_back("pass", kPasses.at(static_cast<std::size_t>(parts.launches[launch].pass)));
  for (const auto& [parameter, bytes] : parts.launches[launch].gradients) {
    arguments.emplace_back("gradient " + parameter, bytes);
  }
  return arguments;
}

}  // namespace

std::optional<std::int64_t> WrongIndex::sample(std::int64_t batch) const {
  const std::int64_t elements = shape.elements();
  if (batch < 1 || elements % batch != 0) return {};
  return position / (elements / batch);
}

std::string WrongIndex::str(std::optional<std::int64_t> sample) const {
  std::vector<std::int64_t> place;
  std::int64_t rest = position;
  for (const std::int64_t stride : shape.strides()) {
    place.push_back(rest / stride);
    rest %= stride;
  }
  return fmt::format("index {}{} (element [{}] of {}) is outside [0, {})", index,
                     sample ? fmt::format(" of sample {}", *sample) : "", fmt::join(place, ", "), indices, limit);
}

std::string NonFiniteReport::str() const {
  std::vector<std::string> texts;
  for (const ValueRange& input : inputs) texts.push_back(text_of(input));
  std::string cause;
  if (wrong_index) {
    cause = ": " + wrong_index->str(wrong_index->sample(wrong_index->shape.rank() == 0 ? 1 : wrong_index->shape[0]));
  }
  return fmt::format("'{}' ({}, {}; {} of {} elements{}), computed from {}", node, op, shapes, value.not_finite,
                     value.elements, cause, texts.empty() ? "no f32 value" : fmt::format("{}", fmt::join(texts, ", ")));
}

std::string ProgramImpl::shapes(const LoweredNode& node) const {
  const auto list = [&](const std::vector<ValueId>& ids) {
    // A group of updates or reorders has hundreds.
    const bool is_group = !node.op || dynamic_cast<const ops::PointwiseGroup*>(node.op.get()) != nullptr ||
                          dynamic_cast<const ops::OperatorGroup*>(node.op.get()) != nullptr;
    const std::size_t most = is_group ? 8 : SIZE_MAX;
    std::vector<std::string> texts;
    for (const TensorSpec& spec : lowered.specs(ids)) texts.push_back(spec.str());
    const std::size_t left_out = texts.size() > most ? texts.size() - most : 0;
    texts.resize(texts.size() - left_out);
    if (left_out > 0) texts.push_back(fmt::format("… ({} more)", left_out));
    return fmt::format("{}", fmt::join(texts, ", "));
  };
  return fmt::format("{} -> {}", list(node.inputs), list(node.outputs));
}

TraceEntry ProgramImpl::describe(std::size_t i) const {
  const LoweredNode& node = lowered.nodes[launch_nodes[i]];
  TraceEntry entry;
  entry.node = node.name;
  entry.pass = node.pass;
  entry.op = node.op ? std::string(node.op->name()) : "reorder";
  entry.kernel = node.kernel->name();
  entry.shapes = shapes(node);
  const std::vector<TensorSpec> inputs = lowered.specs(node.inputs);
  const std::vector<TensorSpec> outputs = lowered.specs(node.outputs);
  // Operators count the bytes of row-major values; a layout may have others.
  double row_major = 0, stored = 0;
  for (const std::vector<ValueId>* ids : {&node.inputs, &node.outputs}) {
    for (const ValueId id : *ids) {
      row_major += static_cast<double>(lowered.value(id).spec.bytes());
      stored += static_cast<double>(lowered.bytes(id));
    }
  }
  entry.cost = node.op ? node.op->cost(inputs, outputs) : Cost{0, row_major};
  if (row_major > 0) entry.cost.bytes *= stored / row_major;
  return entry;
}

const std::vector<timeline::Label>& ProgramImpl::timeline_labels() {
  if (labels.empty()) {
    const StepParts parts = step_parts(*this);
    for (std::size_t i = 0; i < launches.size(); ++i) {
      const TraceEntry entry = describe(i);
      labels.push_back(timeline::label_with(entry.node, fmt::format("{}, {}, {}", entry.op, entry.kernel, entry.shapes),
                                            arguments_of(parts, i)));
    }
  }
  return labels;
}

void ProgramImpl::enqueue(std::size_t place) {
  if (timeline::recording()) {
    device().enqueue_recorded(*launches[place], timeline_labels()[place]);
  } else {
    launches[place]->enqueue();
  }
  sum_over_ranks(place);
}

std::vector<TraceEntry> Program::run_traced() {
  const Device::Use use(impl_->device());
  std::vector<TraceEntry> entries;
  impl_->require_all_reduce();
  impl_->settle();
  impl_->device().finish();
  impl_->enqueue_all([&] {
    for (std::size_t i = 0; i < impl_->launches.size(); ++i) {
      entries.push_back(impl_->describe(i));
      entries.back().seconds = impl_->device().timed(*impl_->launches[i]);
      impl_->sum_over_ranks(i);
    }
  });
  impl_->commit();
  impl_->device().finish();
  return entries;
}

NonFiniteReport Program::find_non_finite() {
  CONCORD_CHECK(impl_->retains_all, ArgumentError,
                "find_non_finite needs a program compiled with Retain::all or Retain::fused");
  const Device::Use use(impl_->device());
  for (std::size_t i = 0; i < impl_->launches.size(); ++i) {
    impl_->enqueue(i);
    const LoweredNode& node = impl_->lowered.nodes[impl_->launch_nodes[i]];
    if (!node.op) continue;  // a reorder changes no value
    for (const ValueId id : node.outputs) {
      if (impl_->lowered.value(id).spec.dtype != DType::f32) continue;
      ValueRange range = range_of(impl_->lowered.value(id).name, impl_->read(id));
      if (range.not_finite == 0) continue;
      const TraceEntry entry = impl_->describe(i);
      NonFiniteReport report{true, entry.node, entry.op, entry.shapes, std::move(range), {}};
      for (const ValueId read : node.inputs) {
        const ValueId input = impl_->lowered.source(read);
        if (impl_->lowered.value(input).spec.dtype != DType::f32) continue;
        report.inputs.push_back(range_of(impl_->lowered.value(input).name, impl_->read(input)));
      }
      report.wrong_index = wrong_index(node, *impl_);
      return report;
    }
  }
  return {};
}

}  // namespace concord
