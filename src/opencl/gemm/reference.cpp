// The plain product, one work-item an element (cl_kernels/gemm/reference.cl): computes anything on any device.
#include <fmt/format.h>

#include <cmath>

#include "concord/opencl/gemm/arguments.hpp"
#include "concord/opencl/gemm/implementation.hpp"
#include "concord/opencl/launch/sizes.hpp"

namespace concord::opencl {
namespace {

std::unique_ptr<Kernel> prepare_reference(Context& context, const Gemm& gemm, std::string_view label) {
  Stage multiply{gemm_program(context, gemm, "gemm/reference.cl", true, {}),
                 "gemm_reference_multiply",
                 gemm_arguments(gemm, 1, gemm.k),
                 {size(gemm.n), size(gemm.m), size(gemm.batch)},
                 {0, 0, 0}};
  return gemm_staged(context, gemm, fmt::format("{} reference", label), std::move(multiply), 1);
}

}  // namespace

extern const GemmImplementation kReferenceGemm{
    .name = "reference",
    .is_alternative_of = [](const Context&) { return false; },  // nothing is plainer
    .refusal = [](const Context&, const Gemm&) { return kNoRefusal; },
    .device_refusal = [](Context&, Precision) { return kNoRefusal; },
    .seconds = [](const Context&, const Gemm&) -> double { return INFINITY; },
    .prepare = prepare_reference,
    .files = {"gemm/reference.cl"}};

}  // namespace concord::opencl
