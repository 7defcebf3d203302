// TileProgram: an expression prepared to run over tiles — which instructions are the same for all elements, where each
// value lives, which results go straight to their output. Used by pointwise.
#pragma once

#include <span>
#include <vector>

#include "concord/core/types.hpp"
#include "concord/graph/expression.hpp"
#include "tile.hpp"

namespace concord::cpu {

/// How a value of the expression is come by.
enum class TileSource : std::uint8_t {
  uniform,  // one number, computed once a launch
  direct,   // read in place: an f32 operand stored as the output is
  loaded,   // read, converted or broadcast into a tile of its own at the start of each tile
  computed  // by an instruction
};

struct TileValue {
  TileSource source = TileSource::computed;
  std::int32_t slot = -1;    // of loaded and computed values: number of its tile; of uniform ones: of its number
  std::int32_t output = -1;  // >= 0: computed straight into this output
};

class TileProgram {
 public:
  /// `inputs[i]`: uniform, direct or loaded. An output of f32 may be written by the instruction that computes it.
  TileProgram(const Expression& expression, std::span<const TileSource> inputs, std::span<const DType> outputs);

  [[nodiscard]] std::span<const Expression::Instruction> code() const { return code_; }
  [[nodiscard]] const TileValue& value(std::int32_t instruction) const { return values_[instruction]; }
  [[nodiscard]] std::span<const std::int32_t> results() const { return results_; }
  /// Tiles a thread needs.
  [[nodiscard]] std::int64_t tiles() const { return tiles_; }
  /// Loops over a tile.
  [[nodiscard]] std::int64_t passes() const { return passes_; }
  /// Numbers a launch needs.
  [[nodiscard]] std::int64_t uniforms() const { return uniforms_; }

  /// Computes every uniform value; uniforms[slot] of the inputs among them are set already.
  void run_uniform(float* uniforms) const;
  /// Runs the instructions over n elements. `direct[i]` is operand i's first element, `outputs[k]` output k's; loaded
  /// values stand in their tiles.
  void run(const float* uniforms, float* tiles, std::span<const float* const> direct,
           std::span<std::byte* const> outputs, std::int64_t n) const;

 private:
  [[nodiscard]] TileOperand operand(std::int32_t instruction, const float* uniforms, float* tiles,
                                    std::span<const float* const> direct, std::span<std::byte* const> outputs) const;

  std::vector<Expression::Instruction> code_;
  std::vector<std::int32_t> results_;
  std::vector<DType> types_;
  std::vector<TileValue> values_;
  std::int32_t tiles_ = 0, uniforms_ = 0, passes_ = 0;
};

}  // namespace concord::cpu
