// SequenceKernel: its members share the workspace.
#include "concord/opencl/launch/sequence.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace concord::opencl {
namespace {

class Sequence final : public Launch {
 public:
  explicit Sequence(std::vector<std::unique_ptr<Launch>> launches) : launches_(std::move(launches)) {}
  void enqueue() override {
    for (const auto& launch : launches_) launch->enqueue();
  }

 private:
  std::vector<std::unique_ptr<Launch>> launches_;
};

}  // namespace

std::size_t SequenceKernel::workspace() const {
  std::size_t most = 0;
  for (const Member& member : members_) most = std::max(most, member.kernel->workspace());
  return most;
}

std::string SequenceKernel::name() const {
  return fmt::format("{} and {} more", members_.front().kernel->name(), members_.size() - 1);
}

std::unique_ptr<Launch> SequenceKernel::bind(std::span<const Operand> inputs, std::span<const Operand> outputs,
                                             Operand workspace) const {
  std::vector<std::unique_ptr<Launch>> launches;
  std::size_t first = 0;
  for (std::size_t m = 0; m < members_.size(); ++m) {
    const auto& [kernel, count] = members_[m];
    launches.push_back(kernel->bind(inputs.subspan(first, count), outputs.subspan(m, 1), workspace));
    first += count;
  }
  return std::make_unique<Sequence>(std::move(launches));
}

}  // namespace concord::opencl
