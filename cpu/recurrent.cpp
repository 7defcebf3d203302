// Recurrent layers: oneDNN products and a loop over the hidden units a time step. Each thread has a part of the units,
// for all steps: their products, the weights for them in oneDNN's own format, packed once a run, and their loop. The
// running states stand in the outputs hn, cn, diff_h0 and diff_c0.
#include "concord/ops/recurrent.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "kernels.hpp"
#include "recurrent_product.hpp"
#include "recurrent_simd.hpp"

namespace concord::cpu {
namespace {

using Cell = ops::RecurrentCell;
using Place = RecurrentSource::Place;

/// What a step needs to know; places in elements.
struct Run {
  Cell cell;
  bool reverse;
  ops::RecurrentSizes s;
  std::size_t lengths;  // which input
  int threads;

  [[nodiscard]] std::int64_t gate_row() const { return s.gates * s.hidden; }
  /// Whole groups of units for each thread; all of them for one where a step's product is soon done.
  [[nodiscard]] std::vector<RecurrentPart> parts() const {
    constexpr std::int64_t kGroup = 16, kWorthThreads = std::int64_t{1} << 17;
    const std::int64_t groups = (s.hidden + kGroup - 1) / kGroup;
    const std::int64_t wanted =
        s.batch * gate_row() * s.hidden >= kWorthThreads ? std::min<std::int64_t>(groups, threads) : 1;
    const std::int64_t units = (groups + wanted - 1) / wanted * kGroup;
    std::vector<RecurrentPart> parts;
    for (std::int64_t begin = 0; begin < s.hidden; begin += units) {
      parts.push_back({begin, std::min(begin + units, s.hidden), {}});
    }
    return parts;
  }
  [[nodiscard]] std::int64_t length(const Pointers& p, std::int64_t n) const {
    return s.has_lengths ? p.input<std::int32_t>(lengths)[n] : s.steps;
  }
  /// The hidden states after step k are alternately in hn and behind the product, the last ones in hn, because other
  /// threads still read the states before it.
  [[nodiscard]] bool is_in_hn(std::int64_t k) const { return (s.steps - 1 - k) % 2 == 0; }
  [[nodiscard]] float* state(const Pointers& p, std::int64_t k) const {
    return is_in_hn(k) ? p.output<float>(1) : p.workspace<float>() + s.batch * gate_row();
  }
  /// The value where a sequence does not run: NaN for an impossible length.
  [[nodiscard]] float idle(std::int64_t length) const {
    return length >= 1 && length <= s.steps ? 0.0F : std::numeric_limits<float>::quiet_NaN();
  }
};

/// The product of row n at the units: its unit j at [j].
const float* product_of(const Run& run, const Pointers& p, std::int64_t n, const UnitRange& units) {
  const std::int64_t part = run.s.batch * units.begin + n * (units.end - units.begin);
  return p.workspace<float>() + part - units.begin;
}
void fill(float* dst, const UnitRange& units, float value) { std::fill(dst + units.begin, dst + units.end, value); }
/// dst = src + a + b, where a may be null.
void add(const float* src, const float* a, float b, float* dst, const UnitRange& units) {
  for (std::int64_t j = units.begin; j < units.end; ++j) dst[j] = src[j] + (a != nullptr ? a[j] : 0.0F) + b;
}
/// The same units of each gate.
void fill_gates(float* dst, std::int64_t gates, const UnitRange& units, float value) {
  for (std::int64_t g = 0; g < gates; ++g) fill(dst + g * units.row, units, value);
}
void copy(const float* src, float* dst, const UnitRange& units) {
  std::copy(src + units.begin, src + units.end, dst + units.begin);
}

void forward_row(const Run& run, const Pointers& p, std::int64_t k, std::int64_t n, const UnitRange& units) {
  const std::int64_t h = run.s.hidden, t = run.reverse ? run.s.steps - 1 - k : k, row = t * run.s.batch + n;
  const bool lstm = run.cell == Cell::lstm, gru = run.cell == Cell::gru;
  const RecurrentStep step{
      .gates_x = p.input<float>(0) + row * run.gate_row(),
      .product = product_of(run, p, n, units),
      .product_gate = run.s.batch * h,
      .bias = gru ? p.input<float>(3) : nullptr,
      .h = (k == 0 ? p.input<float>(2) : run.state(p, k - 1)) + n * h,
      .c = lstm ? (k == 0 ? p.input<float>(3) : p.output<float>(2)) + n * h : nullptr,
      .y = p.output<float>(0) + row * h,
      .hn = run.state(p, k) + n * h,
      .cn = lstm ? p.output<float>(2) + n * h : nullptr,
      .gates = lstm || gru ? p.output<float>(lstm ? 3 : 2) + row * 4 * h : nullptr,
      .cells = lstm ? p.output<float>(4) + row * h : nullptr,
  };
  const std::int64_t length = run.length(p, n);
  const float idle = run.idle(length);
  if (idle == 0.0F && t < length) return recurrent_step(run.cell, units, step);
  fill(step.y, units, idle);
  add(step.h, nullptr, idle, step.hn, units);
  if (lstm) add(step.c, nullptr, idle, step.cn, units);
  if (lstm) fill(step.cells, units, 0);
  if (step.gates != nullptr) fill_gates(step.gates, 4, units, 0);
}

void backward_row(const Run& run, const Pointers& p, std::int64_t k, std::int64_t n, const UnitRange& units) {
  const std::int64_t h = run.s.hidden, t = run.reverse ? k : run.s.steps - 1 - k, row = t * run.s.batch + n;
  const bool lstm = run.cell == Cell::lstm, gru = run.cell == Cell::gru;
  const std::int64_t length = run.length(p, n), before = (row + (run.reverse ? run.s.batch : -run.s.batch)) * h;
  const float idle = run.idle(length);
  const bool runs = idle == 0.0F && t < length, is_start = !runs || (run.reverse ? t == length - 1 : t == 0);
  float* diff_h = p.output<float>(1) + n * h;
  float* diff_c = lstm ? p.output<float>(3) + n * h : nullptr;
  const float* product = product_of(run, p, n, units);
  if (k == 0) {
    copy(p.input<float>(1) + n * h, diff_h, units);
    if (lstm) copy(p.input<float>(5) + n * h, diff_c, units);
  } else {
    add(diff_h, product, 0, diff_h, units);
  }
  const RecurrentStepBackward step{
      .diff_y = p.input<float>(0) + row * h,
      .carried = diff_h,
      .carried_c = diff_c,
      .h = is_start ? p.input<float>(3) + n * h : p.input<float>(4) + before,
      .c = !lstm      ? nullptr
           : is_start ? p.input<float>(6) + n * h
                      : p.input<float>(8) + before,
      .y = p.input<float>(4) + row * h,
      .cells = lstm ? p.input<float>(8) + row * h : nullptr,
      .gates = lstm || gru ? p.input<float>(lstm ? 7 : 5) + row * 4 * h : nullptr,
      .diff_gates = p.output<float>(0) + row * run.gate_row(),
      .diff_hidden = gru ? p.output<float>(3) + row * run.gate_row() : nullptr,
      .diff_h = diff_h,
      .diff_c = diff_c,
  };
  float* previous = p.output<float>(2) + row * h;  // written last: it may lie where this step reads
  if (runs) {
    recurrent_step_backward(run.cell, units, step);
    return copy(step.h, previous, units);
  }
  fill(previous, units, idle);
  fill_gates(step.diff_gates, run.s.gates, units, idle);
  if (gru) fill_gates(step.diff_hidden, run.s.gates, units, idle);
  add(diff_h, nullptr, idle, diff_h, units);
  if (lstm) add(diff_c, nullptr, idle, diff_c, units);
}

/// The last product joins the gradient of the first state.
void finish_row(const Run& run, const Pointers& p, std::int64_t n, const UnitRange& units) {
  float* diff_h = p.output<float>(1) + n * run.s.hidden;
  add(diff_h, product_of(run, p, n, units), 0, diff_h, units);
}

std::unique_ptr<Kernel> kernel_of(const ops::RecurrentFamily& op, RecurrentProduct product, RecurrentStepWork step) {
  return guarded(op.name(), [&] {
    return recurrent_kernel(fmt::format("{} {}", op.name(), ops::name_of(op.cell())), std::move(product),
                            std::move(step));
  });
}

PreparedKernel prepare_recurrent(Backend& backend, const ops::Recurrent& op, const KernelRequest& request) {
  const ops::RecurrentSizes s = op.sizes(request.inputs);
  const Run run{op.cell(), op.reverse(), s, request.inputs.size() - 1, backend.threads};
  RecurrentProduct product{s.batch,     s.hidden, run.gate_row(),   s.batch * s.hidden, 1, {1, s.hidden},
                           run.parts(), {},       request.precision};
  for (RecurrentPart& part : product.parts) {
    for (std::int64_t g = 0; g < s.gates; ++g) {
      const std::int64_t column = g * s.hidden + part.begin;
      part.pieces.push_back({column, column * s.hidden, part.end - part.begin});
    }
  }
  for (std::int64_t k = 0; k < s.steps; ++k) {
    product.sources.push_back(k == 0                ? RecurrentSource{Place::input, 2, 0}
                              : run.is_in_hn(k - 1) ? RecurrentSource{Place::output, 1, 0}
                                                    : RecurrentSource{Place::workspace, 0, s.batch * run.gate_row()});
  }
  return all_plain(
      request, kernel_of(op, std::move(product), [run](const Pointers& p, std::int64_t k, const RecurrentPart& part) {
        const UnitRange units{run.s.hidden, part.begin, part.end};
        for (std::int64_t n = 0; n < run.s.batch; ++n) forward_row(run, p, k, n, units);
      }));
}

PreparedKernel prepare_recurrent_backward(Backend& backend, const ops::RecurrentBackward& op,
                                          const KernelRequest& request) {
  const ops::RecurrentSizes s = op.sizes(request.inputs);
  const Run run{op.cell(), op.reverse(), s, request.inputs.size() - 1, backend.threads};
  RecurrentProduct product{s.batch,     run.gate_row(), s.hidden,         0, 2, {s.hidden, 1},
                           run.parts(), {std::nullopt}, request.precision};
  for (RecurrentPart& part : product.parts) part.pieces.push_back({part.begin, part.begin, part.end - part.begin});
  const std::size_t hidden = op.cell() == Cell::gru ? 3 : 0;
  for (std::int64_t k = 0; k < s.steps; ++k) {
    const std::int64_t t = op.reverse() ? k : s.steps - 1 - k;
    product.sources.push_back(RecurrentSource{Place::output, hidden, t * s.batch * run.gate_row()});
  }
  return all_plain(
      request, kernel_of(op, std::move(product), [run](const Pointers& p, std::int64_t k, const RecurrentPart& part) {
        const UnitRange units{run.s.hidden, part.begin, part.end};
        for (std::int64_t n = 0; n < run.s.batch; ++n) {
          if (k < run.s.steps) {
            backward_row(run, p, k, n, units);
          } else {
            finish_row(run, p, n, units);
          }
        }
      }));
}

}  // namespace

void add_recurrent(Kernels& kernels) {
  kernels.add<ops::Recurrent, prepare_recurrent>();
  kernels.add<ops::RecurrentBackward, prepare_recurrent_backward>();
}

}  // namespace concord::cpu
