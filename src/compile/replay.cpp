// Replays: runs a program operator by operator, each on given inputs.
#include <cstring>
#include <deque>
#include <map>
#include <set>
#include <utility>

#include "concord/compile/program_impl.hpp"
#include "concord/core/check.hpp"

namespace concord {
namespace {

bool has_bits_of(const Tensor& a, const Tensor& b) {
  const auto x = a.bytes(), y = b.bytes();
  return x.size() == y.size() && std::memcmp(x.data(), y.data(), x.size()) == 0;
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

  /// The name of an operator's input. Aliases and reorders are resolved to the value that they show.
  [[nodiscard]] const std::string& name(ValueId id) const { return program_.lowered.value(source(id)).name; }

  /// Writes the given value to the device if there is one, and returns it. The copy may still be in progress.
  Tensor input(ValueId id) {
    prepare(program_.lowered.root(id));
    return known_.at(source(id)).value.reshaped(program_.lowered.value(id).spec.shape);
  }

  /// When it is there; null where it is.
  [[nodiscard]] const EventPtr& arrival(ValueId id) const { return known_.at(source(id)).event; }

  /// What the operator that was just launched makes of it.
  ProgramImpl::Arriving result(ValueId id) {
    ProgramImpl::Arriving made = program_.read_async(id);
    if (readers_.contains(id)) known_.insert_or_assign(id, made);
    return made;
  }

  /// Frees the values that no later operator reads.
  void forget_inputs_of(const LoweredNode& node) {
    for (const ValueId id : node.inputs) {
      if (--readers_.at(source(id)) == 0) known_.erase(source(id));
    }
  }

 private:
  [[nodiscard]] ValueId source(ValueId id) const { return program_.lowered.source(id); }

  void prepare(ValueId stored) {
    const ValueId reordered = program_.lowered.value(stored).reorder_of;
    if (reordered < 0) return make_given(stored);
    prepare(program_.lowered.root(reordered));
    if (reordered_.insert(stored).second) program_.enqueue(reorders_.at(stored));
  }

  void make_given(ValueId stored) {
    const Lowered& lowered = program_.lowered;
    const Tensor* const given = given_(lowered.value(stored).name);
    const auto found = known_.find(stored);
    if (found != known_.end() && (given == nullptr || is_known_as(found->second, *given))) return;
    if (given == nullptr) {
      known_.emplace(stored, program_.read_async(stored));
      return;
    }
    const TensorSpec& spec = lowered.value(stored).spec;
    CONCORD_CHECK(given->dtype() == spec.dtype && given->elements() == spec.shape.elements(), ShapeError,
                  "replay: value '{}' is {}, got {}", lowered.value(stored).name, spec.str(), given->spec().str());
    if (lowered.value(stored).kind != LoweredValue::Kind::variable) program_.overwrite(stored, *given);
    known_.insert_or_assign(stored, ProgramImpl::Arriving{*given, nullptr});
  }

  // Overwriting a value is faster than waiting for it to see whether it has to be overwritten.
  static bool is_known_as(const ProgramImpl::Arriving& known, const Tensor& given) {
    return known.value.bytes().data() == given.bytes().data() ||
           (known.event == nullptr && has_bits_of(known.value, given));
  }

  ProgramImpl& program_;
  const std::function<const Tensor*(const std::string& value)>& given_;
  std::map<ValueId, ProgramImpl::Arriving> known_;
  std::map<ValueId, std::size_t> reorders_;  // the launches, by what they make
  std::set<ValueId> reordered_;              // what they have made
  std::map<ValueId, std::size_t> readers_;   // operators that are still to come
};

/// Operators whose results are still being copied. An asynchronous device continues with the next operators meanwhile.
class Underway {
 public:
  Underway(Device& device, const std::function<void(const ReplayedNode&)>& seen) : device_(device), seen_(seen) {}
  Underway(const Underway&) = delete;
  Underway& operator=(const Underway&) = delete;
  /// After an exception, waits until the device no longer uses the memory of copies.
  ~Underway() {
    if (ended_) return;
    try {
      device_.finish();
    } catch (const Error&) {  // a lost device copies nothing more
    }
  }

  struct Node {
    ReplayedNode replayed;
    EventPtr last = nullptr;  // of what comes last of its inputs and results; null: they are there
  };
  Node& add(ReplayedNode node) { return nodes_.emplace_back(Node{std::move(node)}); }
  /// Hands on what is there, and what is too far behind.
  void go_on() {
    constexpr std::size_t kMost = 8;  // their values take memory
    while (!nodes_.empty() && (nodes_.size() > kMost || nodes_.front().last == nullptr)) take_first();
  }
  void finish() {
    while (!nodes_.empty()) take_first();
    device_.finish();  // operators without results were not waited for
    ended_ = true;
  }

 private:
  void take_first() {
    if (const EventPtr& last = nodes_.front().last) last->wait();
    seen_(nodes_.front().replayed);
    nodes_.pop_front();
  }

  Device& device_;
  const std::function<void(const ReplayedNode&)>& seen_;
  std::deque<Node> nodes_;
  bool ended_ = false;
};

}  // namespace

void Program::replay(const std::function<const Tensor*(const std::string& value)>& values,
                     const std::function<void(const ReplayedNode&)>& seen,
                     const std::function<bool(const TraceEntry& entry, const Operator* op)>& wanted) {
  CONCORD_CHECK(impl_->retains_all, ArgumentError, "replay needs a program compiled with Retain::all or Retain::fused");
  const Device::Use use(impl_->device());
  KnownValues known(*impl_, values);
  Underway underway(impl_->device(), seen);
  for (std::size_t i = 0; i < impl_->launches.size(); ++i) {
    const LoweredNode& node = impl_->lowered.nodes[impl_->launch_nodes[i]];
    if (!node.op) continue;
    ReplayedNode replayed{impl_->describe(i), node.op.get(), {}, {}, {}, {}};
    if (!wanted || wanted(replayed.entry, node.op.get())) {
      EventPtr last;
      for (const ValueId id : node.inputs) {
        replayed.input_names.push_back(known.name(id));
        replayed.inputs.push_back(known.input(id));
        if (const EventPtr& arrival = known.arrival(id)) last = arrival;
      }
      Underway::Node& launched = underway.add(std::move(replayed));
      launched.last = std::move(last);  // of a node without results
      impl_->enqueue(i);
      for (const ValueId id : node.outputs) {
        ProgramImpl::Arriving result = known.result(id);
        launched.replayed.outputs.push_back(impl_->lowered.value(id).name);
        launched.replayed.results.push_back(std::move(result.value));
        if (result.event) launched.last = std::move(result.event);  // none of a result without elements
      }
      impl_->device().flush();
      underway.go_on();
    }
    known.forget_inputs_of(node);
  }
  underway.finish();
}

void Program::commit() {
  CONCORD_CHECK(impl_->retains_all, ArgumentError, "commit needs a program compiled with Retain::all or Retain::fused");
  const Device::Use use(impl_->device());
  impl_->commit();
}

}  // namespace concord
