// The two kinds of kernel: one oneDNN primitive, or one loop of our own; and the table of all.
#include "kernels.hpp"

#include <unordered_map>

#include "concord/core/check.hpp"
#include "full_team.hpp"
#include "thread_mode.hpp"
#include "threads.hpp"

namespace concord::cpu {
namespace {

class PrimitiveLaunch final : public Launch {
 public:
  PrimitiveLaunch(dnnl::primitive primitive, std::string name, std::unordered_map<int, dnnl::memory> arguments,
                  int threads)
      : primitive_(std::move(primitive)), name_(std::move(name)), memories_(std::move(arguments)), threads_(threads) {
    for (const auto& [argument, memory] : memories_) arguments_.push_back({argument, memory.get()});
  }
  void enqueue() override {
    const ThreadMode mode;
    with_full_team(threads_, [this] {
      // The C++ function would build the list of arguments anew each time.
      guarded(name_, [this] {
        dnnl::error::wrap_c_api(dnnl_primitive_execute(primitive_.get(), stream().get(),
                                                       static_cast<int>(arguments_.size()), arguments_.data()),
                                "it failed to run");
      });
    });
  }

 private:
  dnnl::primitive primitive_;
  std::string name_;
  std::unordered_map<int, dnnl::memory> memories_;
  std::vector<dnnl_exec_arg_t> arguments_;
  int threads_;
};

class PrimitiveKernel final : public Kernel {
 public:
  PrimitiveKernel(dnnl::primitive primitive, Desc scratchpad, std::string name,
                  std::vector<PrimitiveArgument> arguments)
      : primitive_(std::move(primitive)),
        scratchpad_(std::move(scratchpad)),
        name_(std::move(name)),
        arguments_(std::move(arguments)) {}
  [[nodiscard]] std::size_t workspace() const override { return scratchpad_.get_size(); }
  [[nodiscard]] std::string name() const override { return name_; }
  [[nodiscard]] std::unique_ptr<Launch> bind(std::span<const Operand> inputs, std::span<const Operand> outputs,
                                             Operand workspace) const override {
    return guarded(name_, [&] {
      return std::make_unique<PrimitiveLaunch>(primitive_, name_, memories_of(inputs, outputs, workspace), threads_);
    });
  }

 private:
  [[nodiscard]] std::unordered_map<int, dnnl::memory> memories_of(std::span<const Operand> inputs,
                                                                  std::span<const Operand> outputs,
                                                                  const Operand& workspace) const {
    std::unordered_map<int, dnnl::memory> memories;
    for (const PrimitiveArgument& argument : arguments_) {
      const bool is_input = argument.kind == PrimitiveArgument::Kind::input;
      const Operand& operand = is_input ? inputs[argument.index] : outputs[argument.index];
      memories.emplace(argument.argument, dnnl::memory(argument.desc, engine(), address(operand)));
    }
    if (scratchpad_.get_size() > 0) {
      memories.emplace(DNNL_ARG_SCRATCHPAD, dnnl::memory(scratchpad_, engine(), address(workspace)));
    }
    return memories;
  }

  dnnl::primitive primitive_;
  Desc scratchpad_;
  std::string name_;
  std::vector<PrimitiveArgument> arguments_;
  int threads_ = omp_get_max_threads();  // it was made for
};

class LoopLaunch final : public Launch {
 public:
  LoopLaunch(std::shared_ptr<const Loop> loop, Pointers pointers)
      : loop_(std::move(loop)), pointers_(std::move(pointers)) {}
  void enqueue() override {
    const ThreadMode mode;
    (*loop_)(pointers_);
  }

 private:
  std::shared_ptr<const Loop> loop_;
  Pointers pointers_;
};

class LoopKernel final : public Kernel {
 public:
  LoopKernel(std::string name, std::size_t workspace, Loop loop)
      : name_(std::move(name)), workspace_(workspace), loop_(std::make_shared<const Loop>(std::move(loop))) {}
  [[nodiscard]] std::size_t workspace() const override { return workspace_; }
  [[nodiscard]] std::string name() const override { return name_; }
  [[nodiscard]] std::unique_ptr<Launch> bind(std::span<const Operand> inputs, std::span<const Operand> outputs,
                                             Operand workspace) const override {
    return std::make_unique<LoopLaunch>(loop_, Pointers(inputs, outputs, workspace));
  }

 private:
  std::string name_;
  std::size_t workspace_;
  std::shared_ptr<const Loop> loop_;
};

class SequenceLaunch final : public Launch {
 public:
  SequenceLaunch(std::unique_ptr<Launch> first, std::unique_ptr<Launch> second)
      : first_(std::move(first)), second_(std::move(second)) {}
  void enqueue() override {
    first_->enqueue();
    second_->enqueue();
  }

