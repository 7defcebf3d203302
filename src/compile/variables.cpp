// Variables: storage of what persists, and first values from the counter-based generator.
#include "concord/compile/variables.hpp"

#include <shared/philox.h>

#include <cmath>
#include <numbers>

#include "concord/core/check.hpp"
#include "concord/core/parallel.hpp"
#include "concord/core/philox.hpp"
#include "concord/graph/shard.hpp"

namespace concord {
namespace {

// Box and Muller on the uniforms of indices 2i and 2i + 1, in double precision on the host.
float normal(std::uint64_t index, std::uint32_t purpose, std::uint64_t seed) {
  const double u = 1.0 - static_cast<double>(philox_uniform(2 * index, purpose, 0, seed));
  const double v = static_cast<double>(philox_uniform(2 * index + 1, purpose, 0, seed));
  return static_cast<float>(std::sqrt(-2.0 * std::log(u)) * std::cos(2.0 * std::numbers::pi * v));
}

void fill_floats(std::span<float> values, const Initializer& init, std::uint32_t purpose, std::uint64_t seed) {
  for_blocks(values.size(), [&](std::size_t, std::size_t first, std::size_t count) {
    for (std::size_t i = first; i < first + count; ++i) {
      switch (init.kind) {
        case Initializer::Kind::uniform:
          values[i] = init.a + (init.b - init.a) * philox_uniform(i, purpose, 0, seed);
          break;
        case Initializer::Kind::normal: values[i] = init.a + init.b * normal(i, purpose, seed); break;
        default: values[i] = init.a;
      }
    }
  });
  for (std::int64_t i = init.zeros_begin; i < init.zeros_end; ++i) values[static_cast<std::size_t>(i)] = 0;
}

/// Whether `name` is what a module inside of a network calls its parameter where the network calls it `whole`.
bool is_part_of(const std::string& name, const std::string& whole) {
  return whole.size() > name.size() && whole.ends_with('.' + name);
}

/// A graph's record of a parameter shares the ownership of the module's (nn::Module::parameter).
bool is_same(const std::weak_ptr<const Variable>& a, const std::weak_ptr<const Variable>& b) {
  return !a.owner_before(b) && !b.owner_before(a);
}

/// Whether a slot is a further name of a parameter, which has a slot of its own under another one.
bool is_further_name(const auto& slot) { return slot.bound && !is_same(slot.owner, {}); }

}  // namespace

Tensor initial_value(const Variable& variable, std::uint64_t seed) {
  if (!variable.shard.is_whole()) {
    Variable whole = variable;
    whole.spec = whole_of(variable.spec, variable.shard);
    whole.shard = {};
    return part_of(initial_value(whole, seed), variable.shard);
  }
  if (variable.value.elements() > 0) return variable.value;
  Tensor tensor(variable.spec);
  if (variable.init.kind == Initializer::Kind::seed) {
    const auto words = tensor.values<std::int32_t>();
    words[0] = static_cast<std::int32_t>(seed & 0xFFFFFF);
    words[1] = static_cast<std::int32_t>(((seed >> 24) ^ (seed >> 48)) & 0xFFFFFF);
    return tensor;
  }
  switch (variable.spec.dtype) {
    case DType::f32: fill_floats(tensor.values<float>(), variable.init, philox_purpose(variable.name), seed); break;
    case DType::i32:
      for (std::int32_t& v : tensor.values<std::int32_t>()) v = static_cast<std::int32_t>(variable.init.a);
      break;
    default:
      CONCORD_CHECK(variable.init.kind == Initializer::Kind::constant && variable.init.a == 0, NotSupported,
                    "variable '{}' of type {} needs an initial value", variable.name, name_of(variable.spec.dtype));
  }
  return tensor;
}

Variables::Variables(DevicePtr device, std::uint64_t seed, Sharing sharing)
    : device_(std::move(device)), seed_(seed), sharing_(sharing) {
  CONCORD_CHECK(device_, ArgumentError, "Variables need a device, got null; Device::open returns one");
}

Storage Variables::require(const VariablePtr& variable, const std::string& name) {
  if (variable->name == name) return require(*variable, variable);
  Variable named = *variable;  // the module was traced as a part of another network since
  named.name = name;
  return require(named, variable);
}

Storage Variables::require(const Variable& variable, const VariablePtr& owner) {
  const Device::Use use(device());
  auto found = slots_.find(variable.name);
  if (found != slots_.end() && is_further_name(found->second) && found->second.owner.expired()) {
    slots_.erase(found);
    found = slots_.end();
  }
  if (const std::optional<Storage> held = storage_of(owner)) {
    std::string& known = names_.find(owner)->second;
    const bool is_bound = found != slots_.end() && found->second.bound && !is_further_name(found->second);
    const bool is_part = is_part_of(variable.name, known);
    if (variable.name == known) return *held;
    if (is_part && (found == slots_.end() || (sharing_ == Sharing::by_module && !is_bound))) return *held;
    const bool is_of_gone = found != slots_.end() && found->second.role == VariableRole::parameter &&
                            !is_same(found->second.owner, {}) && found->second.owner.expired();
    if (is_of_gone && sharing_ == Sharing::by_module) {
      slots_.erase(found);
      found = slots_.end();
    }
    if (found == slots_.end()) {
      Slot& slot = slots_.find(known)->second;
      Slot named = slot;
      // The largest network gives the name; those from before stay for who reads by them.
      Slot& further = is_part_of(known, variable.name) ? slot : named;
      further.role = VariableRole::parameter;
      further.owner = owner;
      further.bound = true;
      slots_.emplace(variable.name, std::move(named));
      if (&further == &slot) known = variable.name;
      return *held;
    }
    if (is_further_name(found->second) && is_same(found->second.owner, owner)) return *held;
  }
  if (found == slots_.end()) {
    Slot slot{variable.spec, device_->allocate(variable.spec.bytes()), variable.role, variable.of, owner};
    device_->write(*slot.storage.buffer, 0, initial_value(variable, seed_).bytes());
    if (owner && variable.role == VariableRole::parameter) names_.insert_or_assign(owner, variable.name);
    return slots_.emplace(variable.name, std::move(slot)).first->second.storage;
  }
  Slot& slot = found->second;
  CONCORD_CHECK(slot.spec == variable.spec, ShapeError, "variable '{}' is {} on this device, but the program needs {}",
                variable.name, slot.spec.str(), variable.spec.str());
  if (slot.bound && !is_further_name(slot)) return slot.storage;
  const bool is_own = slot.role == VariableRole::own || variable.role == VariableRole::own;
  CONCORD_CHECK(is_own || (slot.role == variable.role && slot.of == variable.of), ArgumentError,
                "'{}' is {} here and {} in an earlier program; give the module another name", variable.name,
                description_of(variable.role), description_of(slot.role));
  const bool is_state = !variable.of.empty();  // of a parameter, whose ownership it shares here
  if ((variable.role != VariableRole::parameter && !is_state) || !owner || sharing_ == Sharing::by_name) {
    return slot.storage;
  }
  CONCORD_CHECK(!is_state || slot.owner.expired() || is_same(slot.owner, owner), ArgumentError,
                "'{}' is the state of another parameter in this Variables: two parts of a network are trained in "
                "separate programs and have equal parameter names. Name each part as in the network "
                "(nn::Sequential().push(\"head\", head))",
                variable.name);
  CONCORD_CHECK(slot.owner.expired() || is_same(slot.owner, owner), ArgumentError,
                "two networks have a parameter '{}' in the same Variables, and would share its storage. Give each its "
                "own name (nn::Sequential().push(\"a\", network)) or its own Variables; to share weights, copy the "
                "module, or make the Variables with Sharing::by_name",
                variable.name);
  slot.owner = owner;
  if (!is_state) names_.insert_or_assign(owner, variable.name);
  return slot.storage;
}

std::optional<Storage> Variables::storage_of(const VariablePtr& variable) const {
  if (!variable || variable->role != VariableRole::parameter) return std::nullopt;
  const auto name = names_.find(variable);
  const auto slot = name == names_.end() ? slots_.end() : slots_.find(name->second);
  return slot != slots_.end() && slot->second.spec == variable->spec ? std::optional(slot->second.storage)
                                                                     : std::nullopt;
}

void Variables::bind(const std::string& name, const TensorSpec& spec, BufferPtr buffer) {
  bind(name, spec, Storage(std::move(buffer)));
}

void Variables::bind(const std::string& name, const TensorSpec& spec, Storage storage) {
  const auto found = slots_.find(name);
  CONCORD_CHECK(found == slots_.end() || (found->second.bound && !is_further_name(found->second)), ArgumentError,
                "'{}' is already {}; bind storage to a new name", name, description_of(found->second.role));
  slots_.insert_or_assign(name, Slot{spec, std::move(storage), VariableRole::transient, {}, {}, true});
}

bool Variables::contains(const std::string& name, VariableRole role) const {
  const auto found = slots_.find(name);
  return found != slots_.end() && found->second.role == role;
}

Tensor Variables::read(const std::string& name) const {
  const Device::Use use(device());
  const auto found = slots_.find(name);
  CONCORD_CHECK(found != slots_.end(), ArgumentError, "there is no variable '{}'", name);
  Tensor tensor = Tensor::unset(found->second.spec);
  const Storage& storage = found->second.storage;
  device_->read(*storage.buffer, storage.offset, tensor.bytes());
  return tensor;
}

const Storage& Variables::buffer_for(const std::string& name, const Tensor& value) const {
  const auto found = slots_.find(name);
  CONCORD_CHECK(found != slots_.end(), ArgumentError, "there is no variable '{}'", name);
  CONCORD_CHECK(found->second.spec == value.spec(), ShapeError, "variable '{}' is {}, got {}", name,
                found->second.spec.str(), value.spec().str());
  CONCORD_CHECK(value.bytes().size() == value.spec().bytes(), ArgumentError,
                "variable '{}' gets an empty tensor: it was moved from", name);
  return found->second.storage;
}

void Variables::write(const std::string& name, const Tensor& value) {
  const Device::Use use(device());
  const Storage& storage = buffer_for(name, value);
  device_->write(*storage.buffer, storage.offset, value.bytes());
}

void Variables::write_deferred(const std::string& name, const Tensor& value) {
  const Storage& storage = buffer_for(name, value);
  device_->write_deferred(*storage.buffer, storage.offset, value.bytes());
}

std::vector<std::string> Variables::names() const {
  std::vector<std::string> names;
  for (const auto& [name, slot] : slots_) {
    if (!is_further_name(slot)) names.push_back(name);
  }
  return names;
}

std::vector<std::string> Variables::persistent_names() const {
  std::vector<std::string> names;
  for (const auto& [name, slot] : slots_) {
    if (slot.role != VariableRole::transient && !is_further_name(slot)) names.push_back(name);
  }
  return names;
}

std::optional<std::string> Variables::related(const std::string& parameter, VariableRole role) const {
  for (const auto& [name, slot] : slots_) {
    if (slot.role == role && slot.of == parameter && !is_further_name(slot)) return name;
  }
  return std::nullopt;
}

std::map<std::string, std::string> Variables::all_related(VariableRole role) const {
  std::map<std::string, std::string> related;
  for (const auto& [name, slot] : slots_) {
    if (slot.role == role && !is_further_name(slot)) related.emplace(name, slot.of);
  }
  return related;
}

std::map<std::string, Tensor> Variables::read_all() const {
  const Device::Use use(device());
  std::map<std::string, Tensor> all;
  for (const std::string& name : names()) all.emplace(name, read(name));
  return all;
}

}  // namespace concord
