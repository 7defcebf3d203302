// Recurrent layers: a oneDNN product and a loop over the hidden units a time step. The weights are brought into
// oneDNN's own format once a run; the running states stand in the outputs hn, cn, diff_h0 and diff_c0.
#include "concord/ops/recurrent.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>

#include "families.hpp"
#include "recurrent_rows.hpp"
#include "subnormals.hpp"

namespace concord::cpu {
namespace {

using Cell = ops::RecurrentCell;

std::size_t aligned(std::size_t bytes) { return (bytes + 63) / 64 * 64; }
Operand moved(Operand operand, std::size_t bytes) {
  if (operand.buffer != nullptr) operand.offset += bytes;
  return operand;
}

/// The left operand of a product: an input or output, `element` floats into it.
struct Source {
  bool is_input;
  std::size_t index;
  std::int64_t element;
};

/// Work on the operands after product number k; the product stands at the begin of the workspace.
using Step = std::function<void(const Pointers&, std::int64_t k)>;

class RecurrentLaunch final : public Launch {
 public:
  RecurrentLaunch(std::unique_ptr<Launch> pack, std::vector<std::unique_ptr<Launch>> products,
                  std::shared_ptr<const Step> step, Pointers pointers)
      : pack_(std::move(pack)),
        products_(std::move(products)),
        step_(std::move(step)),
        pointers_(std::move(pointers)) {}
  void enqueue() override {
    const SubnormalsAreZero mode;
    if (pack_) pack_->enqueue();
    for (std::size_t k = 0; k < products_.size(); ++k) {
      if (products_[k]) products_[k]->enqueue();
      (*step_)(pointers_, static_cast<std::int64_t>(k));
    }
  }

 private:
  std::unique_ptr<Launch> pack_;
  std::vector<std::unique_ptr<Launch>> products_;
  std::shared_ptr<const Step> step_;
  Pointers pointers_;
};

/// Products (N, inner) × (inner, columns) of several sources with the same weights, each followed by a step.
class RecurrentKernel final : public Kernel {
 public:
  struct Product {
    std::int64_t rows, inner, columns;
    std::size_t weights;                         // which input
    Dims strides;                                // of the weights as (inner, columns)
    std::vector<std::optional<Source>> sources;  // no product before the steps that have none
  };
  RecurrentKernel(std::string name, Product product, Step step)
      : name_(std::move(name)), product_(std::move(product)), step_(std::make_shared<const Step>(std::move(step))) {
    const Desc src = plain_desc(DType::f32, {product_.rows, product_.inner});
    const Desc dst = plain_desc(DType::f32, {product_.rows, product_.columns});
    const Dims dims{product_.inner, product_.columns};
    const Desc plain{dims, dnnl::memory::data_type::f32, product_.strides};
    const bool packs = product_.sources.size() > 2;  // worth it for several products
    const auto desc = matmul_product(src, packs ? any_desc(DType::f32, dims) : plain, Desc(), dst, attributes());
    const Desc weights = desc.weights_desc();
    multiply_ = primitive_kernel(dnnl::matmul(desc), desc,
                                 {input_argument(DNNL_ARG_SRC, 0, src), input_argument(DNNL_ARG_WEIGHTS, 1, weights),
                                  output_argument(DNNL_ARG_DST, 0, dst)});
    packed_begin_ = scratch_begin_ = aligned(dst.get_size());
    if (packs) {
      pack_ = reorder_kernel(plain, weights);
      scratch_begin_ += aligned(weights.get_size());
    }
  }
  [[nodiscard]] std::size_t workspace() const override {
    return scratch_begin_ + std::max(multiply_->workspace(), pack_ ? pack_->workspace() : 0);
  }
  [[nodiscard]] std::string name() const override { return name_ + " + " + multiply_->name(); }
  [[nodiscard]] std::unique_ptr<Launch> bind(std::span<const Operand> inputs, std::span<const Operand> outputs,
                                             Operand workspace) const override {
    const Operand scratch = moved(workspace, scratch_begin_);
    Operand weights = inputs[product_.weights];
    std::unique_ptr<Launch> pack;
    if (pack_) {
      const Operand packed = moved(workspace, packed_begin_);
      pack = pack_->bind({&weights, 1}, {&packed, 1}, scratch);
      weights = packed;
    }
    std::vector<std::unique_ptr<Launch>> products;
    for (const std::optional<Source>& source : product_.sources) {
      products.emplace_back();
      if (!source) continue;
      const Operand whole = source->is_input ? inputs[source->index] : outputs[source->index];
      const Operand left = moved(whole, static_cast<std::size_t>(source->element) * sizeof(float));
      const std::array operands{left, weights};
      products.back() = multiply_->bind(operands, {&workspace, 1}, scratch);
    }
    return std::make_unique<RecurrentLaunch>(std::move(pack), std::move(products), step_,
                                             Pointers(inputs, outputs, workspace));
  }

