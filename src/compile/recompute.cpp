// recompute(): which values are computed again, so that a program's arena fits a budget.
#include "concord/compile/recompute.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <set>

#include "concord/compile/plan.hpp"
#include "concord/compile/program_impl.hpp"
#include "concord/core/human_bytes.hpp"

namespace concord {
namespace {

/// This many FLOPs take about as long as moving a byte, on CPUs and GPUs.
constexpr double kFlopsAByte = 10;
/// A value this many times smaller than the value computed from it is kept, not recomputed.
constexpr std::size_t kSmall = 8;
/// Values of segments may take these parts of the limit together while one is computed again.
constexpr std::array kSegmentParts{1.0 / 16, 1.0 / 8, 1.0 / 4, 1.0 / 2, 1.0, 1.0};
constexpr int kBisections = 6;

std::size_t index(std::int32_t id) { return static_cast<std::size_t>(id); }

/// Of one node, in bytes moved or as many FLOPs as take as long.
double cost_of(const Lowered& program, const LoweredNode& node) {
  if (node.is_alias()) return 0;
  if (!node.op) return 2.0 * static_cast<double>(program.bytes(node.inputs[0]));
  const Cost cost = node.op->cost(program.specs(node.inputs), program.specs(node.outputs));
  return std::max(cost.bytes, cost.flops / kFlopsAByte);
}

/// Drops the names, which plans do not read, because many copies are made.
Lowered without_names(Lowered program) {
  for (LoweredValue& value : program.values) value.name.clear();
  for (LoweredNode& node : program.nodes) node.name.clear();
  return program;
}

/// A choice of values and the program it makes.
struct Choice {
  LastReads last_reads;
  RecomputingProgram made;
  std::vector<std::size_t> in_use;  // bytes by position
  std::size_t peak = 0;             // the most of them
};

/// The longest time that nothing reads a value that is there.
struct Wait {
  std::int32_t begin = 0, end = 0;  // positions of the reads, or of the node that makes it, around it
};

struct Candidate {
  ValueId value;
  double cost_per_relief;
};

class Search {
 public:
  explicit Search(const Lowered& program)
      : program_(without_names(program)),
        producer_(program.values.size(), -1),
        fixed_(program.values.size(), true),
        choice_(evaluated(LastReads(program.values.size(), kNeverAgain))) {
    for (std::size_t n = 0; n < program.nodes.size(); ++n) {
      const LoweredNode& node = program.nodes[n];
      costs_.push_back(cost_of(program, node));
      if (node.is_alias()) continue;
      for (const ValueId id : node.outputs) {
        producer_[index(id)] = static_cast<std::int32_t>(n);
        fixed_[index(id)] = node.invariant || is_all_reduce(node);
      }
    }
    for (std::size_t v = 0; v < program.values.size(); ++v) {
      if (program.values[v].keep) fixed_[index(program.root(static_cast<ValueId>(v)))] = true;
    }
    for (const LoweredAssignment& assignment : program.assignments) {
      fixed_[index(program.root(assignment.value))] = true;
    }
    note_reads();
  }

  /// Returns the best choice found for at most `limit` bytes in use. If none was found, it may use more. Valid until
  /// the next call.
  const Choice& choice_for(std::size_t limit) {
    choice_ = evaluated(LastReads(program_.values.size(), kNeverAgain));
    note_reads();
    limit_ = limit;
    wanted_segment_.assign(program_.values.size(), 0);
    for (const double part : kSegmentParts) {
      const auto segment = static_cast<std::size_t>(part * static_cast<double>(limit));
      for (const Candidate& candidate : candidates()) {
        if (choice_.peak <= limit_) break;
        try_again(candidate.value, segment);
      }
    }
    if (choice_.peak <= limit_) keep_what_fits();
    return choice_;
  }

  /// No choice needs less, because the inputs and results of a node exist at the same time.
  [[nodiscard]] std::size_t lower_bound() const {
    std::size_t most = 0;
    for (const LoweredNode& node : program_.nodes) {
      if (node.is_alias()) continue;
      std::set<ValueId> together;
      for (const ValueId id : node.inputs) together.insert(program_.root(id));
      for (std::size_t k = 0; k < node.outputs.size(); ++k) {
        bool may_overwrite = false;
        for (std::size_t i = 0; i < node.inputs.size(); ++i) may_overwrite |= Lowered::in_place(node, i, k);
        if (!may_overwrite) together.insert(node.outputs[k]);
      }
      std::size_t bytes = 0;
      for (const ValueId id : together) bytes += fixed_[index(id)] ? 0 : program_.bytes(id);
      most = std::max(most, bytes);
    }
    return most;
  }