 private:
  std::unique_ptr<Launch> first_, second_;
};

/// Its primitive adds to what lies in its output: input `operand`.
class AddingKernel final : public Kernel {
 public:
  AddingKernel(std::unique_ptr<Kernel> primitive, std::size_t operand, std::size_t bytes)
      : primitive_(std::move(primitive)),
        operand_(operand),
        copy_(std::make_shared<const Loop>(copy_of(operand, bytes))) {}
  [[nodiscard]] std::size_t workspace() const override { return primitive_->workspace(); }
  [[nodiscard]] std::string name() const override { return primitive_->name(); }
  [[nodiscard]] std::unique_ptr<Launch> bind(std::span<const Operand> inputs, std::span<const Operand> outputs,
                                             Operand workspace) const override {
    auto launch = primitive_->bind(inputs, outputs, workspace);
    if (address(inputs[operand_]) == address(outputs[0])) return launch;
    return std::make_unique<SequenceLaunch>(std::make_unique<LoopLaunch>(copy_, Pointers(inputs, outputs, {})),
                                            std::move(launch));
  }

 private:
  static Loop copy_of(std::size_t operand, std::size_t bytes) {
    return [operand, bytes, threads = omp_get_max_threads()](const Pointers& pointers) {
      const auto count = static_cast<std::int64_t>(bytes);
      parallel_parts(count, threads, bytes >= kParallelElements * sizeof(float),
                     [&](std::int64_t, std::int64_t begin, std::int64_t end) {
                       std::memcpy(pointers.output<std::byte>(0) + begin, pointers.input<std::byte>(operand) + begin,
                                   static_cast<std::size_t>(end - begin));
                     });
    };
  }

  std::unique_ptr<Kernel> primitive_;
  std::size_t operand_;
  std::shared_ptr<const Loop> copy_;
};

class SequenceKernel final : public Kernel {
 public:
  SequenceKernel(std::unique_ptr<Kernel> first, std::unique_ptr<Kernel> second)
      : first_(std::move(first)), second_(std::move(second)) {}
  [[nodiscard]] std::size_t workspace() const override { return first_->workspace(); }
  [[nodiscard]] std::string name() const override { return first_->name() + " + " + second_->name(); }
  [[nodiscard]] std::unique_ptr<Launch> bind(std::span<const Operand> inputs, std::span<const Operand> outputs,
                                             Operand workspace) const override {
    return std::make_unique<SequenceLaunch>(first_->bind(inputs, outputs, workspace),
                                            second_->bind(inputs, outputs, {}));
  }

 private:
  std::unique_ptr<Kernel> first_, second_;
};

}  // namespace

std::byte* address(const Operand& operand) {
  if (operand.buffer == nullptr) return nullptr;
  return static_cast<const HostBuffer*>(operand.buffer)->data() + operand.offset;
}

std::unique_ptr<Kernel> primitive_kernel(const dnnl::primitive& primitive, const Desc& scratchpad,
                                         std::string implementation, std::vector<PrimitiveArgument> arguments) {
  return std::make_unique<PrimitiveKernel>(primitive, scratchpad, "oneDNN " + std::move(implementation),
                                           std::move(arguments));
}

std::unique_ptr<Kernel> reorder_kernel(const Desc& from, const Desc& to) {
  return guarded("reorder", [&] {
    const dnnl::reorder::primitive_desc desc(engine(), from, engine(), to, attributes());
    return primitive_kernel(dnnl::reorder(desc), desc,
                            {input_argument(DNNL_ARG_FROM, 0, from), output_argument(DNNL_ARG_TO, 0, to)});
  });
}

Pointers::Pointers(std::span<const Operand> inputs, std::span<const Operand> outputs, const Operand& workspace)
    : workspace_(address(workspace)) {
  for (const Operand& operand : inputs) inputs_.push_back(address(operand));
  for (const Operand& operand : outputs) outputs_.push_back(address(operand));
}

std::unique_ptr<Kernel> loop_kernel(std::string name, std::size_t workspace, Loop loop) {
  return std::make_unique<LoopKernel>(std::move(name), workspace, std::move(loop));
}

std::unique_ptr<Kernel> followed_by(std::unique_ptr<Kernel> first, std::string name, Loop loop) {
  return std::make_unique<SequenceKernel>(std::move(first), loop_kernel(std::move(name), 0, std::move(loop)));
}

std::unique_ptr<Kernel> adding_to(std::unique_ptr<Kernel> primitive, std::size_t operand, std::size_t bytes) {
  return std::make_unique<AddingKernel>(std::move(primitive), operand, bytes);
}

PreparedKernel all_plain(const KernelRequest& request, std::unique_ptr<Kernel> kernel) {
  return {std::move(kernel), std::vector<Layout>(request.inputs.size()), std::vector<Layout>(request.outputs.size())};
}

const Kernels& kernel_table() {
  static const Kernels table = [] {
    Kernels kernels;
    add_families(kernels);
    return kernels;
  }();
  return table;
}

}  // namespace concord::cpu
