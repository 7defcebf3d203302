// Session: runs a network on a device, for programs that deploy it. One compiled program for each set of input shapes;
// several sessions can share one set of weights.
#pragma once

#include <concepts>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "concord/compile/variables.hpp"
#include "concord/core/export.hpp"
#include "concord/core/held.hpp"
#include "concord/device/device.hpp"
#include "concord/io/checkpoint.hpp"
#include "concord/nn/module.hpp"

namespace concord {
struct SessionState;
}

namespace CONCORD_PUBLIC concord {

/// Tensors by the names of a network's inputs or outputs.
using NamedTensors = std::map<std::string, Tensor>;

struct SessionOptions {
  Precision precision = Precision::fp32;  // of matrix multiplications
  std::uint64_t seed = 0;                 // of weights that no file gives
  /// Programs kept at a time, one for each set of input shapes. The one that was not used for longest goes first; it
  /// also goes when a new program finds no memory on the device.
  std::size_t programs = 16;
};

/// Runs a network in evaluation mode. The first run with new shapes of inputs compiles a program; later runs with these
/// shapes only copy the inputs, run it and copy the outputs.
///
/// One thread at a time may use a Session. For several threads, `share` makes a session for each: they have the same
/// weights in the memory of the device, and take turns on it. Sessions that do not share weights need different
/// devices, or one thread.
class Session {
 public:
  template <std::derived_from<nn::Module> Network>
  Session(Network network, DevicePtr device, const SessionOptions& options = {})
      : Session(std::shared_ptr<nn::Module>(std::make_shared<Network>(std::move(network))), std::move(device),
                options) {}
  Session(std::shared_ptr<nn::Module> network, DevicePtr device, const SessionOptions& options = {});
  /// Uses weights that are on a device already, such as those of a Trainer (Trainer::variables). Later changes of these
  /// weights count for the following runs.
  Session(std::shared_ptr<nn::Module> network, VariablesPtr weights, const SessionOptions& options = {});
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;
  ~Session();

  /// Returns another session of the same network with the same weights, for another thread. Each session keeps its own
  /// programs.
  [[nodiscard]] Session share() const;

  /// Takes the weights of a file of any format that weights::load reads, for all sessions that share them. Until the
  /// first run the names of the weights are not known; the file is then read at the first run. Runs with other inputs
  /// of the network may use further weights, so tensors of the file that no run has used are an error only from the
  /// first run with all inputs on (nn::Module::input_names; a single tensor where the network names none); until then
  /// a warning lists them. A weight that a run uses and the file lacks is an error at that run. Throws IoError, and
  /// FormatError for a damaged file or for that of another network.
  void load(const std::filesystem::path& path, const io::LoadOptions& options = {});

  /// Computes the outputs for these inputs. Inputs have the names of nn::Module::input_names; of a network that accepts
  /// any names, they are passed as they are. Outputs without a name are called "0", "1", …. Throws ArgumentError for
  /// an unknown or missing input, ShapeError with the first layer that does not accept the shapes, and OutOfMemory if
  /// the device has too little memory for the program alone.
  [[nodiscard]] NamedTensors run(const NamedTensors& inputs);
  /// For a network of one input and one output. Throws ArgumentError if there are several outputs.
  [[nodiscard]] Tensor run(const Tensor& input);

  /// Compiles for inputs of these types and shapes without running; also loads the weights.
  void prepare(const std::map<std::string, TensorSpec>& inputs);
  void prepare(const TensorSpec& input);

  /// The number of programs that are kept now.
  [[nodiscard]] std::size_t programs() const;
  [[nodiscard]] Device& device() const;
  [[nodiscard]] const VariablesPtr& variables() const;

 private:
  explicit Session(std::unique_ptr<SessionState> state);
  Held<SessionState> state_;
};

}  // namespace concord
