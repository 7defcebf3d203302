// Launches that make several results of products of tokens.
#include "concord/opencl/ops/joined_products.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "concord/opencl/formula/channels_last.hpp"
#include "concord/opencl/formula/joined_kernel.hpp"
#include "concord/opencl/gemm/channels_last.hpp"
#include "concord/opencl/launch/alternatives.hpp"
#include "concord/opencl/launch/sizes.hpp"
#include "concord/opencl/ops/matmul_tokens.hpp"
#include "concord/ops/appended.hpp"

namespace concord::opencl {
namespace {

std::optional<Epilogue> epilogue_of(const KernelRequest& request) {
  const auto* const fused = dynamic_cast<const ops::Fused*>(request.op);
  return fused != nullptr ? std::optional(Epilogue{fused->epilogue(), fused->base_inputs()}) : std::nullopt;
}

/// The operator as such a product, whatever the layouts that its operands have.
std::optional<PlacedProduct> placed_anew(Context& context, const KernelRequest& request) {
  const auto* const fused = dynamic_cast<const ops::Fused*>(request.op);
  const auto* const matmul = dynamic_cast<const ops::Matmul*>(fused != nullptr ? fused->base().get() : request.op);
  if (matmul == nullptr) return std::nullopt;
  const std::optional<Epilogue> epilogue = epilogue_of(request);
  return place_product(context, *matmul, request, epilogue ? &*epilogue : nullptr);
}

/// The same where its operands lie as they should.
std::optional<PlacedProduct> placed_product(Context& context, const KernelRequest& request) {
  std::optional<PlacedProduct> placed = placed_anew(context, request);
  const bool lies_so = placed && std::ranges::equal(placed->inputs, request.input_layouts, same_layout);
  return lies_so ? std::move(placed) : std::nullopt;
}

bool is_small(const Context& context, const TokensProduct& product) {
  constexpr std::int64_t kMostTilesOfUnit = 2;
  const std::int64_t units = context.limits().compute_units;
  return tiles_of(product, tokens_plan(product, units)) <= kMostTilesOfUnit * units;
}

bool is_faster_together(const Context& context, const TokensProduct& product, std::int64_t members) {
  constexpr double kWorthIt = 0.95;
  const std::int64_t units = context.limits().compute_units;
  const double alone = tokens_plan(product, units).seconds * static_cast<double>(members);
  return tokens_plan(product, units, members).seconds <= kWorthIt * alone;
}

/// One kernel for products whose operands follow each other; null where it is not worth it.
std::unique_ptr<Kernel> prepare_together(Context& context, std::vector<TokensProduct> members,
                                         std::span<const KernelRequest> requests) {
  if (!is_faster_together(context, members[0], std::ssize(members))) return nullptr;
  std::size_t first_input = 0;
  for (std::size_t m = 0; m < members.size(); ++m) {
    members[m].left.buffer.index += first_input;
    members[m].right.buffer.index += first_input;
    members[m].result.index = m;
    first_input += requests[m].inputs.size();
  }
  if (const std::optional<Epilogue> epilogue = epilogue_of(requests[0])) {
    members[0].epilogue = block_epilogue(requests, *epilogue, ChannelAxis::last).value();
  }
  context.alternatives().count(alternative::kTokensProduct);
  return prepare_tokens_products(context, members, "products");
}

}  // namespace

std::optional<GroupKind> kind_of_product(Context& context, const KernelRequest& request) {
  // Operands that wait for the last of the products are soon in no cache. Each member adds to the text of the kernel.
  constexpr std::size_t kMostAwaited = std::size_t{32} << 20, kMostTogether = 8;
  const std::optional<PlacedProduct> placed = placed_product(context, request);
  if (!placed || placed->product.is_fp32 || !is_small(context, placed->product)) return std::nullopt;
  const TokensProduct& product = placed->product;
  return GroupKind{fmt::format("product to {} over {}{} {}", request.outputs[0].shape.str(), product.k,
                               product.right.is_turned ? " turned" : "", product.epilogue.text),
                   std::string(request.op->name()),
                   kMostAwaited,
                   kMostTogether,
                   false,
                   placed->result};
}

std::unique_ptr<Kernel> prepare_grouped_products(Context& context, std::span<const KernelRequest> requests) {
  std::vector<TokensProduct> members;
  for (const KernelRequest& request : requests) {
    members.push_back(placed_product(context, request).value().product);
  }
  return prepare_together(context, std::move(members), requests);
}

bool groups_products(Context& context, std::span<const TensorSpec> inputs, Precision precision) {
  const Shape &left = inputs[0].shape, &right = inputs[1].shape;
  if (left.rank() != 2 || right.rank() != 2 || !storage_refusal(context, precision).empty()) return false;
  if (!is_worth_reorders(context, left.elements() * right[1])) return false;
  const std::optional<TokensProduct> product = weights_gradient_product(context, left, right, precision);
  return product && is_small(context, *product) && is_faster_together(context, *product, 2);
}

std::optional<PreparedKernel> prepare_product_group(Context& context, const ops::OperatorGroup& group,
                                                    const KernelRequest& request) {
  const std::vector<KernelRequest> requests = requests_of(group, request);
  std::vector<TokensProduct> members;
  PreparedKernel result;
  for (const KernelRequest& one : requests) {
    const std::optional<PlacedProduct> placed = placed_anew(context, one);
    if (!placed) return std::nullopt;
    members.push_back(placed->product);
    result.input_layouts.insert(result.input_layouts.end(), placed->inputs.begin(), placed->inputs.end());
    result.output_layouts.push_back(placed->result);
  }
  result.kernel = prepare_together(context, std::move(members), requests);
  return result.kernel ? std::optional(std::move(result)) : std::nullopt;
}

std::unique_ptr<Kernel> prepare_appended_product(Context& context, const KernelRequest& request) {
  const auto* const op = dynamic_cast<const ops::Appended*>(request.op);
  if (op == nullptr) return nullptr;
  const auto count = static_cast<std::ptrdiff_t>(op->base_inputs());
  const KernelRequest base{op->base().get(),
                           {request.inputs.begin(), request.inputs.begin() + count},
                           {request.input_layouts.begin(), request.input_layouts.begin() + count},
                           {request.outputs[0]},
                           request.precision};
  std::optional<PlacedProduct> placed = placed_product(context, base);
  if (!placed || placed->product.is_fp32) return nullptr;
  for (std::size_t i = op->base_inputs(); i < request.inputs.size(); ++i) {
    const bool is_whole = request.inputs[i].shape == request.outputs[0].shape;
    if (!same_layout(request.input_layouts[i], is_whole ? placed->result : nullptr)) return nullptr;
  }
  std::optional<EpilogueText> formula = block_appended(request, {op->formula(), op->base_inputs()}, ChannelAxis::last);
  if (!formula) return nullptr;
  placed->product.appended = *std::move(formula);
  placed->product.second_result = output(1);
  if (!tokens_product_refusal(context, placed->product).empty()) return nullptr;
  context.alternatives().count(alternative::kTokensProduct);
  return prepare_tokens_products(context, {&placed->product, 1}, "matmul");
}

}  // namespace concord::opencl
