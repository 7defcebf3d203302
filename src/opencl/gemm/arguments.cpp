// Definitions and arguments of the GEMM kernels, in the order of cl_kernels/gemm/operands.h.
#include "concord/opencl/gemm/arguments.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "concord/core/check.hpp"
#include "concord/opencl/formula/channels_last.hpp"
#include "concord/opencl/launch/one_memory.hpp"
#include "concord/opencl/launch/strides.hpp"
#include "concord/opencl/program/source.hpp"

namespace concord::opencl {
namespace {

class Arguments {
 public:
  explicit Arguments(const Gemm& gemm) : wide_(gemm.largest > std::numeric_limits<std::int32_t>::max()) {}

  void count(std::int64_t value) { list_.emplace_back(narrow<std::uint32_t>(value)); }
  void number(std::int64_t value) { list_.emplace_back(narrow<std::int32_t>(value)); }
  void batch(std::int64_t value) { list_.emplace_back(static_cast<std::uint64_t>(value)); }
  void buffer(const BufferArgument& argument) { list_.emplace_back(argument); }
  /// An index_t.
  void stride(std::int64_t value) {
    if (wide_) {
      list_.emplace_back(value);
    } else {
      number(value);
    }
  }
  /// A DIVISOR; block size 0 means no blocks.
  void divisor(std::int64_t value) { add_divisor(list_, std::max<std::int64_t>(value, 1)); }
  void add(const std::vector<Argument>& more) { list_.insert(list_.end(), more.begin(), more.end()); }
  [[nodiscard]] std::vector<Argument> take() { return std::move(list_); }

 private:
  template <class T>
  static T narrow(std::int64_t value) {
    CONCORD_CHECK(
        value >= std::numeric_limits<std::int32_t>::min() && value <= std::numeric_limits<std::int32_t>::max(),
        NotSupported, "matrix multiplication: {} exceeds the 2^31 - 1 rows, columns and steps of the kernels", value);
    return static_cast<T>(value);
  }

