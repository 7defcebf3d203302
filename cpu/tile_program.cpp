// TileProgram: placing the values of an expression, and running it.
#include "tile_program.hpp"

#include <algorithm>

namespace concord::cpu {
namespace {

using F = ScalarFunction;

bool is_leaf(F function) { return function == F::input || function == F::constant || function == F::coordinate; }

}  // namespace

TileProgram::TileProgram(const Expression& expression, std::span<const TileSource> inputs,
                         std::span<const DType> outputs)
    : code_(expression.code().begin(), expression.code().end()),
      results_(expression.results().begin(), expression.results().end()),
      types_(outputs.begin(), outputs.end()),
      values_(code_.size()) {
  const auto count = static_cast<std::int32_t>(code_.size());
  std::vector<std::int32_t> last_use(code_.size(), -1);
  std::int32_t last_direct_read = -1;
  for (std::int32_t i = 0; i < count; ++i) {
    const auto& instruction = code_[i];
    TileValue& value = values_[i];
    if (instruction.function == F::input) {
      value.source = inputs[static_cast<std::size_t>(instruction.index)];
    } else if (instruction.function == F::constant) {
      value.source = TileSource::uniform;
    } else if (instruction.function == F::coordinate) {
      value.source = TileSource::loaded;
    } else {
      bool uniform = true;
      for (const std::int32_t argument : instruction.arguments) {
        if (argument < 0) continue;
        uniform = uniform && values_[argument].source == TileSource::uniform;
        last_use[argument] = i;
        if (values_[argument].source == TileSource::direct) last_direct_read = i;
      }
      if (uniform) value.source = TileSource::uniform;
    }
    if (value.source == TileSource::uniform) value.slot = uniforms_++;
  }
  for (const std::int32_t result : results_) {
    last_use[result] = count;
    if (values_[result].source == TileSource::direct) last_direct_read = count;
  }
  // An output may share its memory with an operand, so nothing is written before the last operand is read in place.
  for (std::size_t k = 0; k < results_.size(); ++k) {
    TileValue& value = values_[results_[k]];
    if (value.source == TileSource::computed && value.output < 0 && types_[k] == DType::f32 &&
        results_[k] >= last_direct_read) {
      value.output = static_cast<std::int32_t>(k);
    }
  }
  std::vector<std::int32_t> free;
  const auto take = [&] {
    if (free.empty()) return tiles_++;
    const std::int32_t slot = free.back();
    free.pop_back();
    return slot;
  };
  // Loaded tiles keep their place: what does not change from tile to tile is loaded only once.
  for (TileValue& value : values_) {
    if (value.source == TileSource::loaded) value.slot = tiles_++;
  }
  for (std::int32_t i = 0; i < count; ++i) {
    if (values_[i].source != TileSource::computed) continue;
    ++passes_;
    for (std::size_t a = 0; a < 3; ++a) {
      const std::int32_t argument = code_[i].arguments[a];
      if (argument < 0 || last_use[argument] != i) continue;
      const TileValue& used = values_[argument];
      if (used.source == TileSource::computed && used.slot >= 0 &&
          std::find(free.begin(), free.end(), used.slot) == free.end()) {
        free.push_back(used.slot);
      }
    }
    if (values_[i].output < 0) values_[i].slot = take();
  }
}

TileOperand TileProgram::operand(std::int32_t instruction, const float* uniforms, float* tiles,
                                 std::span<const float* const> direct, std::span<std::byte* const> outputs) const {
  const TileValue& value = values_[instruction];
  switch (value.source) {
    case TileSource::uniform: return {uniforms + value.slot, true};
    case TileSource::direct: return {direct[static_cast<std::size_t>(code_[instruction].index)], false};
    default: break;
  }
  if (value.output >= 0)
    return {reinterpret_cast<const float*>(outputs[static_cast<std::size_t>(value.output)]), false};
  return {tiles + value.slot * kTilePitch, false};
}

void TileProgram::run_uniform(float* uniforms) const {
  for (std::size_t i = 0; i < code_.size(); ++i) {
    const auto& instruction = code_[i];
    if (values_[i].source != TileSource::uniform || instruction.function == F::input) continue;
    float* dst = uniforms + values_[i].slot;
    if (instruction.function == F::constant) {
      *dst = instruction.value;
      continue;
    }
    TileOperand arguments[3] = {};
    for (std::size_t a = 0; a < 3; ++a) {
      // One element is a tile of length one.
      if (instruction.arguments[a] >= 0) arguments[a] = {uniforms + values_[instruction.arguments[a]].slot, false};
    }
    tile_apply(instruction.function, arguments, dst, 1);
  }
}

void TileProgram::run(const float* uniforms, float* tiles, std::span<const float* const> direct,
                      std::span<std::byte* const> outputs, std::int64_t n) const {
  for (std::size_t i = 0; i < code_.size(); ++i) {
    const auto& instruction = code_[i];
    const TileValue& value = values_[i];
    if (value.source != TileSource::computed || is_leaf(instruction.function)) continue;
    TileOperand arguments[3] = {};
    for (std::size_t a = 0; a < 3; ++a) {
      if (instruction.arguments[a] < 0) continue;
      arguments[a] = operand(instruction.arguments[a], uniforms, tiles, direct, outputs);
    }
    float* dst = value.output >= 0 ? reinterpret_cast<float*>(outputs[static_cast<std::size_t>(value.output)])
                                   : tiles + value.slot * kTilePitch;
    if (instruction.function == F::select && arguments[0].scalar) {
      tile_store(*arguments[0].data != 0 ? arguments[1] : arguments[2], DType::f32, reinterpret_cast<std::byte*>(dst),
                 n);
    } else {
      tile_apply(instruction.function, arguments, dst, n);
    }
  }
  for (std::size_t k = 0; k < results_.size(); ++k) {
    if (values_[results_[k]].output == static_cast<std::int32_t>(k)) continue;
    tile_store(operand(results_[k], uniforms, tiles, direct, outputs), types_[k], outputs[k], n);
  }
}

}  // namespace concord::cpu
