// Recurrent layers and their gradients over sequences of one length (ops/recurrent.hpp; the cells' papers stand in
// cl_kernels/ops/recurrent.h). Sequences of several lengths have no reference.
#include "concord/ops/recurrent.hpp"

#include <algorithm>
#include <cmath>

#include "concord/compare/reference64/families.hpp"

namespace concord::float64 {
namespace {

using ops::RecurrentCell;

double sigmoid(double x) { return x >= 0 ? 1 / (1 + std::exp(-x)) : std::exp(x) / (1 + std::exp(x)); }

/// Sizes as they index, and the steps in the order of the pass.
struct Pass {
  RecurrentCell cell;
  std::size_t steps, batch, hidden, gates;
  bool reverse;
  Pass(const ops::RecurrentFamily& op, const ops::RecurrentSizes& s)
      : cell(op.cell()),
        steps(static_cast<std::size_t>(s.steps)),
        batch(static_cast<std::size_t>(s.batch)),
        hidden(static_cast<std::size_t>(s.hidden)),
        gates(static_cast<std::size_t>(s.gates)),
        reverse(op.reverse()) {}
  [[nodiscard]] std::size_t step(std::size_t i) const { return reverse ? steps - 1 - i : i; }
  /// Unit j of sequence n at step t in (T, N, width·H), in the width-th part.
  [[nodiscard]] std::size_t at(std::size_t t, std::size_t n, std::size_t width, std::size_t part, std::size_t j) const {
    return ((t * batch + n) * width + part) * hidden + j;
  }
};

/// state (N, H)·weightsᵀ for one row: the sums of gate `part` of unit j.
double product(const Pass& p, const Values& state, std::size_t n, const Values& weights, std::size_t part,
               std::size_t j) {
  double sum = 0;
  for (std::size_t i = 0; i < p.hidden; ++i) {
    sum += state[n * p.hidden + i] * weights[(part * p.hidden + j) * p.hidden + i];
  }
  return sum;
}

struct Forward {
  Values y, h, c, saved, cells;
};

void advance(const Pass& p, const ReplayedNode& node, const Values& x, const Values& weights, const Values& bias,
             std::size_t t, std::size_t n, std::size_t j, const Values& before, Forward& f) {
  const std::size_t unit = n * p.hidden + j;
  const auto sum = [&](std::size_t part) {
    return x[p.at(t, n, p.gates, part, j)] + product(p, before, n, weights, part, j);
  };
  const auto save = [&](std::size_t part, double value) {
    if (node.results.size() > 2) f.saved[p.at(t, n, 4, part, j)] = value;
    return value;
  };
  if (p.cell == RecurrentCell::lstm) {
    const double i = save(0, sigmoid(sum(0))), forget = save(1, sigmoid(sum(1)));
    const double g = save(2, std::tanh(sum(2))), o = save(3, sigmoid(sum(3)));
    f.c[unit] = f.cells[p.at(t, n, 1, 0, j)] = forget * f.c[unit] + i * g;
    f.h[unit] = o * std::tanh(f.c[unit]);
  } else if (p.cell == RecurrentCell::gru) {
    const double r = save(0, sigmoid(sum(0) + bias[j])), z = save(1, sigmoid(sum(1) + bias[p.hidden + j]));
    const double hidden = save(3, product(p, before, n, weights, 2, j) + bias[2 * p.hidden + j]);
    const double candidate = save(2, std::tanh(x[p.at(t, n, 3, 2, j)] + r * hidden));
    f.h[unit] = (1 - z) * candidate + z * before[unit];
  } else {
    f.h[unit] = p.cell == RecurrentCell::rnn_tanh ? std::tanh(sum(0)) : std::max(sum(0), 0.0);
  }
  f.y[p.at(t, n, 1, 0, j)] = f.h[unit];
}

Results forward(const ops::Recurrent& op, const ReplayedNode& node, const ops::RecurrentSizes& sizes) {
  const Pass p(op, sizes);
  const bool lstm = p.cell == RecurrentCell::lstm, gru = p.cell == RecurrentCell::gru;
  const Values x = doubles(node.inputs[0]), weights = doubles(node.inputs[1]);
  const Values bias = gru ? doubles(node.inputs[3]) : Values{};
  Forward f{zeros(node.results[0]), doubles(node.inputs[2]), lstm ? doubles(node.inputs[3]) : Values{}, {}, {}};
  if (lstm || gru) f.saved = zeros(node.results[lstm ? 3 : 2]);
  if (lstm) f.cells = zeros(node.results[4]);
  for (std::size_t i = 0; i < p.steps; ++i) {
    const Values before = f.h;
    for (std::size_t n = 0; n < p.batch; ++n) {
      for (std::size_t j = 0; j < p.hidden; ++j) advance(p, node, x, weights, bias, p.step(i), n, j, before, f);
    }
  }
  if (lstm) return {{std::move(f.y), std::move(f.h), std::move(f.c), std::move(f.saved), std::move(f.cells)}};
  if (gru) return {{std::move(f.y), std::move(f.h), std::move(f.saved)}};
  return {{std::move(f.y), std::move(f.h)}};
}

/// The operands of a backward pass, and its results as they grow.
struct Backward {
  Values diff_y, weights, h0, y, c0, saved, cells;
  Values diff_gates, diff_h, previous, diff_c, diff_hidden;
};

/// The gradients of the sums of one unit's gates; gives what of the state's gradient passes through no gate.
double retreat(const Pass& p, std::size_t t, std::size_t n, std::size_t j, double diff_h, double h, double c,
               Backward& b) {
  const auto saved = [&](std::size_t part) { return b.saved[p.at(t, n, 4, part, j)]; };
  const auto give = [&](std::size_t part, double value) { b.diff_gates[p.at(t, n, p.gates, part, j)] = value; };
  if (p.cell == RecurrentCell::lstm) {
    const double i = saved(0), f = saved(1), g = saved(2), o = saved(3);
    const double through = std::tanh(b.cells[p.at(t, n, 1, 0, j)]);
    double& diff_c = b.diff_c[n * p.hidden + j];
    const double inner = diff_c + diff_h * o * (1 - through * through);
    give(0, inner * g * i * (1 - i));
    give(1, inner * c * f * (1 - f));
    give(2, inner * i * (1 - g * g));
    give(3, diff_h * through * o * (1 - o));
    diff_c = inner * f;
    return 0;
  }
  if (p.cell == RecurrentCell::gru) {
    const double r = saved(0), z = saved(1), candidate = saved(2), hidden = saved(3);
    const double of_candidate = diff_h * (1 - z) * (1 - candidate * candidate);
    give(0, of_candidate * hidden * r * (1 - r));
    give(1, diff_h * (h - candidate) * z * (1 - z));
    give(2, of_candidate);
    for (std::size_t part = 0; part < 2; ++part) {
      b.diff_hidden[p.at(t, n, 3, part, j)] = b.diff_gates[p.at(t, n, 3, part, j)];
    }
    b.diff_hidden[p.at(t, n, 3, 2, j)] = of_candidate * r;
    return diff_h * z;
  }
  const double y = b.y[p.at(t, n, 1, 0, j)];
  give(0, p.cell == RecurrentCell::rnn_tanh ? diff_h * (1 - y * y) : y > 0 ? diff_h : 0);
  return 0;
}

/// Step i of the pass run backwards: b.diff_h becomes the gradient of the state before it.
void step_back(const Pass& p, std::size_t i, Backward& b) {
  const std::size_t t = p.step(i), before = i == 0 ? 0 : p.step(i - 1);
  const auto state = [&](const Values& first, const Values& later, std::size_t n, std::size_t j) {
    return i == 0 ? first[n * p.hidden + j] : later[p.at(before, n, 1, 0, j)];
  };
  const bool lstm = p.cell == RecurrentCell::lstm, gru = p.cell == RecurrentCell::gru;
  Values passed(p.batch * p.hidden);
  for (std::size_t n = 0; n < p.batch; ++n) {
    for (std::size_t j = 0; j < p.hidden; ++j) {
      const std::size_t unit = n * p.hidden + j, place = p.at(t, n, 1, 0, j);
      const double h = b.previous[place] = state(b.h0, b.y, n, j);
      const double c = lstm ? state(b.c0, b.cells, n, j) : 0;
      passed[unit] = retreat(p, t, n, j, b.diff_y[place] + b.diff_h[unit], h, c, b);
    }
  }
  const Values& of_product = gru ? b.diff_hidden : b.diff_gates;
  for (std::size_t n = 0; n < p.batch; ++n) {
    for (std::size_t row = 0; row < p.gates * p.hidden; ++row) {
      const double diff = of_product[(t * p.batch + n) * p.gates * p.hidden + row];
      for (std::size_t j = 0; j < p.hidden; ++j) passed[n * p.hidden + j] += diff * b.weights[row * p.hidden + j];
    }
  }
  b.diff_h = std::move(passed);
}

Results backward(const ops::RecurrentBackward& op, const ReplayedNode& node, const ops::RecurrentSizes& sizes) {
  const Pass p(op, sizes);
  const bool lstm = p.cell == RecurrentCell::lstm, gru = p.cell == RecurrentCell::gru;
  Backward b;
  b.diff_y = doubles(node.inputs[0]);
  b.diff_h = doubles(node.inputs[1]);
  b.weights = doubles(node.inputs[2]);
  b.h0 = doubles(node.inputs[3]);
  b.y = doubles(node.inputs[4]);
  if (lstm) {
    b.diff_c = doubles(node.inputs[5]);
    b.c0 = doubles(node.inputs[6]);
    b.saved = doubles(node.inputs[7]);
    b.cells = doubles(node.inputs[8]);
  }
  if (gru) {
    b.saved = doubles(node.inputs[5]);
    b.diff_hidden = zeros(node.results[3]);
  }
  b.diff_gates = zeros(node.results[0]);
  b.previous = zeros(node.results[2]);
  for (std::size_t i = p.steps; i-- > 0;) step_back(p, i, b);
  std::vector<Values> results{std::move(b.diff_gates), std::move(b.diff_h), std::move(b.previous)};
  if (lstm) results.push_back(std::move(b.diff_c));
  if (gru) results.push_back(std::move(b.diff_hidden));
  return results;
}

}  // namespace

Results recurrent(const ReplayedNode& node) {
  const auto* family = dynamic_cast<const ops::RecurrentFamily*>(node.op);
  if (family == nullptr) return {};
  std::vector<TensorSpec> specs;
  for (const Tensor& input : node.inputs) specs.push_back(input.spec());
  const ops::RecurrentSizes sizes = family->sizes(specs);
  if (sizes.has_lengths) return {};
  if (const auto* op = dynamic_cast<const ops::Recurrent*>(node.op)) return forward(*op, node, sizes);
  return backward(dynamic_cast<const ops::RecurrentBackward&>(*node.op), node, sizes);
}

}  // namespace concord::float64