  [[nodiscard]] Choice evaluated(LastReads last_reads) const {
    Choice choice{std::move(last_reads), {}, std::vector<std::size_t>(program_.nodes.size(), 0), 0};
    choice.made = with_recomputation(program_, choice.last_reads);
    const MemoryPlan plan = plan_memory(choice.made.program, false);
    const std::vector<std::size_t> bytes = bytes_in_use(plan.blocks, choice.made.positions.size());
    for (std::size_t n = 0; n < bytes.size(); ++n) {
      std::size_t& most = choice.in_use[index(choice.made.positions[n])];
      most = std::max(most, bytes[n]);
      choice.peak = std::max(choice.peak, bytes[n]);
    }
    return choice;
  }

 private:
  /// Reads of each value of the first program, and for each position how many before it are over the limit.
  void note_reads() {
    reads_.assign(program_.values.size(), {});
    const Lowered& made = choice_.made.program;
    for (std::size_t n = 0; n < made.nodes.size(); ++n) {
      if (made.nodes[n].is_alias()) continue;
      for (const ValueId id : made.nodes[n].inputs) {
        const std::size_t root = index(made.root(id));
        if (root < reads_.size()) reads_[root].push_back(choice_.made.positions[n]);
      }
    }
  }

  [[nodiscard]] std::vector<std::int32_t> positions_over_limit() const {
    std::vector<std::int32_t> before{0};
    for (const std::size_t bytes : choice_.in_use) before.push_back(before.back() + (bytes > limit_ ? 1 : 0));
    return before;
  }

  [[nodiscard]] Wait longest_wait(ValueId id) const {
    Wait longest{producer_[index(id)], producer_[index(id)]};
    std::int32_t from = longest.begin;
    for (const std::int32_t read : reads_[index(id)]) {
      if (read - from > longest.end - longest.begin) longest = {from, read};
      from = read;
    }
    return longest;
  }

  [[nodiscard]] bool is_candidate(ValueId id) const {
    return !fixed_[index(id)] && choice_.last_reads[index(id)] == kNeverAgain;
  }

  [[nodiscard]] std::vector<Candidate> candidates() const {
    const std::vector<std::int32_t> over = positions_over_limit();
    std::vector<Candidate> found;
    for (ValueId id = 0; id < static_cast<ValueId>(program_.values.size()); ++id) {
      if (!is_candidate(id)) continue;
      const Wait wait = longest_wait(id);
      const std::int32_t relieved = over[index(wait.end)] - over[index(std::min(wait.begin + 1, wait.end))];
      if (relieved == 0) continue;
      LastReads last_reads = choice_.last_reads;
      const double relief = static_cast<double>(program_.bytes(id)) * relieved;
      found.push_back({id, add_with_needs(last_reads, id, wait) / relief});
    }
    std::ranges::stable_sort(found, {}, &Candidate::cost_per_relief);
    return found;
  }

  /// Adds a value that is read again at the end of `wait`, and what it takes to compute it then. Returns the cost.
  double add_with_needs(LastReads& last_reads, ValueId id, const Wait& wait) const {
    last_reads[index(id)] = wait.begin;
    double cost = 0;
    std::vector<ValueId> left{id};
    while (!left.empty()) {
      const ValueId next = left.back();
      left.pop_back();
      const std::int32_t producer = producer_[index(next)];
      cost += costs_[index(producer)];
      for (const ValueId input : program_.nodes[index(producer)].inputs) {
        const ValueId need = program_.root(input);
        if (fixed_[index(need)] || last_reads[index(need)] != kNeverAgain) continue;
        const std::vector<std::int32_t>& reads = reads_[index(need)];
        if (reads.back() >= wait.end || program_.bytes(need) * kSmall <= program_.bytes(next)) continue;
        last_reads[index(need)] = reads.back();
        left.push_back(need);
      }
    }
    return cost;
  }

