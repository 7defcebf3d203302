// Module: what a network is made of — layers, containers, a user's own blocks. Tracing one on a graph's value adds its
// operators and parameters to the graph under the module's path, so that names equal those of the same PyTorch module.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "concord/core/exclusive.hpp"
#include "concord/core/export.hpp"
#include "concord/graph/graph.hpp"
#include "concord/nn/extent.hpp"

namespace CONCORD_PUBLIC concord {
namespace nn {

using concord::Scope;

/// Base of every layer and network. A module is a handle: a copy shares its parameters (to repeat a layer with weights
/// of its own, construct it anew). Owes `forward`, which calls its children as functions, `child(x)`.
///
/// Names. A child is named by `children()`, else by the order in which the module's children are first called: "0",
/// "1", … A network whose forward calls other children in training than in evaluation must name them. The outermost
/// module has no name: its parameters are "weight", those of its child "0" are "0.weight". Tracing the same network
/// again gives the same names, as does tracing an equal one. Traced from two threads at once it throws
/// ArgumentError.
///
/// A name is any text of UTF-8 but the empty one: no name has a meaning beside telling children apart. A dot is taken
/// as it is, so that a child "a.b" with a parameter "c" is refused beside a child "a" whose child "b" has one
/// (ShapeError of Graph::variable). Parts that are called without their parent, in a program of its own, are named from
/// there on: in the same Variables they have the weights that they have in their parent.
class Module {
 public:
  struct Child {
    std::string name;
    Module* module;
  };
  using Children = std::vector<Child>;

  Module() : identity_(std::make_shared<Identity>()) {}
  Module(const Module&) = default;
  Module& operator=(const Module&) = default;
  virtual ~Module() = default;

  [[nodiscard]] virtual Value forward(Value x) = 0;
  /// The children by name; what it leaves out is numbered, with numbers that are no child's name. The call of a child
  /// throws ArgumentError when one of the names is empty, not UTF-8, or that of two children.
  [[nodiscard]] virtual Children children() { return {}; }

  /// In graphs traced from now on, training leaves all parameters called from this module or from inside of it as they
  /// are, as after PyTorch's requires_grad_(False): `optim::minimize` computes no gradient and keeps no state of them.
  /// Of several calls for a module and those around it the last one counts: `net.freeze(); head.unfreeze();` trains the
  /// head. A parameter that two modules share is frozen when either is. Running statistics go on moving in training.
  /// A trainer makes its programs anew.
  void freeze() { set_frozen(true); }
  void unfreeze() { set_frozen(false); }
  /// Counts the calls of the two for all modules: what was traced at another count may be out of date.
  [[nodiscard]] static std::uint64_t freezes();

  /// `forward` under this module's name. What a ShapeError says begins with the path of the layer it happened in.
  /// Throws ArgumentError when `x` or what `forward` returns is no value.
  Value operator()(Value x);

 private:
  struct Identity;

 protected:
  /// During its lifetime the module is being traced: what is added to `graph` stands under its name, and children that
  /// are called are its own. `operator()` makes one; so does every other function of a layer that is called with more
  /// than one value or gives more than one, such as an LSTM's with its states.
  class Tracing {
   public:
    Tracing(Graph& graph, Module& module);
    Tracing(const Tracing&) = delete;
    Tracing& operator=(const Tracing&) = delete;
    ~Tracing();

   private:
    std::shared_ptr<Identity> identity_;
    Exclusive::Use use_;
    std::optional<Scope> scope_;
  };

  /// The value of a parameter in this graph; to be called from `forward`. It is named `name` under this module's path,
  /// unless another module that shares it has named it in this graph before.
  static Value parameter(Graph& graph, const VariablePtr& variable, std::string_view name);
  /// A parameter that training changes, or (trainable = false) a running statistic.
  static VariablePtr make_parameter(Shape shape, Initializer init, bool trainable = true);

 private:
  /// Shared by the copies of a module: how its parent knows it again.
  struct Identity {
    std::map<std::shared_ptr<Identity>, std::string> numbered_children;
    Exclusive tracing = {};
    bool frozen = false;
    std::uint64_t decided = 0;  // the count of `freezes` at the call that said so
  };
  void set_frozen(bool frozen);
  [[nodiscard]] static bool frozen_now(const Graph& graph);
  /// "the module encoder.0 (ReLU)" while it is traced, for messages.
  [[nodiscard]] std::string description(const Graph& graph) const;
  std::string name_of(Module& child);

  std::shared_ptr<Identity> identity_;
};

/// Throws ArgumentError unless a child of `parent` (in words, for the message) may have this name.
void check_child_name(std::string_view parent, std::string_view name);

}  // namespace nn
}  // namespace concord
