// Grouping of equal updates: on a GPU the launch of a small tensor's update costs more than the update.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <ranges>
#include <set>
#include <utility>

#include "concord/compile/lowered.hpp"
#include "concord/ops/pointwise_group.hpp"

namespace concord {
namespace {

using Reach = ops::PointwiseGroup::Reach;

// Values that wait for the group's other members, while operators that are not updates go on, take memory.
constexpr std::size_t kMostHeld = std::size_t{1} << 20;
// A value that is not assigned itself waits for the updates that read it only when it is small.
constexpr std::size_t kMostWaiting = std::size_t{1} << 16;
constexpr std::int64_t kMostElements = std::int64_t{1} << 31;

struct Group {
  std::string key;
  std::vector<std::size_t> nodes;  // positions
  std::size_t held = 0;            // bytes of computed values that the members read
};

class Grouping {
 public:
  Grouping(Lowered& program, std::size_t most_apart, std::vector<std::size_t> awaited)
      : program_(program),
        most_apart_(most_apart),
        awaited_(std::move(awaited)),
        is_update_(updates_of(program)),
        group_of_(program.values.size(), nullptr) {
    for (const LoweredAssignment& assignment : program.assignments) assigned_.insert(program.root(assignment.value));
  }

  void run() {
    for (std::size_t n = 0; n < program_.nodes.size(); ++n) {
      const LoweredNode& node = program_.nodes[n];
      if (n > 0 && awaited_[n] != awaited_[n - 1]) open_.clear();
      for (const ValueId id : node.inputs) close(group_of_[index(program_.root(id))]);
      if (const std::optional<std::string> key = key_of(node)) {
        add(n, *key);
      } else if (!node.op->is_alias()) {
        for (const auto& group : groups_) {
          if (group->held > kMostHeld) close(group.get());
        }
      }
      for (const ValueId id : node.outputs) assigned_bytes_ += assigned_.contains(id) ? program_.bytes(id) : 0;
      if (assigned_bytes_ > most_apart_) {
        open_.clear();
        assigned_bytes_ = 0;
      }
    }
    merge();
  }

 private:
  static std::size_t index(ValueId id) { return static_cast<std::size_t>(id); }

  // Values that are assigned to variables, and small ones that only their formulas read: nothing waits for them before.
  static std::vector<bool> updates_of(const Lowered& program) {
    std::vector<bool> is_update(program.values.size(), false), is_read(program.values.size(), false);
    std::vector<bool> is_assigned(program.values.size(), false), is_awaited(program.values.size(), false);
    for (const LoweredAssignment& assignment : program.assignments) is_assigned[index(assignment.value)] = true;
    for (const LoweredNode& node : std::views::reverse(program.nodes)) {
      bool is_formula = dynamic_cast<const ops::Pointwise*>(node.op.get()) != nullptr;
      for (const ValueId id : node.outputs) {
        const std::size_t v = index(id);
        const bool may_wait = is_read[v] && !is_awaited[v] && program.bytes(id) <= kMostWaiting;
        is_formula = is_formula && (is_assigned[v] || may_wait);
      }
      for (const ValueId id : node.outputs) is_update[index(id)] = is_formula;
      for (const ValueId id : node.inputs) {
        const std::size_t v = index(program.root(id));
        is_read[v] = true;
        is_awaited[v] = is_awaited[v] || !is_formula;
      }
    }
    return is_update;
  }

  // Nodes with equal keys can be in one group. Nothing if the node is not an update of a tensor.
  [[nodiscard]] std::optional<std::string> key_of(const LoweredNode& node) const {
    const auto* op = dynamic_cast<const ops::Pointwise*>(node.op.get());
    if (op == nullptr || op->expression().uses_coordinates()) return std::nullopt;
    const Shape& shape = program_.value(node.outputs[0]).spec.shape;
    if (shape.elements() == 0 || shape.elements() >= kMostElements) return std::nullopt;
    for (const ValueId id : node.outputs) {
      if (!is_update_[index(id)] || program_.value(id).keep) return std::nullopt;
    }
    std::string key = fmt::format("{} {}", op->name(), op->expression().str());
    for (const DType type : op->types()) key += fmt::format(" {}", name_of(type));
    bool any_whole = false;
    for (const ValueId id : node.inputs) {
      const TensorSpec& spec = program_.value(id).spec;
      const bool is_whole = spec.shape == shape;
      if (!is_whole && spec.shape.elements() != 1) return std::nullopt;
      any_whole = any_whole || is_whole;
      key += fmt::format(" {}{}", is_whole ? "whole " : "", name_of(spec.dtype));
    }
    return any_whole ? std::optional(key) : std::nullopt;
  }

