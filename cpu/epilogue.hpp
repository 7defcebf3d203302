// Epilogues: the pointwise expressions that oneDNN can apply to a product or convolution before it is written — a
// chain of additions, products and differences with operands or numbers — and a relu after them, which is a pass of our
// own over the result: oneDNN's turns NaN into 0. Used by matmul and conv.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "concord/ops/conv.hpp"
#include "concord/ops/matmul.hpp"
#include "kernels.hpp"

namespace concord::cpu {

/// One post-operation. `operand` is the index of an input of the fused operator, or -1.
struct EpilogueStep {
  dnnl::algorithm algorithm;
  int operand = -1;
  float alpha = 0, beta = 0;  // of an eltwise algorithm
};

struct Epilogue {
  int bias = -1;  // operand added per channel before everything else, or -1
  std::vector<EpilogueStep> steps;
  bool relu = false;  // at the end
};

/// Converts `expression` to post-operations; nothing if that is impossible. Operands, of the shapes `extra`, must have
/// the shape of the output, or one value for each index along `channel_axis`. Their indices start at `base_inputs`.
[[nodiscard]] std::optional<Epilogue> match_epilogue(const Expression& expression, std::size_t base_inputs,
                                                     const Shape& output, std::size_t channel_axis,
                                                     std::span<const TensorSpec> extra);

/// The post-operations; appends their operands to `arguments`. `desc_of_operand(i)` describes input i. The operand
/// `in_place`, -1 for none, is added from where the result goes.
[[nodiscard]] dnnl::post_ops post_ops_of(const Epilogue& epilogue,
                                         const std::function<Desc(std::size_t)>& desc_of_operand,
                                         std::vector<PrimitiveArgument>& arguments, int in_place = -1);

/// Whether Matmul or Conv supports this expression as its epilogue.
[[nodiscard]] bool supports_fused(CpuAlternatives& alternatives, const Operator& op,
                                  std::span<const TensorSpec> op_inputs, const TensorSpec& output,
                                  const Expression& epilogue, std::span<const TensorSpec> extra);

/// A product or convolution with its epilogue, whatever computes it.
PreparedKernel prepare_product(const Operator& op, const Epilogue& epilogue, const KernelRequest& request, int threads);
PreparedKernel prepare_matmul_with(const ops::Matmul& op, const Epilogue& epilogue, const KernelRequest& request);
/// Whether the product has one row. Then a loop of our own computes it with its epilogue (row_product.cpp).
[[nodiscard]] bool is_row_product(const ops::Matmul& op, const KernelRequest& request);
PreparedKernel prepare_row_product(const ops::Matmul& op, const Epilogue& epilogue, const KernelRequest& request,
                                   int threads);
PreparedKernel prepare_conv_with(const ops::Conv& op, const Epilogue& epilogue, const KernelRequest& request);

}  // namespace concord::cpu
