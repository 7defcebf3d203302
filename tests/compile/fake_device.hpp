// A device that computes nothing: it answers the passes of compile/ as a test tells it to, and remembers what they
// asked. Used by the tests of lower, fuse and choose_layouts.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "concord/compile/lowered.hpp"
#include "concord/graph/expression.hpp"
#include "concord_test.hpp"

namespace concord::test {

/// A layout that is nothing but a name: equal names are equal layouts, whatever the object. One whose name begins with
/// "grouped" is made in groups.
[[nodiscard]] Layout named_layout(const std::string& name);
/// The name; "row-major" for none.
[[nodiscard]] std::string name_of(const Layout& layout);

/// What the kernel of an operator takes and gives: one layout for all inputs and one for all outputs.
struct LayoutRule {
  Layout inputs, outputs;
  bool as_offered = false;  // takes every input as it comes, and gives outputs the layout of the first
};

/// A kernel that no one can bind; it knows the layouts it was prepared for.
class FakeKernel final : public Kernel {
 public:
  explicit FakeKernel(std::string label) : label_(std::move(label)) {}
  [[nodiscard]] std::string name() const override { return label_; }
  [[nodiscard]] std::unique_ptr<Launch> bind(std::span<const Operand>, std::span<const Operand>,
                                             Operand) const override;

  std::vector<Layout> input_layouts, output_layouts;

 private:
  std::string label_;
};

class FakeDevice final : public Device {
 public:
  struct EpilogueQuestion {
    std::string op;
    std::vector<TensorSpec> inputs;
    TensorSpec output;
    Expression epilogue;
    std::vector<TensorSpec> extra;
  };

  FakeDevice();

  // What a test tells it.
  std::function<bool(const Operator&, const Expression&)> takes_epilogue;  // unset: never
  std::function<bool(const Operator&, const Expression&)> takes_prologue;  // unset: never
  std::map<std::string, LayoutRule> rules;                                 // by operator name; the others are row-major
  std::string without_kernel;                                              // the operator that is not supported
  bool only_row_major_reorders = false;                                    // to and from row-major, nothing else
  bool refuses_groups = false;
  bool joins_operators = false;
  bool groups_operators = false;
  GroupKind group = {.name = {}, .label = "reduce_sum", .awaited = std::size_t{1} << 20};
  bool groups_gradients = false;          // of weights
  std::size_t most_awaited = SIZE_MAX;    // bytes that wait for more gradients of the weights of convolutions
  bool appends = false;                   // formulas
  bool multiplies = false;                // patches
  bool folds = false;                     // factors by channel
  std::map<std::string, int> overwrites;  // by operator name: the input that output 0 may lie over

  // What it was asked, in order.
  std::vector<KernelRequest> requests;
  std::vector<Reorder> reorders;
  std::vector<std::vector<Reorder>> groups;  // of reorders
  std::vector<std::size_t> operator_groups;  // their sizes
  mutable std::vector<EpilogueQuestion> questions;

