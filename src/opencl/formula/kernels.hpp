// Kernels: maps an operator to the function that prepares its kernel, unfused, with an epilogue or with a prologue.
// Each family registers itself in a function such as add_scan at the end of its file; kernel_table.cpp holds the table.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <typeindex>
#include <unordered_map>

#include "concord/device/kernel_table.hpp"
#include "concord/opencl/formula/epilogue.hpp"
#include "concord/opencl/launch/context.hpp"
#include "concord/ops/prologued.hpp"

namespace concord::opencl {

class Kernels : public KernelTable<Context> {
 public:
  /// Whether the operator's kernel can apply this epilogue to its result; `extra` are the epilogue's other operands.
  template <class Op>
  using SupportsEpilogue = bool (*)(const Op&, std::span<const TensorSpec> inputs, const TensorSpec& output,
                                    const Expression& epilogue, std::span<const TensorSpec> extra);
  template <class Op>
  using PrepareFused = PreparedKernel (*)(Context&, const Op&, const KernelRequest&, const Epilogue&);

  template <class Op, SupportsEpilogue<Op> supports, PrepareFused<Op> prepare>
  void add_fused() {
    fused_[typeid(Op)] = {
        [](const Operator& op, std::span<const TensorSpec> inputs, const TensorSpec& output, const Expression& epilogue,
           std::span<const TensorSpec> extra) {
          return supports(static_cast<const Op&>(op), inputs, output, epilogue, extra);
        },
        [](Context& context, const Operator& op, const KernelRequest& request, const Epilogue& epilogue) {
          return prepare(context, static_cast<const Op&>(op), request, epilogue);
        }};
  }

  /// Whether a kernel of the operator can apply this prologue to its first input; `extra` are the prologue's other
  /// operands.
  template <class Op>
  using SupportsPrologue = bool (*)(const Op&, std::span<const TensorSpec> inputs, const Expression& prologue,
                                    std::span<const TensorSpec> extra);
  /// The epilogue may be null. Nothing where the operands lie otherwise.
  template <class Op>
  using PreparePrologued = std::optional<PreparedKernel> (*)(Context&, const Op&, const KernelRequest&, const Prologue&,
                                                             const Epilogue*);

  template <class Op, SupportsPrologue<Op> supports, PreparePrologued<Op> prepare>
  void add_prologued() {
    prologued_[typeid(Op)] = {
        [](const Operator& op, std::span<const TensorSpec> inputs, const Expression& prologue,
           std::span<const TensorSpec> extra) { return supports(static_cast<const Op&>(op), inputs, prologue, extra); },
        [](Context& context, const Operator& op, const KernelRequest& request, const Prologue& prologue,
           const Epilogue* epilogue) {
          return prepare(context, static_cast<const Op&>(op), request, prologue, epilogue);
        }};
  }

  [[nodiscard]] bool supports_epilogue(const Operator& op, std::span<const TensorSpec> inputs, const TensorSpec& output,
                                       const Expression& epilogue, std::span<const TensorSpec> extra) const;
  /// `op` is the operator that the epilogue follows. Throws NotSupported if its family supports no epilogue.
  [[nodiscard]] PreparedKernel prepare_fused(Context& context, const Operator& op, const KernelRequest& request,
                                             const Epilogue& epilogue) const;

  /// `op` may have an epilogue.
  [[nodiscard]] bool supports_prologue(const Operator& op, std::span<const TensorSpec> inputs,
                                       const Expression& prologue, std::span<const TensorSpec> extra) const;
  /// Where no kernel applies the prologue, that of the formula runs before that of the operator.
  [[nodiscard]] PreparedKernel prepare_prologued(Context& context, const ops::Prologued& op,
                                                 const KernelRequest& request) const;

 private:
  struct Fused {
    SupportsEpilogue<Operator> supports;
    PrepareFused<Operator> prepare;
  };
  struct Prologued {
    SupportsPrologue<Operator> supports;
    PreparePrologued<Operator> prepare;
  };
  [[nodiscard]] PreparedKernel prepare_apart(Context& context, const ops::Prologued& op,
                                             const KernelRequest& request) const;
  std::unordered_map<std::type_index, Fused> fused_;
  std::unordered_map<std::type_index, Prologued> prologued_;
};

/// Calls the add_… function of every family (cmake/ConcordFamilies.cmake).
void add_families(Kernels& kernels);

}  // namespace concord::opencl
