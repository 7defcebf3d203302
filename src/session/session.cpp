// Session: the cache of programs, and the weights that several sessions share.
#include "concord/session/session.hpp"

#include <algorithm>
#include <list>
#include <mutex>
#include <optional>
#include <vector>

#include "concord/compile/program.hpp"
#include "concord/core/check.hpp"
#include "concord/core/exclusive.hpp"
#include "concord/core/host_memory.hpp"
#include "concord/core/log.hpp"
#include "concord/core/platform.hpp"
#include "concord/weights/file.hpp"
#include "concord/weights/load.hpp"

namespace concord {

/// What a Session is made of.
struct SessionState {
  using Specs = std::map<std::string, TensorSpec>;

  struct WeightsFile {
    std::filesystem::path path;
    io::LoadOptions options;
  };

  /// What sessions share: the network, its weights, and whose turn it is on the device.
  struct Shared {
    std::shared_ptr<nn::Module> network;
    VariablesPtr variables;
    std::mutex turn;
    Specs weights = {};                    // of the programs so far
    std::optional<WeightsFile> file = {};  // the last one that was loaded
    Specs unwritten = {};                  // weights that do not have the values of the file yet
    bool has_all_weights = false;          // a program had all inputs of the network
    bool may_have_more = false;            // the file was read before that: it may have tensors that no run needs

    /// Whether these are all inputs of the network, as far as it names them.
    [[nodiscard]] bool are_all_inputs(const Specs& inputs, bool is_placed) const;
    /// Writes those of `names` from a file that has all weights.
    void write(const WeightsFile& from, const Specs& names);
  };

  struct Compiled {
    Specs inputs;
    bool is_placed;                                            // one input by position
    std::vector<std::pair<std::string, std::string>> outputs;  // name of the output, of the value in the program
    Program program;
  };

  std::shared_ptr<Shared> shared;
  SessionOptions options;
  std::list<Compiled> programs = {};  // the last used first
  mutable Exclusive use = {};

