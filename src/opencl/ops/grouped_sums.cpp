// Launches that make several sums each.
#include "concord/opencl/ops/grouped_sums.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "concord/opencl/formula/printer.hpp"
#include "concord/opencl/launch/one_memory.hpp"
#include "concord/opencl/ops/channel_sums.hpp"
#include "concord/opencl/ops/reduce_passes.hpp"
#include "concord/opencl/program/source.hpp"
#include "concord/ops/fused.hpp"

namespace concord::opencl {
namespace {

/// A sum, and its epilogue or null.
struct Sum {
  const ops::Reduce* reduce;
  const Expression* epilogue;
};

std::optional<Sum> sum_of(const Operator& op) {
  const auto* fused = dynamic_cast<const ops::Fused*>(&op);
  const auto* reduce = dynamic_cast<const ops::Reduce*>(fused != nullptr ? fused->base().get() : &op);
  if (reduce == nullptr || reduce->kind() != ops::ReduceKind::sum) return {};
  return Sum{reduce, fused != nullptr ? &fused->epilogue() : nullptr};
}

std::vector<ReducePass> passes_of_sum(const Context& context, const KernelRequest& request, const Sum& sum) {
  return passes_of(context, request.inputs[0].shape, sum.reduce->kind(), sum.reduce->axes());
}

/// The numbers of a member, behind the offsets of its memories.
constexpr std::array<std::string_view, 10> kSumNumbers{"rows",  "length", "inner",  "run",   "gap",
                                                       "width", "lanes",  "unroll", "begin", "end"};

/// SUM_MEMBER of one member.
std::string sum_member_text(std::size_t member) {
  std::string text =
      fmt::format("from = m{0}_from + m{0}_from_offset; to = m{0}_to + m{0}_to_offset; member = {0}; ", member);
  for (const std::string_view number : kSumNumbers) text += fmt::format("{0} = m{1}_{0}; ", number, member);
  return text;
}

std::string sums_text(std::span<const Sum> sums) {
  std::string memories, numbers, declared = "__global const float *from; __global float *to; uint member",
                                 functions = kernel_source("shared/formulas.h") + "\n", epilogue = "(sum)";
  for (std::size_t m = 0; m < sums.size(); ++m) {
    memories += fmt::format("MEMORY(const float *, m{0}_from) MEMORY(float *, m{0}_to) ", m);
    numbers += fmt::format("NUMBER(ulong, m{0}_from_offset) NUMBER(ulong, m{0}_to_offset) ", m);
    for (const std::string_view number : kSumNumbers) numbers += fmt::format("NUMBER(uint, m{}_{}) ", m, number);
    if (sums[m].epilogue == nullptr) continue;
    const std::array<std::string, 1> inputs{"sum"};
    functions += fmt::format("static inline float epilogue_{}(float sum) {{\n{}return {};\n}}\n", m,
                             print_statements(*sums[m].epilogue, inputs, {}), result_name(*sums[m].epilogue, 0));
    epilogue = fmt::format("(member == {0} ? epilogue_{0}(sum) : {1})", m, epilogue);
  }
  for (const std::string_view number : kSumNumbers) declared += fmt::format(", {}", number);
  return functions +
         fmt::format(
             "#define SUM_MEMORIES(MEMORY) {}\n#define SUM_NUMBERS(NUMBER) {}\n#define SUM_MEMBER {}; {}\n"
             "#define SUM_EPILOGUE(sum) {}\n",
             memories, numbers, declared, text_by_group(sums.size(), sum_member_text), epilogue) +
         kernel_source("ops/grouped_sums.cl");
}

/// Sums of a launch: more make its text long, and other networks need other programs.
constexpr std::size_t kMostSums = 8;

bool is_small_sum(const Context& context, const KernelRequest& request) {
  if (request.inputs.size() != 1 || request.input_layouts[0] != nullptr) return false;
  const std::optional<Sum> sum = sum_of(*request.op);
  const std::int64_t elements = request.inputs[0].shape.elements();
  if (!sum || elements == 0 || elements > kMostOfSmallSum) return false;
  if (sum->epilogue != nullptr && (sum->epilogue->inputs() > 1 || sum->epilogue->uses_coordinates())) return false;
  const std::vector<ReducePass> passes = passes_of_sum(context, request, *sum);
  return passes.size() == 1 && passes[0].parts == 1;
}

}  // namespace

std::optional<GroupKind> kind_of_sum(Context& context, const KernelRequest& request) {
  // What sums by channel read is often in the last cache yet; of the others a launch takes longest.
  constexpr std::size_t kMostAwaited = std::size_t{1} << 20, kMostAwaitedByChannel = std::size_t{32} << 20;
  if (context.limits().is_cpu) return {};
  if (const auto by_channel = channel_sum_of(context, request)) {
    return GroupKind{channel_sum_kind(context, *by_channel), "reduce_sum", kMostAwaitedByChannel};
  }
  return is_small_sum(context, request) ? std::optional(GroupKind{"row-major", "reduce_sum", kMostAwaited})
                                        : std::nullopt;
}

std::unique_ptr<Kernel> prepare_grouped_sums(Context& context, std::span<const KernelRequest> requests) {
  if (channel_sum_of(context, requests[0])) return prepare_channel_sums(context, requests);
  std::vector<StagedKernel::AnyStage> stages;
  for (std::size_t first = 0; first < requests.size(); first += kMostSums) {
    const std::size_t count = std::min(kMostSums, requests.size() - first);
    std::vector<Sum> sums;
    std::vector<ReducePass> passes;
    std::size_t threads = 256;
    for (const KernelRequest& request : requests.subspan(first, count)) {
      sums.push_back(*sum_of(*request.op));
      passes.push_back(passes_of_sum(context, request, sums.back()).front());
      threads = std::max(threads, lanes_of(context, passes.back()).lanes);
    }
    threads = std::bit_floor(std::min(threads, context.limits().max_work_group));  // as the lanes of a row
    std::vector<Argument> list;
    std::int64_t groups = 0;
    for (std::size_t m = 0; m < count; ++m) {
      const ReducePass& pass = passes[m];
      const Lanes lanes = lanes_of(context, pass);
      const auto rows_of_group = static_cast<std::int64_t>(threads / lanes.lanes);
      const std::int64_t begin = std::exchange(groups, groups + divide_up(pass.outputs(), rows_of_group));
      const std::int64_t run = pass.run / pass.width;
      list.insert(list.end(), {input(first + m), output(first + m)});
      for (const std::int64_t value :
           {pass.outputs(), pass.length / pass.width, pass.inner, run, run * (pass.outer - 1), pass.width,
            static_cast<std::int64_t>(lanes.lanes), static_cast<std::int64_t>(unroll_of(pass, lanes)), begin, groups}) {
        list.emplace_back(as_uint(value));
      }
    }
    std::vector<std::string> definitions = memory_definitions(context);
    definitions.push_back(fmt::format("THREADS={}", threads));
    stages.emplace_back(Stage{context.program_from(sums_text(sums), definitions),
                              "grouped_sums",
                              {PackedArguments{std::move(list)}},
                              {size(groups) * threads, 1, 1},
                              {threads, 1, 1}});
  }
  return std::make_unique<StagedKernel>(context, "grouped sums", std::move(stages));
}

}  // namespace concord::opencl
