// Grouping of sums, most of which take less time than their launch.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "concord/compile/lowered.hpp"
#include "concord/ops/sum_group.hpp"

namespace concord {
namespace {

// Bytes that the members read and that wait for the last of them.
constexpr std::size_t kMostAwaited = std::size_t{1} << 20;

class SumGroups {
 public:
  SumGroups(Lowered& program, Device& device, Precision precision)
      : program_(program), device_(device), precision_(precision) {}

  void run() {
    for (std::size_t n = 0; n < program_.nodes.size(); ++n) {
      const LoweredNode& node = program_.nodes[n];
      const auto is_result = [&](ValueId id) { return results_.contains(program_.root(id)); };
      if (std::ranges::any_of(node.inputs, is_result)) {
        if (node.is_alias()) {
          views_.push_back(n);
          continue;
        }
        close();
      }
      if (!is_member(node)) continue;
      if (held_ > kMostAwaited) close();
      members_.push_back(n);
      results_.insert(node.outputs[0]);
      held_ += program_.bytes(node.inputs[0]);
    }
    close();
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
  [[nodiscard]] KernelRequest request_of(const LoweredNode& node) const {
    KernelRequest request{node.op.get(), program_.specs(node.inputs), {}, program_.specs(node.outputs), precision_};
    request.input_layouts.resize(node.inputs.size());
    return request;
  }

  [[nodiscard]] bool is_member(const LoweredNode& node) const {
    const auto is_row_major = [&](ValueId id) { return program_.value(id).layout == nullptr; };
    return node.kernel != nullptr && node.op && !node.invariant && node.inputs.size() == 1 &&
           node.outputs.size() == 1 && is_row_major(node.inputs[0]) && is_row_major(node.outputs[0]) &&
           device_.groups_sum(request_of(node));
  }

  /// Makes one node of the members where the last of them stood, in front of the views of their results.
  void close() {
    if (members_.size() > 1) {
      std::vector<KernelRequest> requests;
      std::vector<std::shared_ptr<const Operator>> operators;
      LoweredNode merged = program_.nodes[members_.back()];
      merged.inputs.clear();
      merged.outputs.clear();
      for (const std::size_t n : members_) {
        const LoweredNode& node = program_.nodes[n];
        requests.push_back(request_of(node));
        operators.push_back(node.op);
        merged.inputs.push_back(node.inputs[0]);
        merged.outputs.push_back(node.outputs[0]);
      }
      merged.op = std::make_shared<const ops::SumGroup>(std::move(operators));
      merged.kernel = device_.prepare_sums(requests);
      merged.name = fmt::format("{} … {}", program_.nodes[members_.front()].name, merged.name);
      gone_.insert(members_.begin(), members_.end() - 1);
      gone_.insert(views_.begin(), views_.end());
      for (const std::size_t n : views_) behind_[members_.back()].push_back(program_.nodes[n]);
      program_.nodes[members_.back()] = std::move(merged);
    }
    members_.clear();
    views_.clear();
    results_.clear();
    held_ = 0;
  }

  Lowered& program_;
  Device& device_;
  Precision precision_;
  std::vector<std::size_t> members_, views_;  // of the open group; aliases of their results
  std::set<ValueId> results_;                 // of the members
  std::size_t held_ = 0;                      // bytes of what they read
  std::set<std::size_t> gone_;
  std::map<std::size_t, std::vector<LoweredNode>> behind_;  // a node, by its place
};

}  // namespace

void group_sums(Lowered& program, Device& device, Precision precision) { SumGroups(program, device, precision).run(); }

}  // namespace concord