  /// The program for inputs of these specs; `inputs` are specs or tensors by name.
  template <class Inputs>
  Compiled& get(const Inputs& inputs, bool is_placed);
  [[nodiscard]] Compiled make(const Specs& inputs, bool is_placed) const;
  /// As `make`; where the device is full, programs are dropped until there is memory.
  [[nodiscard]] Compiled make_room_for(const Specs& inputs, bool is_placed);
};

bool SessionState::Shared::are_all_inputs(const Specs& inputs, bool is_placed) const {
  const std::vector<std::string> names = network->input_names();
  return names.empty() ? is_placed : inputs.size() == names.size();
}

void SessionState::Shared::write(const WeightsFile& from, const Specs& names) {
  io::LoadOptions permitted = from.options;
  if (!has_all_weights) permitted.permit_extra.emplace_back("*");  // runs with other inputs may use them
  for (const auto& [name, tensor] : weights::load_reported(from.path, weights, permitted)) {
    if (names.contains(name)) variables->write(name, tensor);
  }
  may_have_more = !has_all_weights;
}

SessionState::Compiled SessionState::make(const Specs& inputs, bool is_placed) const {
  Graph graph;
  graph.set_training(false);
  Values values;
  for (const auto& [name, spec] : inputs) values.add(is_placed ? std::string() : name, graph.input(name, spec));
  const Values results = (*shared->network)(values);
  std::vector<std::pair<std::string, std::string>> outputs;
  std::vector<Value> wanted;
  for (const auto& [name, value] : results) {
    outputs.emplace_back(name.empty() ? std::to_string(outputs.size()) : name, value.name());
    wanted.push_back(value);
  }
  Program program = compile(graph, wanted, shared->variables, {.precision = options.precision});
  Specs names = weights::wanted_of(graph);
  for (const VariablePtr& variable : graph.variables()) {  // a file also has weights that no output needs
    const bool is_new = names.contains(variable->name) && !shared->variables->contains(variable->name);
    if (is_new) shared->variables->require(variable, variable->name);
  }
  std::erase_if(names, [&](const auto& one) { return shared->weights.contains(one.first); });
  shared->weights.insert(names.begin(), names.end());
  shared->unwritten.merge(names);  // other inputs may use further weights of the network
  shared->has_all_weights = shared->has_all_weights || shared->are_all_inputs(inputs, is_placed);
  const bool is_to_check = shared->has_all_weights && shared->may_have_more;
  if (shared->file && (!shared->unwritten.empty() || is_to_check)) {
    shared->write(*shared->file, shared->unwritten);
    shared->unwritten.clear();
  }
  return {inputs, is_placed, std::move(outputs), std::move(program)};
}

SessionState::Compiled SessionState::make_room_for(const Specs& inputs, bool is_placed) {
  while (true) {
    try {
      return make(inputs, is_placed);
    } catch (const OutOfMemory& error) {
      if (programs.empty()) throw;
      log(LogLevel::info, fmt::format("session: {}; the program that was not used for longest, of {}, is dropped",
                                      error.what(), programs.size()));
    }
    programs.pop_back();
  }
}

namespace {

/// The name of the only input of a network that is called with one tensor.
constexpr const char* kOnlyInput = "input";

const TensorSpec& spec_of(const TensorSpec& spec) { return spec; }
const TensorSpec& spec_of(const Tensor& tensor) { return tensor.spec(); }

}  // namespace

template <class Inputs>
SessionState::Compiled& SessionState::get(const Inputs& inputs, bool is_placed) {
  const auto fits = [&](const Compiled& program) {
    return program.is_placed == is_placed &&
           std::ranges::equal(program.inputs, inputs, [](const auto& known, const auto& given) {
             return known.first == given.first && known.second == spec_of(given.second);
           });
  };
  const auto found = std::ranges::find_if(programs, fits);
  if (found != programs.end()) {
    programs.splice(programs.begin(), programs, found);
    return programs.front();
  }
  Specs specs;
  for (const auto& [name, input] : inputs) specs.emplace(name, spec_of(input));
  programs.push_front(make_room_for(specs, is_placed));
  if (programs.size() > options.programs) programs.pop_back();
  return programs.front();
}

namespace {

/// Runs `work` as the only user of the session and, among those that share weights, of the device.
template <class Work>
decltype(auto) in_turn(const SessionState& state, const char* what, Work&& work) {
  const Exclusive::Use use(state.use, [] { return "a Session"; });
  const std::lock_guard turn(state.shared->turn);
  return with_host_memory(what, std::forward<Work>(work));
}

NamedTensors run_in_turn(SessionState& state, const NamedTensors& inputs, bool is_placed) {
  CONCORD_CHECK(!inputs.empty(), ArgumentError, "a session needs at least one input");
  return in_turn(state, "running a session", [&] {
    SessionState::Compiled& program = state.get(inputs, is_placed);
    for (const auto& [name, tensor] : inputs) {
      if (program.program.has_input(name)) program.program.write(name, tensor);
    }
    program.program.run();
    NamedTensors outputs;
    for (const auto& [name, value] : program.outputs) outputs.emplace(name, program.program.read(value));
    return outputs;
  });
}

void prepare_in_turn(SessionState& state, const SessionState::Specs& inputs, bool is_placed) {
  CONCORD_CHECK(!inputs.empty(), ArgumentError, "a session needs at least one input");
  in_turn(state, "preparing a session", [&] { static_cast<void>(state.get(inputs, is_placed)); });
}

std::unique_ptr<SessionState> state_of(std::shared_ptr<nn::Module> network, VariablesPtr weights,
                                       const SessionOptions& options) {
  CONCORD_CHECK(network && weights, ArgumentError, "a session needs a network and a device");
  CONCORD_CHECK(options.programs >= 1, ArgumentError, "a session keeps at least one program");
  const auto shared = std::make_shared<SessionState::Shared>();
  shared->network = std::move(network);
  shared->variables = std::move(weights);
  return std::make_unique<SessionState>(SessionState{shared, options});
}

}  // namespace

Session::Session(std::unique_ptr<SessionState> state) : state_("a Session", std::move(state)) {}

Session::Session(std::shared_ptr<nn::Module> network, DevicePtr device, const SessionOptions& options)
    : Session(std::move(network), std::make_shared<Variables>(std::move(device), options.seed), options) {}

Session::Session(std::shared_ptr<nn::Module> network, VariablesPtr weights, const SessionOptions& options)
    : Session(state_of(std::move(network), std::move(weights), options)) {}

Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;
Session::~Session() = default;

Session Session::share() const {
  return Session(std::make_unique<SessionState>(SessionState{state_->shared, state_->options}));
}

void Session::load(const std::filesystem::path& path, const io::LoadOptions& options) {
  in_turn(*state_, "loading weights", [&] {
    SessionState::Shared& shared = *state_->shared;
    const SessionState::WeightsFile file{absolute_path(path), options};
    if (shared.weights.empty()) {
      static_cast<void>(weights::File(path));  // what is not there, or is damaged, is said now
    } else {
      shared.write(file, shared.weights);
      shared.unwritten.clear();
    }
    shared.file = file;
  });
}

NamedTensors Session::run(const NamedTensors& inputs) { return run_in_turn(*state_, inputs, false); }

Tensor Session::run(const Tensor& input) {
  NamedTensors outputs = run_in_turn(*state_, {{kOnlyInput, input}}, true);
  CONCORD_CHECK(outputs.size() == 1, ArgumentError,
                "the network has {} outputs; run it with named inputs, `run({{{{name, tensor}}}})`", outputs.size());
  return std::move(outputs.begin()->second);
}

void Session::prepare(const std::map<std::string, TensorSpec>& inputs) { prepare_in_turn(*state_, inputs, false); }

void Session::prepare(const TensorSpec& input) { prepare_in_turn(*state_, {{kOnlyInput, input}}, true); }

std::size_t Session::programs() const { return state_->programs.size(); }
Device& Session::device() const { return state_->shared->variables->device(); }
const VariablesPtr& Session::variables() const { return state_->shared->variables; }

}  // namespace concord
