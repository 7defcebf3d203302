// The names of the kernel alternatives of a device: the GEMM implementations and the ways of other families.
#include "concord/opencl/alternatives.hpp"

#include <array>

#include "concord/core/debug_options.hpp"
#include "concord/opencl/driver/discovery.hpp"
#include "concord/opencl/gemm/gemm.hpp"

namespace concord::opencl {
namespace {

struct Row {
  std::string_view name, family;
  bool (*is_there)(const Context&);
};

bool on_any(const Context&) { return true; }
bool on_gpus(const Context& context) { return !context.limits().is_cpu; }
bool on_matrix_cores(const Context& context) { return context.capability().has_matrix_cores(); }
bool in_groups(const Context& context) { return context.limits().max_work_group > 1; }
/// Where the user did not choose.
bool made_for_cpu(const Context& context) { return !debug_option("kernels") && is_cpu(context.device()); }
bool made_for_gpu(const Context& context) { return !debug_option("kernels") && !is_cpu(context.device()); }

/// The kinds of kernels come last: a fault that a narrower row explains is not a fault of the kind.
constexpr std::array<Row, 16> kRows{{{alternative::kDepthwise, "depthwise", on_any},
                                     {alternative::kStrips, "depthwise", on_gpus},
                                     {alternative::kPhases, "convolution", on_any},
                                     {alternative::kWinograd, "convolution", on_any},
                                     {alternative::kChannelsLast, "convolution", is_hopper},
                                     {alternative::kTokensProduct, "product", is_hopper},
                                     {alternative::kAttentionWgmma, "attention", is_hopper},
                                     {alternative::kAttentionMma, "attention", on_matrix_cores},
                                     {alternative::kBatchNormWhole, "batch_norm", in_groups},
                                     {alternative::kBatchNormGroups, "batch_norm", in_groups},
                                     {alternative::kBatchNormResident, "batch_norm", is_hopper},
                                     {alternative::kBatchNormRuns, "batch_norm", on_any},
                                     {alternative::kRecurrentStep, "recurrent", on_gpus},
                                     {alternative::kRecurrentPersistent, "recurrent", on_matrix_cores},
                                     {alternative::kForCpus, "all", made_for_cpu},
                                     {alternative::kForGpus, "all", made_for_gpu}}};

}  // namespace

std::vector<OpenClAlternatives::Name> alternative_names(const Context& context) {
  std::vector<OpenClAlternatives::Name> names;
  for (const GemmImplementation* one : gemm_implementations()) {
    if (one->is_alternative_of(context))
      names.push_back({std::string(alternative::kProduct) + std::string(one->name), "product"});
  }
  for (const Row& row : kRows) {
    if (row.is_there(context)) names.push_back({std::string(row.name), row.family});
  }
  return names;
}

}  // namespace concord::opencl