 private:
  std::string name_;
  Product product_;
  std::shared_ptr<const Step> step_;
  std::unique_ptr<Kernel> multiply_, pack_;
  std::size_t packed_begin_ = 0, scratch_begin_ = 0;
};

/// What a step needs to know; places in elements.
struct Run {
  Cell cell;
  bool reverse;
  ops::RecurrentSizes s;
  std::size_t lengths;  // which input
  int threads;

  [[nodiscard]] std::int64_t gate_row() const { return s.gates * s.hidden; }
  [[nodiscard]] bool is_parallel() const { return s.batch * gate_row() >= kParallelElements; }
  [[nodiscard]] std::int64_t length(const Pointers& p, std::int64_t n) const {
    return s.has_lengths ? p.input<std::int32_t>(lengths)[n] : s.steps;
  }
  /// What stands where a sequence does not run: NaN for an impossible length.
  [[nodiscard]] float idle(std::int64_t length) const {
    return length >= 1 && length <= s.steps ? 0.0F : std::numeric_limits<float>::quiet_NaN();
  }
};

void fill(float* dst, std::int64_t n, float value) { std::fill_n(dst, n, value); }
/// dst = src + a + b, where a may be null.
void add(const float* src, const float* a, float b, float* dst, std::int64_t n) {
  for (std::int64_t j = 0; j < n; ++j) dst[j] = src[j] + (a != nullptr ? a[j] : 0.0F) + b;
}

void forward_row(const Run& run, const Pointers& p, std::int64_t k, std::int64_t n) {
  const std::int64_t h = run.s.hidden, t = run.reverse ? run.s.steps - 1 - k : k, row = t * run.s.batch + n;
  const bool lstm = run.cell == Cell::lstm, gru = run.cell == Cell::gru;
  const RecurrentStep step{
      .gates_x = p.input<float>(0) + row * run.gate_row(),
      .product = p.workspace<float>() + n * run.gate_row(),
      .bias = gru ? p.input<float>(3) : nullptr,
      .h = (k == 0 ? p.input<float>(2) : p.output<float>(1)) + n * h,
      .c = lstm ? (k == 0 ? p.input<float>(3) : p.output<float>(2)) + n * h : nullptr,
      .y = p.output<float>(0) + row * h,
      .hn = p.output<float>(1) + n * h,
      .cn = lstm ? p.output<float>(2) + n * h : nullptr,
      .gates = lstm || gru ? p.output<float>(lstm ? 3 : 2) + row * 4 * h : nullptr,
      .cells = lstm ? p.output<float>(4) + row * h : nullptr,
  };
  const std::int64_t length = run.length(p, n);
  const float idle = run.idle(length);
  if (idle == 0.0F && t < length) return recurrent_step(run.cell, h, step);
  fill(step.y, h, idle);
  add(step.h, nullptr, idle, step.hn, h);
  if (lstm) add(step.c, nullptr, idle, step.cn, h);
  if (lstm) fill(step.cells, h, 0);
  if (step.gates != nullptr) fill(step.gates, 4 * h, 0);
}

void backward_row(const Run& run, const Pointers& p, std::int64_t k, std::int64_t n) {
  const std::int64_t h = run.s.hidden, t = run.reverse ? k : run.s.steps - 1 - k, row = t * run.s.batch + n;
  const bool lstm = run.cell == Cell::lstm, gru = run.cell == Cell::gru;
  const std::int64_t length = run.length(p, n), before = (row + (run.reverse ? run.s.batch : -run.s.batch)) * h;
  const float idle = run.idle(length);
  const bool runs = idle == 0.0F && t < length, is_start = !runs || (run.reverse ? t == length - 1 : t == 0);
  float* diff_h = p.output<float>(1) + n * h;
  float* diff_c = lstm ? p.output<float>(3) + n * h : nullptr;
  const float* product = p.workspace<float>() + n * h;
  if (k == 0) {
    std::copy_n(p.input<float>(1) + n * h, h, diff_h);
    if (lstm) std::copy_n(p.input<float>(5) + n * h, h, diff_c);
  } else {
    add(diff_h, product, 0, diff_h, h);
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
  float* previous = p.output<float>(2) + row * h;
  if (runs) {
    std::copy_n(step.h, h, previous);
    return recurrent_step_backward(run.cell, h, step);
  }
  fill(previous, h, idle);
  fill(step.diff_gates, run.gate_row(), idle);
  if (gru) fill(step.diff_hidden, run.gate_row(), idle);
  add(diff_h, nullptr, idle, diff_h, h);
  if (lstm) add(diff_c, nullptr, idle, diff_c, h);
}

/// The last product joins the gradient of the first state.
void finish_row(const Run& run, const Pointers& p, std::int64_t n) {
  float* diff_h = p.output<float>(1) + n * run.s.hidden;
  add(diff_h, p.workspace<float>() + n * run.s.hidden, 0, diff_h, run.s.hidden);
}

std::unique_ptr<Kernel> recurrent_kernel(const ops::RecurrentFamily& op, RecurrentKernel::Product product, Step step) {
  return guarded(op.name(), [&] {
    return std::make_unique<RecurrentKernel>(fmt::format("{} {}", op.name(), ops::name_of(op.cell())),
                                             std::move(product), std::move(step));
  });
}

}  // namespace

PreparedKernel prepare_recurrent(Backend& backend, const ops::Recurrent& op, const KernelRequest& request) {
  const ops::RecurrentSizes s = op.sizes(request.inputs);
  const Run run{op.cell(), op.reverse(), s, request.inputs.size() - 1, backend.threads};
  RecurrentKernel::Product product{s.batch, s.hidden, run.gate_row(), 1, {1, s.hidden}, {}};
  for (std::int64_t k = 0; k < s.steps; ++k) {
    product.sources.push_back(k == 0 ? Source{true, 2, 0} : Source{false, 1, 0});
  }
  return all_plain(request, recurrent_kernel(op, std::move(product), [run](const Pointers& p, std::int64_t k) {
                     parallel_for(run.s.batch, run.threads, run.is_parallel(),
                                  [&](std::int64_t n) { forward_row(run, p, k, n); });
                   }));
}

PreparedKernel prepare_recurrent_backward(Backend& backend, const ops::RecurrentBackward& op,
                                          const KernelRequest& request) {
  const ops::RecurrentSizes s = op.sizes(request.inputs);
  const Run run{op.cell(), op.reverse(), s, request.inputs.size() - 1, backend.threads};
  RecurrentKernel::Product product{s.batch, run.gate_row(), s.hidden, 2, {s.hidden, 1}, {std::nullopt}};
  const std::size_t hidden = op.cell() == Cell::gru ? 3 : 0;
  for (std::int64_t k = 0; k < s.steps; ++k) {
    const std::int64_t t = op.reverse() ? k : s.steps - 1 - k;
    product.sources.push_back(Source{false, hidden, t * s.batch * run.gate_row()});
  }
  return all_plain(request, recurrent_kernel(op, std::move(product), [run](const Pointers& p, std::int64_t k) {
                     parallel_for(run.s.batch, run.threads, run.is_parallel(), [&](std::int64_t n) {
                       if (k < run.s.steps) return backward_row(run, p, k, n);
                       finish_row(run, p, n);
                     });
                   }));
}

}  // namespace concord::cpu
