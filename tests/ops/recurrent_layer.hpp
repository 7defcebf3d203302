// What the tests of recurrent layers share: cells, their operands, and the layer.
#pragma once

#include <cmath>
#include <vector>

#include "concord/ops/recurrent.hpp"
#include "ops/op_test.hpp"

namespace concord::test {

using Cell = ops::RecurrentCell;
inline constexpr Cell kCells[] = {Cell::rnn_tanh, Cell::rnn_relu, Cell::lstm, Cell::gru};

inline bool is_lstm(Cell cell) { return cell == Cell::lstm; }
inline bool is_gru(Cell cell) { return cell == Cell::gru; }
struct Form {
  Cell cell;
  bool reverse = false;
  bool has_lengths = false;
};

inline std::vector<Value> build(const Form& form, const std::vector<Value>& in) {
  RecurrentOperands operands{in[0], in[1], in[2]};
  if (is_lstm(form.cell)) operands.c0 = in[3];
  if (is_gru(form.cell)) operands.bias = in[3];
  if (form.has_lengths) operands.lengths = in.back();
  const RecurrentResult result = recurrent(form.cell, operands, form.reverse);
  std::vector<Value> results{result.y, result.hn};
  if (is_lstm(form.cell)) results.push_back(result.cn);
  return results;
}

inline std::vector<Input> inputs_of(const Form& form, std::int64_t steps, std::int64_t batch, std::int64_t size,
                                    const std::vector<double>& lengths) {
  const std::int64_t rows = ops::gates_of(form.cell) * size;
  std::vector<Input> inputs{{normal(Shape{steps, batch, rows}, 1)},
                            {normal(Shape{rows, size}, 2, 1 / std::sqrt(static_cast<double>(size)))},
                            {normal(Shape{batch, size}, 3)}};
  if (is_lstm(form.cell)) inputs.push_back({normal(Shape{batch, size}, 4)});
  if (is_gru(form.cell)) inputs.push_back({normal(Shape{rows}, 4)});
  if (form.has_lengths) inputs.push_back({Array(Shape{batch}, lengths), DType::i32});
  return inputs;
}

}  // namespace concord::test