  [[nodiscard]] double excess(const Choice& choice) const {
    double bytes = 0;
    for (const std::size_t used : choice.in_use) bytes += used > limit_ ? static_cast<double>(used - limit_) : 0;
    return bytes;
  }

  /// Takes the value if that helps, and if no position that gets worse then uses more than `segment` bytes.
  void try_again(ValueId id, std::size_t segment) {
    if (!is_candidate(id) || wanted_segment_[index(id)] > segment) return;
    LastReads last_reads = choice_.last_reads;
    add_with_needs(last_reads, id, longest_wait(id));
    Choice tried = evaluated(std::move(last_reads));
    std::size_t wanted = 0;
    for (std::size_t n = 0; n < tried.in_use.size(); ++n) {
      if (tried.in_use[n] > choice_.in_use[n]) wanted = std::max(wanted, tried.in_use[n]);
    }
    const bool helps = excess(tried) < excess(choice_);
    wanted_segment_[index(id)] = helps ? std::min(wanted, limit_) : limit_;
    if (!helps || wanted > segment) return;
    choice_ = std::move(tried);
    note_reads();
  }

  /// Drops choices that later ones made unnecessary, the most expensive first.
  void keep_what_fits() {
    std::vector<ValueId> chosen;
    for (ValueId id = 0; id < static_cast<ValueId>(program_.values.size()); ++id) {
      if (choice_.last_reads[index(id)] != kNeverAgain) chosen.push_back(id);
    }
    std::ranges::stable_sort(chosen, std::ranges::greater{},
                             [&](ValueId id) { return costs_[index(producer_[index(id)])]; });
    for (const ValueId id : chosen) {
      LastReads last_reads = choice_.last_reads;
      last_reads[index(id)] = kNeverAgain;
      Choice tried = evaluated(std::move(last_reads));
      if (tried.peak <= limit_) choice_ = std::move(tried);
    }
  }

  const Lowered program_;
  std::vector<std::int32_t> producer_;  // by value; of aliases -1
  std::vector<bool> fixed_;             // by value: there all the time, or not to be computed again
  std::vector<double> costs_;           // by node
  std::size_t limit_ = 0;
  Choice choice_;
  std::vector<std::size_t> wanted_segment_;       // by value: what it took when it was tried last
  std::vector<std::vector<std::int32_t>> reads_;  // by value: positions
};

std::size_t arena_bytes(const Lowered& program, const DeviceInfo& device) {
  const Arena arena = place(program, plan_memory(program, false), device);
  return std::accumulate(arena.slabs.begin(), arena.slabs.end(), std::size_t{0});
}

}  // namespace

void recompute(Lowered& program, std::size_t budget, const DeviceInfo& device) {
  const std::size_t before = arena_bytes(program, device);
  if (before <= budget) return;
  Search search(program);
  struct Attempt {
    LastReads last_reads;
    std::size_t bytes;
    bool within;  // the limit
  };
  const auto attempt = [&](std::size_t limit) -> Attempt {
    const Choice& choice = search.choice_for(limit);
    return {choice.last_reads, arena_bytes(choice.made.program, device), choice.peak <= limit};
  };
  const auto done = [&](const Attempt& made) {
    if (made.bytes > budget) return false;
    program = with_recomputation(program, made.last_reads).program;
    return true;
  };

  // A limit is of bytes in use; the arena is larger where blocks cannot be placed without gaps.
  std::size_t limit = budget;
  for (int tries = 0; tries < 4 && limit >= search.lower_bound(); ++tries) {
    const Attempt made = attempt(limit);
    if (done(made)) return;
    if (!made.within) break;
    limit -= std::min(limit / 2, std::max(made.bytes - budget, limit / 64));
  }
  // This search does not depend on the budget, so the error can report the least possible memory.
  std::size_t least = before, low = std::min(search.lower_bound(), before), high = before;
  for (int step = 0; step < kBisections; ++step) {
    const std::size_t middle = low + (high - low) / 2;
    const Attempt made = attempt(middle);
    if (done(made)) return;
    least = std::min(least, made.bytes);
    (made.within ? high : low) = middle;
  }
  throw MemoryBudgetError(
      fmt::format(
          "the memory budget is {}; the program needs {}, and at least {} ({} bytes) with all possible recomputation",
          human_bytes(budget), human_bytes(before), human_bytes(least), least),
      least);
}

}  // namespace concord
