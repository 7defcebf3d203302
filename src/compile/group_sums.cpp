// Grouping of sums: many take less time than their launch.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "concord/compile/lowered.hpp"
#include "concord/ops/sum_group.hpp"

namespace concord {
namespace {

class SumGroups {
 public:
  SumGroups(Lowered& program, Device& device, Precision precision, std::size_t most_apart)
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
  /// Sums of one kind that wait for more.
  struct Group {
    std::vector<std::size_t> members, views;  // nodes; aliases of the members' results
    std::set<ValueId> read, results;
    std::size_t held = 0;  // bytes of what they read
  };

  [[nodiscard]] KernelRequest request_of(const LoweredNode& node) const {
    KernelRequest request{node.op.get(), program_.specs(node.inputs), {}, program_.specs(node.outputs), precision_};
    for (const ValueId id : node.inputs) request.input_layouts.push_back(program_.value(id).layout);
    return request;
  }

  [[nodiscard]] std::optional<SumKind> kind_of(const LoweredNode& node) const {
    if (node.kernel == nullptr || !node.op || node.invariant || node.outputs.size() != 1) return {};
    if (program_.value(node.outputs[0]).layout != nullptr) return {};
    return device_.sum_kind(request_of(node));
  }

  void add(std::size_t n, const SumKind& kind) {
    Group& group = open_[kind.name];
    if (group.held > kind.awaited || (!group.members.empty() && n - group.members.front() > most_apart_)) close(group);
    const LoweredNode& node = program_.nodes[n];
    group.members.push_back(n);
    group.results.insert(node.outputs[0]);
    for (const ValueId id : node.inputs) {
      if (group.read.insert(program_.root(id)).second) group.held += program_.bytes(id);
    }
  }

  /// Makes one node of the members where the last of them stood, in front of the views of their results.
  void close(Group& group) {
    if (group.members.size() > 1) {
      const std::size_t last = group.members.back();
      std::vector<KernelRequest> requests;
      std::vector<ops::SumGroup::Member> members;
      LoweredNode merged = program_.nodes[last];
      merged.inputs.clear();
      merged.outputs.clear();
      for (const std::size_t n : group.members) {
        const LoweredNode& node = program_.nodes[n];
        requests.push_back(request_of(node));
        members.push_back({node.op, node.inputs.size()});
        merged.inputs.insert(merged.inputs.end(), node.inputs.begin(), node.inputs.end());
        merged.outputs.push_back(node.outputs[0]);
      }
      merged.op = std::make_shared<const ops::SumGroup>(std::move(members));
      merged.kernel = device_.prepare_sums(requests);
      merged.name = fmt::format("{} … {}", program_.nodes[group.members.front()].name, merged.name);
      gone_.insert(group.members.begin(), group.members.end() - 1);
      gone_.insert(group.views.begin(), group.views.end());
      for (const std::size_t n : group.views) behind_[last].push_back(program_.nodes[n]);
      program_.nodes[last] = std::move(merged);
    }
    group = {};
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

void group_sums(Lowered& program, Device& device, Precision precision, std::size_t most_apart) {
  SumGroups(program, device, precision, most_apart).run();
}

}  // namespace concord
