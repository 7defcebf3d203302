// Products of the gradient pass as one operator: those that share a factor, and those of a kind that the device groups.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "concord/compile/rearranged.hpp"
#include "concord/ops/matmul.hpp"

namespace concord {
namespace {

class ProductGroups {
 public:
  ProductGroups(Lowered& program, const Device& device, Precision precision)
      : program_(program), device_(device), precision_(precision) {
    for (const LoweredNode& node : program.nodes) {
      if (!is_grouped_matmul(node)) continue;
      for (const std::size_t side : {0, 1}) ++sharing_[factor_of(node, side)];
    }
  }

  void run() {
    for (std::size_t n = 0; n < program_.nodes.size(); ++n) {
      const LoweredNode& node = program_.nodes[n];
      for (auto& [name, group] : open_) {
        const auto reads = [&](std::size_t member) {
          const ValueId result = program_.nodes[member].outputs[0];
          return std::ranges::any_of(node.inputs, [&](ValueId id) { return program_.root(id) == result; });
        };
        if (std::ranges::any_of(group.members, reads)) close(group);
      }
      if (const std::optional<GroupKind> kind = kind_of(node)) add(n, *kind);
    }
    for (auto& [name, group] : open_) close(group);
    std::size_t n = 0;
    std::erase_if(program_.nodes, [&](const LoweredNode&) { return gone_.contains(n++); });
  }

 private:
  /// Nodes of one kind that wait for more.
  struct Group {
    std::vector<std::size_t> members;
    std::set<ValueId> read;
    std::size_t held = 0;  // bytes of what they read
  };

  [[nodiscard]] bool is_grouped_matmul(const LoweredNode& node) const {
    const auto* const matmul = dynamic_cast<const ops::Matmul*>(node.op.get());
    return matmul != nullptr && node.pass == Pass::gradient && matmul->transpose_a() && !matmul->transpose_b() &&
           device_.groups_products(program_.specs(node.inputs), precision_);
  }

  /// The factor that products share, by its place and value, and the sizes of both.
  [[nodiscard]] std::string factor_of(const LoweredNode& node, std::size_t side) const {
    const auto shape = [&](std::size_t i) { return program_.value(node.inputs[i]).spec.shape.str(); };
    return fmt::format("factor {} of {} and {}: {}", side, shape(0), shape(1), program_.root(node.inputs[side]));
  }

  [[nodiscard]] std::optional<GroupKind> kind_of(const LoweredNode& node) const {
    constexpr std::size_t kMostTogether = 8;  // the factors of all wait for the last in memory
    if (is_grouped_matmul(node)) {
      const std::string left = factor_of(node, 0), right = factor_of(node, 1);
      const std::string& shared = sharing_.at(left) > sharing_.at(right) ? left : right;
      if (sharing_.at(shared) < 2) return {};
      return GroupKind{shared, "matmul", SIZE_MAX, kMostTogether};
    }
    if (!node.op || node.pass != Pass::gradient || node.outputs.size() != 1) return {};
    return device_.gradient_kind(*node.op, program_.specs(node.inputs), precision_);
  }

  void add(std::size_t n, const GroupKind& kind) {
    Group& group = open_[kind.name];
    if (group.held > kind.awaited) close(group);
    group.members.push_back(n);
    for (const ValueId id : program_.nodes[n].inputs) {
      if (group.read.insert(program_.root(id)).second) group.held += program_.bytes(id);
    }
    if (group.members.size() == kind.most) close(group);
  }

  /// Makes one node of the members where the last of them stands.
  void close(Group& group) {
    const std::vector<std::size_t> closed = std::exchange(group, {}).members;
    if (closed.size() < 2) return;
    gone_.insert(closed.begin(), closed.end() - 1);
    program_.nodes[closed.back()] = merged_node(program_, closed, program_.nodes[closed.back()].op->name());
  }

  Lowered& program_;
  const Device& device_;
  Precision precision_;
  std::map<std::string, int> sharing_;
  std::map<std::string, Group> open_;  // by kind
  std::set<std::size_t> gone_;         // nodes
};

}  // namespace

void group_products(Lowered& program, const Device& device, Precision precision) {
  ProductGroups(program, device, precision).run();
}

}  // namespace concord
