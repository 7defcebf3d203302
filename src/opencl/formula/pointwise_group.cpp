// Groups of pointwise operators: as few launches as the device's limit on the arguments of a kernel allows.
#include "concord/ops/pointwise_group.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "concord/opencl/formula/kernels.hpp"
#include "concord/opencl/formula/printer.hpp"
#include "concord/opencl/launch/one_memory.hpp"
#include "concord/opencl/program/source.hpp"

namespace concord::opencl {
namespace {

using Reach = ops::PointwiseGroup::Reach;

/// The elements per work-group, and its items.
struct Share {
  std::size_t local, per_item;
  [[nodiscard]] std::size_t elements() const { return local * per_item; }
};
Share share_of(const Limits& limits) {
  if (limits.is_cpu) return {1, 4096};
  return {std::min<std::size_t>(256, limits.max_work_group), 4};
}

/// Whether a result is a copy in bf16, whose conversion is that of the channels-last layout.
bool stores_bf16(const ops::PointwiseGroup& op) {
  return std::ranges::find(op.member().types(), DType::bf16) != op.member().types().end();
}

/// The text of a launch for `count` members and, with `begin` the first of them, its arguments.
class GroupLaunch {
 public:
  GroupLaunch(const ops::PointwiseGroup& op, const KernelRequest& request, std::size_t begin, std::size_t count)
      : op_(op), request_(request), begin_(begin), count_(count) {}

  [[nodiscard]] std::string text(bool by_runs) const {
    std::string memories, numbers;
    const auto add = [&](const char* qualifier, DType type, const std::string& name) {
      memories += fmt::format("MEMORY({}{} *, {}) ", qualifier, stored_type(type), name);
      numbers += fmt::format("NUMBER(ulong, {}_offset) ", name);
    };
    for (std::size_t i = 0; i < op_.reach().size(); ++i) {
      if (op_.reach()[i] == Reach::shared) add("const ", input_type(i), fmt::format("in{}", i));
    }
    for (std::size_t m = 0; m < count_; ++m) {
      for (std::size_t i = 0; i < op_.reach().size(); ++i) {
        if (op_.reach()[i] == Reach::shared) continue;
        add("const ", input_type(i), fmt::format("m{}_in{}", m, i));
      }
      for (std::size_t k = 0; k < op_.results(); ++k) {
        add("", op_.member().types()[k], fmt::format("m{}_out{}", m, k));
      }
      numbers += fmt::format("NUMBER(uint, m{0}_n) NUMBER(uint, m{0}_end) ", m);
    }
    return kernel_source("shared/formulas.h") + (stores_bf16(op_) ? kernel_source("shared/channels_last.h") : "") +
           fmt::format(
               "#define INPUTS {}\n#define GROUP_MEMORIES(MEMORY) {}\n#define GROUP_NUMBERS(NUMBER) {}\n"
               "#define GROUP_POINTERS {}\n",
               op_.reach().size(), memories, numbers, pointers()) +
           (by_runs ? element() + kernel_source("formula/pointwise_group_contiguous.cl")
                    : load_and_store() + kernel_source("formula/pointwise_group.cl"));
  }

  /// The arguments and the number of work-groups of the launch.
  [[nodiscard]] std::pair<std::vector<Argument>, std::size_t> arguments(const Share& share) const {
    std::vector<Argument> list;
    for (std::size_t i = 0; i < op_.reach().size(); ++i) {
      if (op_.reach()[i] == Reach::shared) list.emplace_back(input(op_.place_of(0, i), size_of(input_type(i))));
    }
    std::size_t groups = 0;
    for (std::size_t m = begin_; m < begin_ + count_; ++m) {
      for (std::size_t i = 0; i < op_.reach().size(); ++i) {
        if (op_.reach()[i] != Reach::shared) list.emplace_back(input(op_.place_of(m, i), size_of(input_type(i))));
      }
      for (std::size_t k = 0; k < op_.results(); ++k) {
        list.emplace_back(output(m * op_.results() + k, size_of(op_.member().types()[k])));
      }
      const auto elements = static_cast<std::size_t>(request_.outputs[m * op_.results()].shape.elements());
      groups += (elements + share.elements() - 1) / share.elements();
      list.emplace_back(static_cast<std::uint32_t>(elements));
      list.emplace_back(static_cast<std::uint32_t>(groups));
    }
    return {{PackedArguments{std::move(list)}}, groups};
  }

 private:
  [[nodiscard]] DType input_type(std::size_t i) const { return request_.inputs[op_.place_of(0, i)].dtype; }

  static std::string stored_type(DType type) { return type == DType::bf16 ? "ushort" : cl_type(type); }

  /// Declares in0, …, out0, …, n and begin, and sets them to those of the group's member.
  [[nodiscard]] std::string pointers() const {
    std::string text = "uint n, begin; ";
    for (std::size_t i = 0; i < op_.reach().size(); ++i) {
      text += fmt::format("__global const {0}* from{1}; ", cl_type(input_type(i)), i);
    }
    for (std::size_t k = 0; k < op_.results(); ++k) {
      text += fmt::format("__global {0}* to{1}; ", stored_type(op_.member().types()[k]), k);
    }
    return text + text_by_group(count_, [this](std::size_t member) { return member_text(member); });
  }

