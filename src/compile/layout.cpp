// Layout choice: kernels are prepared in execution order, each seeing the layouts its producers left.
#include <map>

#include "concord/compile/lowered.hpp"
#include "concord/core/check.hpp"

namespace concord {
namespace {

class LayoutPass {
 public:
  LayoutPass(Lowered& program, Device& device, Precision precision)
      : program_(program), device_(device), precision_(precision) {}

  void run() {
    std::vector<LoweredNode> nodes = std::move(program_.nodes);
    program_.nodes.clear();
    for (LoweredNode& node : nodes) {
      if (node.op->is_alias()) {
        alias(std::move(node));
      } else {
        prepare(std::move(node));
      }
    }
    for (LoweredAssignment& assignment : program_.assignments) {
      assignment.value = in_layout(assignment.value, nullptr);
    }
  }

 private:
  void alias(LoweredNode node) {
    const ValueId source = in_layout(node.inputs[0], nullptr);
    node.inputs[0] = source;
    program_.value(node.outputs[0]).alias_of = source;
    program_.nodes.push_back(std::move(node));
  }

  void prepare(LoweredNode node) {
    KernelRequest request{node.op.get(), program_.specs(node.inputs), {}, program_.specs(node.outputs), precision_};
    for (const ValueId id : node.inputs) request.input_layouts.push_back(program_.value(id).layout);
    PreparedKernel prepared = [&] {
      try {
        return device_.prepare(request);
      } catch (const NotSupported& error) {
        throw NotSupported(fmt::format("{} cannot run node '{}': {}", device_.info().name, node.name, error.what()));
      }
    }();
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      node.inputs[i] = in_layout(node.inputs[i], prepared.input_layouts[i]);
    }
    for (std::size_t k = 0; k < node.outputs.size(); ++k) {
      program_.value(node.outputs[k]).layout = prepared.output_layouts[k];
    }
    node.kernel = std::move(prepared.kernel);
    program_.nodes.push_back(std::move(node));
  }

  // The value in this layout: itself, or a reordered copy made once.
  ValueId in_layout(ValueId id, const Layout& wanted) {
    if (same_layout(program_.value(id).layout, wanted)) return id;
    for (const auto& [layout, copy] : copies_[id]) {
      if (same_layout(layout, wanted)) return copy;
    }
    const LoweredValue& source = program_.value(id);
    LoweredValue copy;
    copy.spec = source.spec;
    copy.layout = wanted;
    copy.reorder_of = id;
    copy.name = fmt::format("{} in {}", source.name, wanted ? wanted->str() : "row-major");
    std::shared_ptr<Kernel> kernel = device_.prepare_reorder(source.spec, source.layout, wanted);
    const std::string name = "reorder/" + source.name;
    program_.values.push_back(std::move(copy));
    const auto copied = static_cast<ValueId>(program_.values.size() - 1);
    program_.nodes.push_back({nullptr, name, {id}, {copied}, std::move(kernel)});
    copies_[id].emplace_back(wanted, copied);
    return copied;
  }

  Lowered& program_;
  Device& device_;
  Precision precision_;
  std::map<ValueId, std::vector<std::pair<Layout, ValueId>>> copies_;
};

}  // namespace

void require_allocatable(const LoweredValue& value, std::size_t bytes, const DeviceInfo& device) {
  CONCORD_CHECK(device.max_allocation == 0 || bytes <= device.max_allocation, OutOfMemory,
                "the value '{}', {}, needs {} MiB; {} allocates at most {} MiB at once", value.name, value.spec.str(),
                bytes >> 20, device.name, device.max_allocation >> 20);
}

void choose_layouts(Lowered& program, Device& device, Precision precision) {
  // Kernels have limits of their own, which a value that fits nowhere exceeds too.
  const bool may_be_halved = precision == Precision::bf16 || precision == Precision::fp16;
  for (const LoweredNode& node : program.nodes) {
    for (const ValueId id : node.outputs) {
      require_allocatable(program.value(id), program.bytes(id) / (may_be_halved ? 2 : 1), device.info());
    }
  }
  LayoutPass(program, device, precision).run();
}

}  // namespace concord
