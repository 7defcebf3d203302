// ConvImplementation: one way to compute a convolution and its gradients. Each stands at the end of the file of its
// name; conv.cpp lists them.
#pragma once

#include <string_view>

#include "concord/opencl/conv/problem.hpp"
#include "concord/opencl/gemm/implementation.hpp"
#include "concord/opencl/launch/context.hpp"

namespace concord::opencl {

struct ConvImplementation {
  std::string_view name;
  /// Its name among the kernel alternatives (launch/alternatives.hpp); empty where it is none.
  std::string_view alternative = {};
  /// Why it does not compute the pass; empty where it does.
  std::string_view (*refusal)(const Context&, const ConvProblem&);
  /// Expected; infinite where it is not worth it, 0 where it always is.
  double (*seconds)(Context&, const ConvProblem&);
  PreparedKernel (*prepare)(Context&, const ConvProblem&);
  /// Why it does not run on the device; empty where it does. May run a check: to be asked last.
  std::string_view (*device_refusal)(Context&, const ConvProblem&) = [](Context&, const ConvProblem&) {
    return kNoRefusal;
  };
};

// What several of them answer.
inline constexpr std::string_view kOtherPass = "it does not compute this pass";
inline constexpr std::string_view kNotAnImage = "it is no convolution in two dimensions";
inline constexpr std::string_view kNotDepthwise = "the channels are not each convolved by themselves";
inline constexpr std::string_view kEpilogueOperand = "the epilogue reads an operand that it cannot";

}  // namespace concord::opencl