  [[nodiscard]] std::string member_text(std::size_t first) const {
    std::string text;
    for (std::size_t i = 0; i < op_.reach().size(); ++i) {
      const std::string name =
          op_.reach()[i] == Reach::shared ? fmt::format("in{}", i) : fmt::format("m{}_in{}", first, i);
      text += fmt::format("from{0} = {1} + {1}_offset; ", i, name);
    }
    for (std::size_t k = 0; k < op_.results(); ++k) {
      text += fmt::format("to{0} = m{1}_out{0} + m{1}_out{0}_offset; ", k, first);
    }
    return text + fmt::format("n = m{}_n; begin = {}; ", first, first == 0 ? "0" : fmt::format("m{}_end", first - 1));
  }

  [[nodiscard]] std::string read(std::size_t i) const {
    return cl_load(input_type(i), fmt::format("from{}", i), op_.reach()[i] == Reach::whole ? "i" : "0");
  }

  /// The statements as one line of a macro.
  [[nodiscard]] std::string statements(const std::vector<std::string>& inputs) const {
    std::string text = print_statements(op_.member().expression(), inputs, {});
    for (std::size_t k = 0; k < op_.results(); ++k) {
      const DType type = op_.member().types()[k];
      const std::string value = result_name(op_.member().expression(), k);
      text += type == DType::bf16 ? fmt::format("to{}[i] = (ushort)pair_of({}, 0.0f);", k, value)
                                  : cl_store(type, fmt::format("to{}", k), "i", value);
      text += " ";
    }
    std::ranges::replace(text, '\n', ' ');
    return text;
  }

  [[nodiscard]] std::string load_and_store() const {
    std::string loads;
    std::vector<std::string> inputs;
    for (std::size_t i = 0; i < op_.reach().size(); ++i) {
      loads += fmt::format("(in)[{}] = {}; ", i, read(i));
      inputs.push_back(fmt::format("(in)[{}]", i));
    }
    return fmt::format("#define GROUP_LOAD(in, i) {{ {}}}\n#define GROUP_STORE(in, i) {{ {}}}\n", loads,
                       statements(inputs));
  }

  [[nodiscard]] std::string element() const {
    std::vector<std::string> inputs;
    for (std::size_t i = 0; i < op_.reach().size(); ++i) inputs.push_back(read(i));
    return fmt::format("#define GROUP_ELEMENT(i) {{ {}}}\n", statements(inputs));
  }

  const ops::PointwiseGroup& op_;
  const KernelRequest& request_;
  std::size_t begin_, count_;
};

/// Members whose arguments fit into one launch: a buffer takes a pointer and an offset, eight bytes each.
std::size_t most_members(const Context& context, const ops::PointwiseGroup& op) {
  constexpr std::size_t kBuffer = 16, kGroupNumbers = 8, kMost = 64;
  const auto bytes = context.device().get_info<std::size_t>(CL_DEVICE_MAX_PARAMETER_SIZE);
  const auto shared = static_cast<std::size_t>(std::ranges::count(op.reach(), Reach::shared));
  const std::size_t member = (op.reach().size() - shared + op.results()) * kBuffer + kGroupNumbers;
  const std::size_t used = shared * kBuffer;
  return std::clamp<std::size_t>(bytes > used ? (bytes - used) / member : 1, 1, kMost);
}

PreparedKernel prepare_pointwise_group(Context& context, const ops::PointwiseGroup& op, const KernelRequest& request) {
  const Share share = share_of(context.limits());
  const std::size_t most = most_members(context, op), launches = (op.members() + most - 1) / most;
  const bool by_runs = context.limits().is_cpu;
  std::vector<std::string> definitions = memory_definitions(context);
  definitions.push_back(fmt::format("{}={}", by_runs ? "CHUNK" : "PER_ITEM", share.per_item));
  if (stores_bf16(op) && context.capability().has_matrix_cores()) definitions.emplace_back("PTX");
  std::vector<StagedKernel::AnyStage> stages;
  for (std::size_t begin = 0; begin < op.members();) {
    // Launches of about the same number of members share a program.
    const std::size_t count = std::min((op.members() + launches - 1) / launches, op.members() - begin);
    const GroupLaunch launch(op, request, begin, count);
    auto [arguments, groups] = launch.arguments(share);
    stages.emplace_back(Stage{context.program_from(launch.text(by_runs), definitions),
                              "pointwise_group",
                              std::move(arguments),
                              {groups * share.local, 1, 1},
                              {share.local, 1, 1}});
    begin += count;
  }
  const std::string name = fmt::format("pointwise, {} launch{}", stages.size(), stages.size() == 1 ? "" : "es");
  return prepared(request, std::make_unique<StagedKernel>(context, name, std::move(stages)));
}

}  // namespace

void add_pointwise_group(Kernels& kernels) { kernels.add<ops::PointwiseGroup, prepare_pointwise_group>(); }

}  // namespace concord::opencl