  void add(std::size_t n, const std::string& key) {
    auto found = std::ranges::find_if(open_, [&](const Group* group) { return group->key == key; });
    if (found == open_.end()) {
      groups_.push_back(std::make_unique<Group>(Group{key, {}, 0}));
      open_.push_back(groups_.back().get());
      found = std::prev(open_.end());
    }
    const LoweredNode& node = program_.nodes[n];
    (*found)->nodes.push_back(n);
    for (const ValueId id : node.inputs) {
      if (program_.value(program_.root(id)).kind == LoweredValue::Kind::computed) (*found)->held += program_.bytes(id);
    }
    for (const ValueId id : node.outputs) group_of_[index(id)] = *found;
  }

  // No later node joins the group, so readers of its results come after its last member.
  void close(Group* group) { std::erase(open_, group); }

  // Each group runs where its last member stood, because all inputs of the others exist there.
  void merge() {
    std::vector<bool> gone(program_.nodes.size(), false);
    for (const auto& group : groups_) {
      if (group->nodes.size() < 2) continue;
      LoweredNode merged = merged_of(*group);
      for (const std::size_t n : group->nodes) gone[n] = true;
      gone[group->nodes.back()] = false;
      program_.nodes[group->nodes.back()] = std::move(merged);
    }
    std::size_t i = 0;
    std::erase_if(program_.nodes, [&](const LoweredNode&) { return gone[i++]; });
  }

  [[nodiscard]] LoweredNode merged_of(const Group& group) const {
    const LoweredNode& first = program_.nodes[group.nodes.front()];
    const auto& op = dynamic_cast<const ops::Pointwise&>(*first.op);
    const Shape& shape = program_.value(first.outputs[0]).spec.shape;
    std::vector<Reach> reach;
    LoweredNode merged;
    for (std::size_t i = 0; i < first.inputs.size(); ++i) {
      if (program_.value(first.inputs[i]).spec.shape == shape) {
        reach.push_back(Reach::whole);
        continue;
      }
      const bool is_shared = std::ranges::all_of(
          group.nodes, [&](std::size_t n) { return program_.nodes[n].inputs[i] == first.inputs[i]; });
      reach.push_back(is_shared ? Reach::shared : Reach::single);
      if (is_shared) merged.inputs.push_back(first.inputs[i]);
    }
    for (const std::size_t n : group.nodes) {
      const LoweredNode& node = program_.nodes[n];
      for (std::size_t i = 0; i < node.inputs.size(); ++i) {
        if (reach[i] != Reach::shared) merged.inputs.push_back(node.inputs[i]);
      }
      merged.outputs.insert(merged.outputs.end(), node.outputs.begin(), node.outputs.end());
    }
    merged.op = std::make_shared<const ops::PointwiseGroup>(op.expression(), op.types(), op.name(), std::move(reach),
                                                            group.nodes.size());
    merged.pass = first.pass;
    merged.name = fmt::format("{} … {}", first.name, program_.nodes[group.nodes.back()].name);
    return merged;
  }

  Lowered& program_;
  std::size_t most_apart_;
  std::vector<std::size_t> awaited_;  // sets of late variables, by node
  std::set<ValueId> assigned_;
  std::size_t assigned_bytes_ = 0;  // since all groups were closed for their sake
  std::vector<bool> is_update_;
  std::vector<Group*> group_of_;  // of an update's results
  std::vector<std::unique_ptr<Group>> groups_;
  std::vector<Group*> open_;
};

}  // namespace

void group_updates(Lowered& program, std::size_t most_apart, const LateVariables& late) {
  std::vector<std::size_t> awaited = put_late_last(program, late);
  Grouping(program, most_apart, std::move(awaited)).run();
}

}  // namespace concord
