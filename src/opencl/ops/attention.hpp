// Common parts of the attention implementations: the passes, and the operands and definitions of a form
// (cl_kernels/ops/attention_form.h). Used by attention.cpp, attention_mma.cpp and
// attention_wgmma.cpp.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "concord/opencl/formula/channel_columns.hpp"
#include "concord/opencl/launch/context.hpp"
#include "concord/opencl/launch/stage.hpp"
#include "concord/ops/attention.hpp"

namespace concord::opencl {

enum class AttentionPass : std::uint8_t { forward, backward_query, backward_key_value };

/// The problem of one of the three operators.
struct AttentionProblem {
  AttentionPass pass;
  std::string_view name;  // of the operator
  const ops::AttentionForm& form;
  ops::AttentionSizes sizes;
  std::size_t outputs;
  Precision precision = Precision::fp32;
  bool tokens = false;  // vectors are in 16 bits (formula/channels_last.hpp)
  /// How q, k and v lie, where they are columns of wider tokens (formula/channel_columns.hpp); otherwise null.
  std::array<Layout, 3> columns{};

  /// Number of operands before those of the form.
  [[nodiscard]] std::size_t operands() const { return pass == AttentionPass::forward ? 3 : 6; }
  /// Whether operand `i`, or output `k`, are vectors.
  [[nodiscard]] bool is_vector(std::size_t i) const { return i < (pass == AttentionPass::forward ? 3 : 4); }
  [[nodiscard]] bool is_vector_output(std::size_t k) const { return pass != AttentionPass::forward || k == 0; }
  /// Rows and heads that work-groups own: of the queries or of the keys.
  [[nodiscard]] std::int64_t rows() const {
    return pass == AttentionPass::backward_key_value ? sizes.keys : sizes.queries;
  }
  [[nodiscard]] const ChannelColumns* columns_of(std::size_t i) const {
    return i < columns.size() ? as_channel_columns(columns[i]) : nullptr;
  }
  /// The number of values from vector to vector of a head of operand `i`.
  [[nodiscard]] std::int64_t pitch(std::size_t i) const {
    if (const ChannelColumns* const found = columns_of(i)) return found->pitch();
    return i == 1 || i == 2 ? sizes.key_pitch() : sizes.query_pitch();
  }
  /// Operand `i`, which are vectors, as an argument.
  [[nodiscard]] BufferArgument vectors(std::size_t i) const {
    BufferArgument argument = input(i, tokens ? 2 : 4);
    if (const ChannelColumns* const found = columns_of(i)) argument.extra_bytes = found->begin_bytes();
    return argument;
  }
  [[nodiscard]] std::int64_t row_heads() const {
    return pass == AttentionPass::backward_key_value ? sizes.key_heads : sizes.heads;
  }
};

/// Whether the kernels on matrix cores read q, k or v (i = 0, 1, 2) where it lies, as columns of wider tokens: from
/// head to head of a token they go on by the width of a head.
[[nodiscard]] bool attention_reads(const ops::AttentionSizes& sizes, std::size_t i, const ChannelColumns& columns);

/// The arguments of a kernel: operands, outputs, `maps`, SIZE_PARAMETERS and FORM_PARAMETERS.
[[nodiscard]] std::vector<Argument> attention_arguments(const AttentionProblem& problem,
                                                        std::span<const Argument> maps = {});
/// WIDTH and the definitions of the form.
[[nodiscard]] std::vector<std::string> attention_definitions(const AttentionProblem& problem);

// attention_wgmma.cpp: on the warpgroup instructions of NVIDIA's Hopper GPUs, for tokens in 16 bits.
[[nodiscard]] bool attention_wgmma_supports(Context& context, const AttentionProblem& problem);
/// Whether it is faster than the kernel of attention_mma.cpp, where both support the problem.
[[nodiscard]] bool attention_wgmma_is_faster(const AttentionProblem& problem);
[[nodiscard]] std::unique_ptr<Kernel> prepare_attention_wgmma(Context& context, const AttentionProblem& problem);

// attention_mma.cpp: on NVIDIA's matrix cores; fp32 by three tf32 products, other precisions by one.
[[nodiscard]] bool attention_mma_supports(Context& context, const AttentionProblem& problem);
[[nodiscard]] std::unique_ptr<Kernel> prepare_attention_mma(Context& context, const AttentionProblem& problem);

}  // namespace concord::opencl
