// Groups of pointwise operators: the kernels of the members one after the other.
#include "concord/ops/pointwise_group.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "kernels.hpp"

namespace concord::cpu {
namespace {

class GroupLaunch final : public Launch {
 public:
  explicit GroupLaunch(std::vector<std::unique_ptr<Launch>> members) : members_(std::move(members)) {}
  void enqueue() override {
    for (const std::unique_ptr<Launch>& member : members_) member->enqueue();
  }

 private:
  std::vector<std::unique_ptr<Launch>> members_;
};

class GroupKernel final : public Kernel {
 public:
  struct Member {
    std::unique_ptr<Kernel> kernel;
    std::vector<std::size_t> inputs, outputs;  // places among the group's
  };
  explicit GroupKernel(std::vector<Member> members) : members_(std::move(members)) {}
  [[nodiscard]] std::size_t workspace() const override {
    std::size_t bytes = 0;
    for (const Member& member : members_) bytes = std::max(bytes, member.kernel->workspace());
    return bytes;
  }
  [[nodiscard]] std::string name() const override { return members_.front().kernel->name(); }
  [[nodiscard]] std::unique_ptr<Launch> bind(std::span<const Operand> inputs, std::span<const Operand> outputs,
                                             Operand workspace) const override {
    std::vector<std::unique_ptr<Launch>> launches;
    for (const Member& member : members_) {
      std::vector<Operand> from, to;
      for (const std::size_t i : member.inputs) from.push_back(inputs[i]);
      for (const std::size_t k : member.outputs) to.push_back(outputs[k]);
      launches.push_back(member.kernel->bind(from, to, workspace));
    }
    return std::make_unique<GroupLaunch>(std::move(launches));
  }

 private:
  std::vector<Member> members_;
};

PreparedKernel prepare_pointwise_group(Backend& backend, const ops::PointwiseGroup& op, const KernelRequest& request) {
  PreparedKernel prepared{nullptr, request.input_layouts, std::vector<Layout>(request.outputs.size())};
  std::vector<GroupKernel::Member> members;
  for (std::size_t m = 0; m < op.members(); ++m) {
    GroupKernel::Member member;
    KernelRequest own{&op.member(), {}, {}, {}};
    for (std::size_t i = 0; i < op.reach().size(); ++i) {
      const std::size_t place = op.place_of(m, i);
      member.inputs.push_back(place);
      own.inputs.push_back(request.inputs[place]);
      own.input_layouts.push_back(prepared.input_layouts[place]);
    }
    for (std::size_t k = 0; k < op.results(); ++k) {
      member.outputs.push_back(m * op.results() + k);
      own.outputs.push_back(request.outputs[member.outputs.back()]);
    }
    PreparedKernel one = kernel_table().prepare(backend, own);
    for (std::size_t i = 0; i < member.inputs.size(); ++i) {
      prepared.input_layouts[member.inputs[i]] = one.input_layouts[i];
    }
    for (std::size_t k = 0; k < member.outputs.size(); ++k) {
      prepared.output_layouts[member.outputs[k]] = one.output_layouts[k];
    }
    member.kernel = std::move(one.kernel);
    members.push_back(std::move(member));
  }
  prepared.kernel = std::make_unique<GroupKernel>(std::move(members));
  return prepared;
}

}  // namespace

void add_pointwise_group(Kernels& kernels) { kernels.add<ops::PointwiseGroup, prepare_pointwise_group>(); }

}  // namespace concord::cpu