  [[nodiscard]] const DeviceInfo& info() const override { return info_; }
  [[nodiscard]] PreparedKernel prepare(const KernelRequest& request) override;
  [[nodiscard]] std::unique_ptr<Kernel> prepare_reorder(const TensorSpec& spec, const Layout& from,
                                                        const Layout& to) override;
  [[nodiscard]] std::unique_ptr<Kernel> prepare_reorders(std::span<const Reorder> together) override;
  [[nodiscard]] bool has_joined_operators() const override { return joins_operators; }
  [[nodiscard]] bool folds_factors() const override { return folds; }
  [[nodiscard]] bool multiplies_patches(const TensorSpec&, const TensorSpec&, Precision) const override {
    return multiplies;
  }
  [[nodiscard]] std::optional<GroupKind> group_kind(const KernelRequest& request) const override {
    const std::string_view name = request.op->name();
    const std::size_t reduce = name.find("reduce_");
    if (!groups_operators || reduce == std::string_view::npos) return {};
    GroupKind kind = group;
    kind.name = name.substr(reduce);
    return kind;
  }
  [[nodiscard]] std::unique_ptr<Kernel> prepare_group(std::span<const KernelRequest> together) override;
  [[nodiscard]] bool groups_products(std::span<const TensorSpec>, Precision) const override { return groups_gradients; }
  [[nodiscard]] std::optional<GroupKind> gradient_kind(const Operator& op, std::span<const TensorSpec>,
                                                       Precision) const override {
    if (!groups_gradients || op.name() != "conv2d_backward_weights") return {};
    return GroupKind{std::string(op.name()), std::string(op.name()), most_awaited, 3};
  }
  [[nodiscard]] std::unique_ptr<Kernel> prepare_appended(const KernelRequest& request) override;
  [[nodiscard]] bool supports_epilogue(const Operator& op, std::span<const TensorSpec> op_inputs,
                                       const TensorSpec& output, const Expression& epilogue,
                                       std::span<const TensorSpec> extra, Precision precision) const override;
  [[nodiscard]] bool supports_prologue(const Operator& op, std::span<const TensorSpec>, const Expression& prologue,
                                       std::span<const TensorSpec>, Precision) const override {
    return takes_prologue && takes_prologue(op, prologue);
  }

  // The passes look at kernels only: memory and queues are refused.
  [[nodiscard]] BufferPtr allocate(std::size_t bytes) override;
  [[nodiscard]] std::size_t allocated() const override { return 0; }
  [[nodiscard]] std::size_t peak_allocated() const override { return 0; }
  [[nodiscard]] StagingPtr allocate_staging(std::size_t bytes) override;
  void write(Buffer& dst, std::size_t offset, std::span<const std::byte> bytes) override;
  void read(const Buffer& src, std::size_t offset, std::span<std::byte> bytes) override;
  void copy(const Buffer& src, std::size_t src_offset, Buffer& dst, std::size_t dst_offset, std::size_t bytes) override;
  void fill(Buffer& dst, std::size_t offset, std::size_t bytes, std::uint32_t pattern) override;
  [[nodiscard]] EventPtr write_async(Buffer& dst, std::size_t offset, const StagingPtr& staging, std::size_t bytes,
                                     const EventPtr& after) override;
  [[nodiscard]] EventPtr record() override;
  void wait_for(const EventPtr& event) override;
  void finish() override;
  [[nodiscard]] double timed(Launch& launch) override;
  void enqueue_recorded(Launch& launch, timeline::Label label) override;

 private:
  DeviceInfo info_;
};

/// What the graphs of these tests are made of, for the most part.
inline const TensorSpec kMatrix{DType::f32, {4, 4}};
[[nodiscard]] Value variable(Graph& graph, std::string name, TensorSpec spec = kMatrix);
/// The same value under a name.
Value named(Value value, std::string name);

/// The names of the operators in execution order, "reorder" for a change of layout.
[[nodiscard]] std::vector<std::string> operators_of(const Lowered& program);
/// The names of the values a list of ids stands for.
[[nodiscard]] std::vector<std::string> names_of(const Lowered& program, const std::vector<ValueId>& ids);
/// The value of this name; fails the test when there is none or more than one.
[[nodiscard]] ValueId id_of(const Lowered& program, const std::string& name);
/// The node that makes this value; fails the test when there is none.
[[nodiscard]] const LoweredNode& producer_of(const Lowered& program, ValueId id);
/// Every node reads what earlier nodes made, or inputs and variables, and every value is made once.
[[nodiscard]] bool in_order(const Lowered& program);

/// What a program makes of one number for each input and variable, by value name: pointwise operators by their
/// formulas, a matrix product or convolution as the product of its operands, every other operator as its first operand.
/// Passes must not change it.
[[nodiscard]] std::map<std::string, float> evaluate(const Lowered& program, const std::map<std::string, float>& given);

}  // namespace concord::test
