// Products of the gradient pass that share a factor, as one operator.
#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "concord/compile/rearranged.hpp"
#include "concord/ops/matmul.hpp"

namespace concord {
namespace {

/// The factor that products share, by its place and value, and the sizes of both.
using SharedFactor = std::tuple<std::size_t, ValueId, std::vector<std::int64_t>, std::vector<std::int64_t>>;

class ProductGroups {
 public:
  ProductGroups(Lowered& program, const Device& device, Precision precision)
      : program_(program), device_(device), precision_(precision) {
    for (const LoweredNode& node : program.nodes) {
      if (!is_candidate(node)) continue;
      for (const std::size_t side : {0, 1}) ++sharing_[factor_of(node, side)];
    }
  }

  void run() {
    for (std::size_t n = 0; n < program_.nodes.size(); ++n) {
      const LoweredNode& node = program_.nodes[n];
      for (auto& [factor, members] : open_) {
        const auto reads = [&](std::size_t member) {
          const ValueId result = program_.nodes[member].outputs[0];
          return std::ranges::any_of(node.inputs, [&](ValueId id) { return program_.root(id) == result; });
        };
        if (std::ranges::any_of(members, reads)) close(members);
      }
      if (!is_candidate(node)) continue;
      const SharedFactor left = factor_of(node, 0), right = factor_of(node, 1);
      const SharedFactor& shared = sharing_[left] > sharing_[right] ? left : right;
      if (sharing_[shared] < 2) continue;
      std::vector<std::size_t>& members = open_[shared];
      members.push_back(n);
      if (members.size() == kMostTogether) close(members);
    }
    for (auto& [factor, members] : open_) close(members);
    std::size_t n = 0;
    std::erase_if(program_.nodes, [&](const LoweredNode&) { return gone_.contains(n++); });
  }

 private:
  static constexpr std::size_t kMostTogether = 8;  // the factors of all wait for the last in memory

  [[nodiscard]] bool is_candidate(const LoweredNode& node) const {
    const auto* const matmul = dynamic_cast<const ops::Matmul*>(node.op.get());
    return matmul != nullptr && node.pass == Pass::gradient && matmul->transpose_a() && !matmul->transpose_b() &&
           device_.groups_products(program_.specs(node.inputs), precision_);
  }

  [[nodiscard]] SharedFactor factor_of(const LoweredNode& node, std::size_t side) const {
    const auto sizes = [&](std::size_t i) { return program_.value(node.inputs[i]).spec.shape.dims(); };
    const auto of = [](const auto& dims) { return std::vector<std::int64_t>(dims.begin(), dims.end()); };
    return {side, program_.root(node.inputs[side]), of(sizes(0)), of(sizes(1))};
  }

  /// Makes one node of the members where the last of them stands.
  void close(std::vector<std::size_t>& members) {
    const std::vector<std::size_t> closed = std::exchange(members, {});
    if (closed.size() < 2) return;
    gone_.insert(closed.begin(), closed.end() - 1);
    program_.nodes[closed.back()] = merged_node(program_, closed, program_.nodes[closed.back()].op->name());
  }

  Lowered& program_;
  const Device& device_;
  Precision precision_;
  std::map<SharedFactor, int> sharing_;
  std::map<SharedFactor, std::vector<std::size_t>> open_;  // nodes
  std::set<std::size_t> gone_;
};

}  // namespace

void group_products(Lowered& program, const Device& device, Precision precision) {
  ProductGroups(program, device, precision).run();
}

}  // namespace concord
