// Groups of operators in one launch: sums that take less time than their launch, products too small for the device.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "concord/compile/rearranged.hpp"

namespace concord {
namespace {

class OperatorGroups {
 public:
  OperatorGroups(Lowered& program, Device& device, Precision precision, std::size_t most_apart)
      : program_(program), device_(device), precision_(precision), most_apart_(most_apart) {}

  void run() {
    for (std::size_t n = 0; n < program_.nodes.size(); ++n) {
      const LoweredNode& node = program_.nodes[n];
      for (auto& [name, group] : open_) {
        const auto is_result = [&](ValueId id) { return group.results.contains(program_.root(id)); };
        if (!std::ranges::any_of(node.inputs, is_result)) continue;
        if (node.is_alias()) {
          group.views.push_back(n);
        } else {
          close(group);
        }
      }
      if (const auto kind = kind_of(node)) add(n, *kind);
    }
    for (auto& [name, group] : open_) close(group);
    std::vector<LoweredNode> nodes;
    for (std::size_t n = 0; n < program_.nodes.size(); ++n) {
      if (gone_.contains(n)) continue;
      nodes.push_back(std::move(program_.nodes[n]));
      if (const auto found = behind_.find(n); found != behind_.end()) {
        nodes.insert(nodes.end(), found->second.begin(), found->second.end());
      }
    }
    program_.nodes = std::move(nodes);
  }

 private:
  /// Operators of one kind that wait for more.
  struct Group {
    std::string label;
    std::vector<std::size_t> members, views;  // nodes; aliases of the members' results
    std::set<ValueId> read, results;
    std::size_t held = 0;  // bytes of what they read
  };

  [[nodiscard]] KernelRequest request_of(const LoweredNode& node) const {
    KernelRequest request{node.op.get(), program_.specs(node.inputs), {}, program_.specs(node.outputs), precision_};
    for (const ValueId id : node.inputs) request.input_layouts.push_back(program_.value(id).layout);
    return request;
  }

  [[nodiscard]] std::optional<GroupKind> kind_of(const LoweredNode& node) const {
    if (node.kernel == nullptr || !node.op || node.invariant || node.outputs.size() != 1) return {};
    std::optional<GroupKind> kind = device_.group_kind(request_of(node));
    if (!kind || !same_layout(kind->result, program_.value(node.outputs[0]).layout)) return {};
    // Gradients have the same bits with several ranks as accumulated on one device, where the backward pass has other
    // nodes.
    return kind->keeps_bits || node.pass == Pass::forward ? std::move(kind) : std::nullopt;
  }

  void add(std::size_t n, const GroupKind& kind) {
    Group& group = open_[kind.name];
    const bool is_full = group.held > kind.awaited || group.members.size() >= kind.most;
    if (is_full || (!group.members.empty() && n - group.members.front() > most_apart_)) close(group);
    const LoweredNode& node = program_.nodes[n];
    group.label = kind.label;
    group.members.push_back(n);
    group.results.insert(node.outputs[0]);
    for (const ValueId id : node.inputs) {
      if (group.read.insert(program_.root(id)).second) group.held += program_.bytes(id);
    }
  }

  /// Makes one node of the members where the last of them stood, in front of the views of their results.
  void close(Group& group) {
    const Group closed = std::exchange(group, {});
    if (closed.members.size() < 2) return;
    const std::size_t last = closed.members.back();
    std::vector<KernelRequest> requests;
    for (const std::size_t n : closed.members) requests.push_back(request_of(program_.nodes[n]));
    LoweredNode merged = merged_node(program_, closed.members, closed.label);
    merged.kernel = device_.prepare_group(requests);
    if (merged.kernel == nullptr) return;
    gone_.insert(closed.members.begin(), closed.members.end() - 1);
    gone_.insert(closed.views.begin(), closed.views.end());
    for (const std::size_t n : closed.views) behind_[last].push_back(program_.nodes[n]);
    program_.nodes[last] = std::move(merged);
  }

  Lowered& program_;
  Device& device_;
  Precision precision_;
  std::size_t most_apart_;
  std::map<std::string, Group> open_;  // by kind
  std::set<std::size_t> gone_;
  std::map<std::size_t, std::vector<LoweredNode>> behind_;  // a node, by its place
};

}  // namespace

void group_operators(Lowered& program, Device& device, Precision precision, std::size_t most_apart) {
  OperatorGroups(program, device, precision, most_apart).run();
}

}  // namespace concord