  bool wide_;
  std::vector<Argument> list_;
};

void add_part(Arguments& list, const PatchPart& part) {
  list.divisor(part.block);
  list.divisor(part.line);
  list.stride(part.plane);
  list.number(part.move[1]);
  list.number(part.move[2]);
}

// Adds the arguments for VOLUME.
void add_depth(Arguments& list, const Patch& patch) {
  for (const PatchPart* part : {&patch.k, &patch.n}) {
    list.divisor(part->page);
    list.number(part->move[0]);
  }
  list.number(patch.shift[0]);
  list.number(patch.size[0]);
  list.divisor(patch.step[0]);
}

void add_left(Arguments& list, const GemmLeft& a) {
  list.buffer(a.buffer);
  list.batch(a.batch);
  list.stride(a.row);
  list.stride(a.k);
  list.stride(a.outer);
  list.divisor(a.block);
}

void add_right(Arguments& list, const Gemm& gemm) {
  Patch patch = gemm.patch;
  if (gemm.b.block != 0) patch.k.block = gemm.b.block;
  list.buffer(gemm.b.buffer);
  list.batch(gemm.b.batch);
  list.stride(gemm.b.elements);
  list.stride(gemm.b.k);
  list.stride(gemm.b.n);
  add_part(list, patch.k);
  add_part(list, patch.n);
  list.number(patch.shift[1]);
  list.number(patch.shift[2]);
  list.number(patch.size[1]);
  list.number(patch.size[2]);
  list.divisor(patch.step[1]);
  list.divisor(patch.step[2]);
  if (gemm.is_volume()) add_depth(list, patch);
}

void add_result(Arguments& list, const GemmResult& c) {
  list.buffer(c.is_channels_last ? blocks_of(c.buffer) : c.buffer);
  list.batch(c.batch);
  list.stride(c.row);
  list.stride(c.outer);
  list.divisor(c.block);
  if (!c.is_stepped()) return;
  list.divisor(c.page);
  list.divisor(c.line);
  list.count(c.first);
  for (const std::int64_t step : c.step) list.count(step);
}

void define_result(std::vector<std::string>& definitions, const GemmResult& c) {
  if (c.is_channels_last) definitions.emplace_back("C_CHANNELS_LAST");
  if (c.block != 0) definitions.emplace_back("C_BLOCKED");
  if (c.is_stepped()) definitions.emplace_back("C_STEPPED");
}

/// Adds the definitions that channels_last.h needs when the result is in channels-last layout.
void add_numbers(Context& context, const Gemm& gemm, std::vector<std::string>& definitions) {
  if (!gemm.c.is_channels_last) return;
  const std::vector<std::string> numbers = number_definitions(context, storage_number(gemm.precision));
  definitions.insert(definitions.end(), numbers.begin(), numbers.end());
}

}  // namespace

std::string gemm_index_definition(const Gemm& gemm) {
  return gemm.largest > std::numeric_limits<std::int32_t>::max() ? "INDEX=long" : "INDEX=int";
}

std::vector<std::string> gemm_definitions(const Gemm& gemm) {
  std::vector<std::string> list{gemm_index_definition(gemm)};
  if (gemm.a.is_patch) {
    list.emplace_back("A_PATCH");
  } else {
    if (gemm.a.k == 1) list.emplace_back("A_ALONG_K");
    if (gemm.a.block != 0) list.emplace_back("A_BLOCKED");
  }
  if (gemm.b.along_k) list.emplace_back("B_ALONG_K");
  if (gemm.b.block != 0) list.emplace_back("B_BLOCKED");
  if (gemm.b.is_patch) {
    list.emplace_back("B_PATCH");
    if (gemm.patch.inside) list.emplace_back("B_INSIDE");
    if (gemm.patch.step != PatchSizes{1, 1, 1}) list.emplace_back("B_STEP");
  }
  if (gemm.is_volume()) list.emplace_back("VOLUME");
  return list;
}

std::vector<Argument> gemm_arguments(const Gemm& gemm, std::int64_t parts, std::int64_t k_part,
                                     const std::vector<Argument>& extra) {
  Arguments list(gemm);
  list.count(gemm.m);
  list.count(gemm.n);
  list.count(gemm.k);
  list.count(k_part);
  list.count(gemm.batch);
  add_left(list, gemm.a);
  add_right(list, gemm);
  GemmResult partial{workspace(gemm.before_bytes), gemm.m * gemm.n, gemm.n};
  partial.is_channels_last = gemm.c.is_channels_last;
  add_result(list, parts > 1 ? partial : gemm.c);
  list.add(extra);
  std::vector<Argument> arguments{PackedArguments{list.take()}};
  if (parts == 1) arguments.insert(arguments.end(), gemm.epilogue.arguments.begin(), gemm.epilogue.arguments.end());
  return arguments;
}

std::vector<Argument> gemm_left_arguments(const Gemm& gemm) {
  Arguments list(gemm);
  add_left(list, gemm.a);
  return list.take();
}

std::vector<Argument> gemm_result_arguments(const Gemm& gemm) {
  Arguments list(gemm);
  add_result(list, gemm.c);
  return list.take();
}

PendingProgram gemm_program(Context& context, const Gemm& gemm, std::string_view file, bool with_epilogue,
                            std::vector<std::string> definitions) {
  const auto add = [&](const std::vector<std::string>& more) {
    definitions.insert(definitions.end(), more.begin(), more.end());
  };
  add(gemm_definitions(gemm));
  add(memory_definitions(context));
  if (with_epilogue) {
    define_result(definitions, gemm.c);
  } else if (gemm.c.is_channels_last) {
    definitions.insert(definitions.end(), {"C_CHANNELS_LAST", "C_IS_PARTIAL"});
  }
  add_numbers(context, gemm, definitions);
  const std::string epilogue = with_epilogue ? gemm.epilogue.text : std::string{};
  return context.program_from(epilogue + kernel_source(file), definitions);
}

Stage gemm_combine_stage(Context& context, const Gemm& gemm, std::int64_t parts) {
  Arguments list(gemm);
  list.count(gemm.m);
  list.count(gemm.n);
  list.count(gemm.batch);
  list.count(parts);
  list.buffer(gemm.c.is_channels_last ? workspace(gemm.before_bytes, 16) : workspace(gemm.before_bytes));
  add_result(list, gemm.c);
  std::vector<Argument> arguments{PackedArguments{list.take()}};
  arguments.insert(arguments.end(), gemm.epilogue.arguments.begin(), gemm.epilogue.arguments.end());
  std::vector<std::string> definitions = memory_definitions(context);
  definitions.push_back(gemm_index_definition(gemm));
  define_result(definitions, gemm.c);
  add_numbers(context, gemm, definitions);
  const PendingProgram program =
      context.program_from(gemm.epilogue.text + kernel_source("gemm/combine.cl"), definitions);
  const std::size_t width = std::min<std::size_t>(64, context.limits().max_work_group);
  const auto in_groups = [&](std::int64_t items) {
    return (static_cast<std::size_t>(items) + width - 1) / width * width;
  };
  if (gemm.c.is_channels_last) {
    return {program,
            "gemm_combine_blocks",
            std::move(arguments),
            {in_groups(gemm.m * gemm.n / ChannelsLast::kBlock), 1, 1},
            {width, 1, 1}};
  }
  return {program,
          "gemm_combine_parts",
          std::move(arguments),
          {in_groups(gemm.n), static_cast<std::size_t>(gemm.m), static_cast<std::size_t>(gemm.batch)},
          {width, 1, 1}};
}

std::size_t gemm_workspace(const Gemm& gemm, std::int64_t parts) {
  const std::int64_t elements = parts == 1 ? 0 : parts * gemm.batch * gemm.m * gemm.n;
  return gemm.before_bytes + static_cast<std::size_t>(elements) * sizeof(float);
}

std::unique_ptr<Kernel> gemm_staged(Context& context, const Gemm& gemm, std::string name, Stage multiply,
                                    std::int64_t parts) {
  std::vector<StagedKernel::AnyStage> stages(gemm.before.begin(), gemm.before.end());
  stages.emplace_back(std::move(multiply));
  if (parts > 1) {
    stages.emplace_back(gemm_combine_stage(context, gemm, parts));
    name += fmt::format(", k in {}", parts);
  }
  return std::make_unique<StagedKernel>(context, std::move(name), std::move(stages), gemm_workspace(gemm, parts));
}

}  // namespace concord::opencl
