// The stages of both kernels, with the result between them in the workspace.
#include "concord/opencl/formula/joined_kernel.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <variant>
#include <vector>

#include "concord/core/check.hpp"
#include "concord/opencl/launch/stage.hpp"

namespace concord::opencl {
namespace {

using Source = BufferArgument::Source;

template <class Change>
void append(std::vector<StagedKernel::AnyStage>& stages, const Kernel& kernel, const Change& change) {
  const auto* const staged = dynamic_cast<const StagedKernel*>(&kernel);
  CONCORD_CHECK(staged != nullptr, NotSupported, "{} has no stages to join", kernel.name());
  for (StagedKernel::AnyStage any : staged->stages()) {
    auto* const stage = std::get_if<Stage>(&any);
    CONCORD_CHECK(stage != nullptr, NotSupported, "{} calls a library", kernel.name());
    for_each_argument(stage->arguments, [&](Argument& argument) {
      if (auto* const buffer = std::get_if<BufferArgument>(&argument)) change(*buffer);
    });
    stages.push_back(std::move(any));
  }
}

}  // namespace

std::vector<KernelRequest> requests_of(const ops::OperatorGroup& group, const KernelRequest& request) {
  std::vector<KernelRequest> requests;
  std::ptrdiff_t first = 0;
  for (const ops::OperatorGroup::Member& member : group.members()) {
    const std::ptrdiff_t end = first + static_cast<std::ptrdiff_t>(member.inputs);
    requests.push_back({member.op.get(),
                        {request.inputs.begin() + first, request.inputs.begin() + end},
                        {request.input_layouts.begin() + first, request.input_layouts.begin() + end},
                        {request.outputs[requests.size()]},
                        request.precision,
                        request.is_exact});
    first = end;
  }
  return requests;
}

std::unique_ptr<Kernel> joined_kernel(Context& context, const Kernel& formula, const Kernel& reader,
                                      std::size_t first_extra, std::size_t bytes) {
  constexpr std::size_t kAlignment = 256;
  // The formula ends before the reader begins: both use the same bytes.
  const std::size_t own = std::max(formula.workspace(), reader.workspace());
  const std::size_t begin = (own + kAlignment - 1) / kAlignment * kAlignment;
  const auto between = [&](const BufferArgument& argument) { return workspace(begin, argument.element_size); };
  std::vector<StagedKernel::AnyStage> stages;
  append(stages, formula, [&](BufferArgument& argument) {
    if (argument.source == Source::output) {
      argument = between(argument);
    } else if (argument.index > 0) {
      argument.index += first_extra - 1;
    }
  });
  append(stages, reader, [&](BufferArgument& argument) {
    if (argument.source == Source::input && argument.index == 0) argument = between(argument);
  });
  return std::make_unique<StagedKernel>(context, fmt::format("{}, {}", formula.name(), reader.name()),
                                        std::move(stages), begin + bytes);
}

}  // namespace concord::opencl
