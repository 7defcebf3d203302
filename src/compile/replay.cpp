// Replays: a program operator by operator, each on inputs that are given.
#include <cstring>
#include <map>
#include <set>

#include "concord/compile/program_impl.hpp"
#include "concord/core/check.hpp"

namespace concord {
namespace {

bool has_bits_of(const Tensor& a, const Tensor& b) {
  const auto x = a.bytes(), y = b.bytes();
  return x.size() == y.size() && (x.data() == y.data() || std::memcmp(x.data(), y.data(), x.size()) == 0);
}

/// What lies in the memory of a replayed program, so that each value is moved once, however many operators read it. A
/// reorder runs when the first operator that is not left out reads what it makes.
class KnownValues {
 public:
  KnownValues(ProgramImpl& program, const std::function<const Tensor*(const std::string& value)>& given)
      : program_(program), given_(given) {
    for (std::size_t i = 0; i < program_.launches.size(); ++i) {
      const LoweredNode& node = program_.lowered.nodes[program_.launch_nodes[i]];
      if (!node.op) reorders_.emplace(node.outputs[0], i);
    }
    for (const std::size_t n : program_.launch_nodes) {
      const LoweredNode& node = program_.lowered.nodes[n];
      if (!node.op) continue;
      for (const ValueId id : node.inputs) ++readers_[source(id)];
    }
  }

  /// The name of what an operator reads: of the value that an alias stands for, and before it was reordered.
  [[nodiscard]] const std::string& name(ValueId id) const { return program_.lowered.value(source(id)).name; }

  /// Sees to it that the value is the given one, where one is given, and gives it.
  Tensor input(ValueId id) {
    prepare(program_.lowered.root(id));
    return known_.at(source(id)).reshaped(program_.lowered.value(id).spec.shape);
  }

  /// What the operator that was just launched made of it.
  Tensor result(ValueId id) {
    Tensor value = program_.read(id);
    if (readers_.contains(id)) known_.insert_or_assign(id, value);
    return value;
  }

  /// Drops what no later operator reads.
  void forget_inputs_of(const LoweredNode& node) {
    for (const ValueId id : node.inputs) {
      if (--readers_.at(source(id)) == 0) known_.erase(source(id));
    }
  }

 private:
  [[nodiscard]] ValueId source(ValueId id) const {
    const ValueId stored = program_.lowered.root(id);
    const auto made = reorders_.find(stored);
    return made == reorders_.end() ? stored : source(reordered_by(made->second));
  }

  [[nodiscard]] ValueId reordered_by(std::size_t launch) const {
    return program_.lowered.nodes[program_.launch_nodes[launch]].inputs[0];
  }

  void prepare(ValueId stored) {
    const auto made = reorders_.find(stored);
    if (made == reorders_.end()) return make_given(stored);
    prepare(program_.lowered.root(reordered_by(made->second)));
    if (reordered_.insert(stored).second) program_.launches[made->second]->enqueue();
  }

  void make_given(ValueId stored) {
    const Lowered& lowered = program_.lowered;
    const Tensor* const given = given_(lowered.value(stored).name);
    const auto found = known_.find(stored);
    if (found != known_.end() && (given == nullptr || has_bits_of(found->second, *given))) return;
    if (given != nullptr && lowered.value(stored).kind != LoweredValue::Kind::variable) {
      program_.overwrite(stored, *given);
    }
    known_.insert_or_assign(stored, given != nullptr ? *given : program_.read(stored));
  }

  ProgramImpl& program_;
  const std::function<const Tensor*(const std::string& value)>& given_;
  std::map<ValueId, Tensor> known_;
  std::map<ValueId, std::size_t> reorders_;  // the launches, by what they make
  std::set<ValueId> reordered_;              // what they have made
  std::map<ValueId, std::size_t> readers_;   // operators that are still to come
};

}  // namespace

void Program::replay(const std::function<const Tensor*(const std::string& value)>& values,
                     const std::function<void(const ReplayedNode&)>& seen,
                     const std::function<bool(const TraceEntry& entry, const Operator* op)>& wanted) {
  CONCORD_CHECK(impl_->keep_all, ArgumentError, "replay needs a program compiled with keep_all");
  KnownValues known(*impl_, values);
  for (std::size_t i = 0; i < impl_->launches.size(); ++i) {
    const LoweredNode& node = impl_->lowered.nodes[impl_->launch_nodes[i]];
    if (!node.op) continue;
    ReplayedNode replayed{impl_->describe(i), node.op.get(), {}, {}, {}, {}};
    if (!wanted || wanted(replayed.entry, node.op.get())) {
      for (const ValueId id : node.inputs) {
        replayed.input_names.push_back(known.name(id));
        replayed.inputs.push_back(known.input(id));
      }
      impl_->launches[i]->enqueue();
      for (const ValueId id : node.outputs) {
        replayed.outputs.push_back(impl_->lowered.value(id).name);
        replayed.results.push_back(known.result(id));
      }
      seen(replayed);
    }
    known.forget_inputs_of(node);
  }
}

void Program::commit() {
  CONCORD_CHECK(impl_->keep_all, ArgumentError, "commit needs a program compiled with keep_all");
  impl_->commit();
}

}  // namespace concord
