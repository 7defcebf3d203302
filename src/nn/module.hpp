// Module: the building block of networks: layers, containers and a user's own blocks. Tracing a module with a value of
// a graph adds its operators and parameters to the graph under the path of the module. Names equal those of the same
// PyTorch module.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "concord/core/exclusive.hpp"
#include "concord/core/export.hpp"
#include "concord/graph/graph.hpp"
#include "concord/graph/values.hpp"
#include "concord/nn/extent.hpp"

namespace CONCORD_PUBLIC concord {
namespace nn {

using concord::Scope;

/// The base of every layer and network. A derived class implements `forward`, which calls its children as functions,
/// `child(x)`; one with several inputs or outputs implements `forward_values` and is called as `net({{"image", x},
/// {"table", t}})`. A module is a handle: a copy shares its parameters. To repeat a layer with separate weights,
/// construct it again.
///
/// Names of children come from `children()`. Other children get the numbers "0", "1", … in the order of their first
/// call in a graph. A network whose `forward` calls other children in training than in evaluation must name them. The
/// outermost module has no name: its parameters are "weight", those of its child "0" are "0.weight". Tracing the same
/// or an equal network again gives the same names. Tracing one module from two threads at once throws ArgumentError.
///
/// A name is any non-empty UTF-8 text. A dot is not special: the parameter "c" of a child "a.b", and the parameter "c"
/// of the child "b" of a child "a", have the same name, which is a ShapeError (Graph::variable). A part of a network
/// that is traced without its parent gets names relative to itself; in the same Variables it shares the weights with
/// its parent.
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

  /// Computes the output of one value. Without an own implementation it throws ArgumentError.
  [[nodiscard]] virtual Value forward(Value x);
  /// Computes the outputs of several inputs. The default is `forward` of a single input.
  [[nodiscard]] virtual Values forward_values(const Values& inputs);
  /// Returns the names of the inputs in their order, or nothing if any names are accepted. Inputs by position get these
  /// names before `forward_values` sees them. A name may be left out by the caller if `forward_values` allows it.
  [[nodiscard]] virtual std::vector<std::string> input_names() const { return {}; }
  /// Returns the children by name. Children that are not in the list are numbered; the numbers avoid the names in the
  /// list. A call of a child throws ArgumentError if a name is empty, not UTF-8 or used twice.
  [[nodiscard]] virtual Children children() { return {}; }

  /// Excludes all parameters of this module and of the modules inside it from training, in graphs traced from now on;
  /// as requires_grad_(False) in PyTorch. `optim::minimize` computes no gradient and keeps no state for them. The last
  /// call for a module, or for a module around it, decides: `net.freeze(); head.unfreeze();` trains the head. A
  /// parameter shared by two modules is frozen if one of them is. Training still updates running statistics. A trainer
  /// compiles its programs again.
  void freeze() { set_frozen(true); }
  void unfreeze() { set_frozen(false); }
  /// Returns whether none of the modules traced in this graph was frozen or unfrozen since.
  [[nodiscard]] static bool is_up_to_date(Graph& graph);

  /// Calls `forward` under this module's name. A ShapeError begins with the path of the layer. Throws ArgumentError if
  /// `x`, or the result of `forward`, is an empty value, or if there are several outputs.
  Value operator()(Value x);
  /// Calls `forward_values` under this module's name. Throws ArgumentError for no input, for an empty value, for values
  /// of different graphs, and for names that are not in `input_names`.
  Values operator()(const Values& inputs);

 private:
  struct Identity;

 protected:
  /// During its lifetime, the module is being traced: what is added to `graph` gets its name, and the modules that it
  /// calls are its children. `operator()` makes one. Every other function of a layer that takes or returns more than
  /// one value must make one too, such as that of an LSTM with states.
  class Tracing {
   public:
    Tracing(Graph& graph, Module& module);
    Tracing(const Tracing&) = delete;
    Tracing& operator=(const Tracing&) = delete;
    ~Tracing();

   private:
    Graph& graph_;
    std::shared_ptr<Identity> identity_;
    Exclusive::Use use_;
    std::optional<Scope> scope_;
  };

  /// Returns the value of a parameter in this graph; call it in `forward`. The name is `name` under the module's path.
  /// If another module that shares the parameter has named it in this graph, that name stays.
  static Value parameter(Graph& graph, const VariablePtr& variable, std::string_view name);
  /// The part of a parameter that this rank has (nn::DividedLayers). Throws ArgumentError if the graph has the
  /// parameter in other parts, or whole.
  static Value parameter_part(Graph& graph, const VariablePtr& variable, std::string_view name, const Shard& shard);
  /// Makes a parameter that training changes, or with trainable = false a running statistic.
  static VariablePtr make_parameter(Shape shape, Initializer init, bool trainable = true);

 private:
  /// Shared by the copies of a module, so that the parent recognises a child.
  struct Identity {
    Exclusive tracing = {};
    bool frozen = false;
    std::uint64_t decided = 0;  // the number of the call that set `frozen`, among all calls of freeze and unfreeze
  };
  struct Trace;  // what a graph knows of its modules
  void set_frozen(bool frozen);
  [[nodiscard]] static bool frozen_now(Graph& graph);
  /// "the module encoder.0 (ReLU)" during tracing, for messages.
  [[nodiscard]] std::string description(const Graph& graph) const;
  std::string name_of(Module& child, Trace& trace);

  std::shared_ptr<Identity> identity_;
};

/// Throws ArgumentError if `name` is not a valid name of a child. `parent` describes the parent in the message.
void check_child_name(std::string_view parent, std::string_view name);

}  // namespace nn
}  // namespace concord
