// Binding and running the products and steps of a recurrent layer.
#include "recurrent_product.hpp"

#include <algorithm>
#include <array>

#include "bf16_simd.hpp"
#include "team.hpp"
#include "thread_mode.hpp"
#include "threads.hpp"

namespace concord::cpu {
namespace {

std::size_t aligned(std::size_t bytes) { return (bytes + 63) / 64 * 64; }
Operand moved(Operand operand, std::size_t bytes) {
  if (operand.buffer != nullptr) operand.offset += bytes;
  return operand;
}

/// A source rounded to bf16 for one part.
struct Rounding {
  const float* src = nullptr;
  Bf16* dst = nullptr;
  std::int64_t count = 0;
};

/// The launches of one part: packing its weights, then its products of each step, before which their source is rounded
/// where factors are bf16.
struct PartLaunches {
  std::vector<std::unique_ptr<Launch>> pack;
  std::vector<Rounding> roundings;  // of each step, or none
  std::vector<std::vector<std::unique_ptr<Launch>>> products;
};

class RecurrentLaunch final : public Launch {
 public:
  RecurrentLaunch(std::vector<PartLaunches> launches, std::shared_ptr<const std::vector<RecurrentPart>> parts,
                  std::shared_ptr<const RecurrentStepWork> step, Pointers pointers)
      : launches_(std::move(launches)),
        parts_(std::move(parts)),
        step_(std::move(step)),
        pointers_(std::move(pointers)) {}
  void enqueue() override {
    const ThreadMode mode;
    const auto steps = static_cast<std::int64_t>(launches_[0].products.size());
    in_step(static_cast<int>(launches_.size()), steps, [&](std::int64_t k, int part) {
      const auto number = static_cast<std::size_t>(part);
      const PartLaunches& own = launches_[number];
      for (std::size_t i = 0; k == 0 && i < own.pack.size(); ++i) own.pack[i]->enqueue();
      const auto at = static_cast<std::size_t>(k);
      if (!own.roundings.empty()) bf16_store(own.roundings[at].src, own.roundings[at].dst, own.roundings[at].count);
      for (const auto& product : own.products[at]) product->enqueue();
      (*step_)(pointers_, k, (*parts_)[number]);
    });
  }

 private:
  std::vector<PartLaunches> launches_;
  std::shared_ptr<const std::vector<RecurrentPart>> parts_;
  std::shared_ptr<const RecurrentStepWork> step_;
  Pointers pointers_;
};

/// Products (N, inner) × (inner, columns) of several sources with the same weights, each followed by a step.
class RecurrentKernel final : public Kernel {
 public:
  RecurrentKernel(std::string name, RecurrentProduct product, RecurrentStepWork step)
      : name_(std::move(name)),
        product_(std::move(product)),
        parts_(std::make_shared<const std::vector<RecurrentPart>>(product_.parts)),
        step_(std::make_shared<const RecurrentStepWork>(std::move(step))) {
    const TeamSize one(1);  // the thread of a part
    is_narrow_ = stores_bf16(product_.precision) && product_.is_worth_rounding();
    next_ = aligned(bytes_of(product_.rows * product_.columns + product_.kept));
    for (const RecurrentPart& part : *parts_) {
      for (const RecurrentPiece& piece : part.pieces) multiplies_.push_back(multiply(piece));
      scratch_.push_back(next_);
      next_ += scratch_of(part);
      rounded_.push_back(next_);
      if (is_narrow_) next_ += aligned(static_cast<std::size_t>(product_.rows * product_.inner) * sizeof(Bf16));
    }
  }
  [[nodiscard]] std::size_t workspace() const override { return next_; }
  [[nodiscard]] std::string name() const override { return name_ + " + " + multiplies_[0].kernel->name(); }
  [[nodiscard]] std::unique_ptr<Launch> bind(std::span<const Operand> inputs, std::span<const Operand> outputs,
                                             Operand workspace) const override {
    std::vector<PartLaunches> launches;
    std::size_t number = 0;
    for (const RecurrentPart& part : *parts_) {
      const Operand scratch = moved(workspace, scratch_[launches.size()]);
      const Operand rounded = moved(workspace, rounded_[launches.size()]);
      PartLaunches& own = launches.emplace_back();
      own.products.resize(product_.sources.size());
      if (is_narrow_) own.roundings = roundings(inputs, outputs, workspace, rounded);
      for (const RecurrentPiece& piece : part.pieces) {
        const Multiply& multiply = multiplies_[number++];
        Operand weights = moved(inputs[product_.weights], bytes_of(piece.weights));
        if (multiply.pack) {
          const Operand packed = moved(workspace, multiply.packed);
          own.pack.push_back(multiply.pack->bind({&weights, 1}, {&packed, 1}, scratch));
          weights = packed;
        }
        const Operand dst = moved(workspace, bytes_of(product_.rows * piece.column));
        for (std::size_t k = 0; k < product_.sources.size(); ++k) {
          const std::optional<RecurrentSource>& source = product_.sources[k];
          if (!source) continue;
          const std::array operands{is_narrow_ ? rounded : source_of(*source, inputs, outputs, workspace), weights};
          own.products[k].push_back(multiply.kernel->bind(operands, {&dst, 1}, scratch));
        }
      }
    }
    return std::make_unique<RecurrentLaunch>(std::move(launches), parts_, step_, Pointers(inputs, outputs, workspace));
  }

 private:
  struct Multiply {
    std::unique_ptr<Kernel> kernel, pack;
    std::size_t packed = 0;  // where in the workspace
  };

  /// To `rounded`, of each step.
  [[nodiscard]] std::vector<Rounding> roundings(std::span<const Operand> inputs, std::span<const Operand> outputs,
                                                const Operand& workspace, const Operand& rounded) const {
    std::vector<Rounding> all(product_.sources.size());
    for (std::size_t k = 0; k < all.size(); ++k) {
      const std::optional<RecurrentSource>& source = product_.sources[k];
      if (!source) continue;
      all[k] = {reinterpret_cast<const float*>(address(source_of(*source, inputs, outputs, workspace))),
                reinterpret_cast<Bf16*>(address(rounded)), product_.rows * product_.inner};
    }
    return all;
  }
  static Operand source_of(const RecurrentSource& source, std::span<const Operand> inputs,
                           std::span<const Operand> outputs, const Operand& workspace) {
    return moved(operand_of(source, inputs, outputs, workspace), bytes_of(source.element));
  }
  static const Operand& operand_of(const RecurrentSource& source, std::span<const Operand> inputs,
                                   std::span<const Operand> outputs, const Operand& workspace) {
    switch (source.place) {
      case RecurrentSource::Place::input: return inputs[source.index];
      case RecurrentSource::Place::output: return outputs[source.index];
      case RecurrentSource::Place::workspace: break;
    }
    return workspace;
  }
  static std::size_t bytes_of(std::int64_t elements) { return static_cast<std::size_t>(elements) * sizeof(float); }

  Multiply multiply(const RecurrentPiece& piece) {
    const DType factors = is_narrow_ ? DType::bf16 : DType::f32;
    const Desc src = plain_desc(factors, {product_.rows, product_.inner});
    const Desc dst = plain_desc(DType::f32, {product_.rows, piece.columns});
    const Dims dims{product_.inner, piece.columns};
    const Desc plain{dims, dnnl::memory::data_type::f32, product_.strides};
    const bool packs = is_narrow_ || product_.sources.size() > 2;  // worth it for several products
    const auto desc = matmul_product(src, packs ? any_desc(factors, dims) : plain, Desc(), dst, attributes());
    const Desc weights = desc.weights_desc();
    Multiply made;
    made.kernel = primitive_kernel(dnnl::matmul(desc), desc,
                                   {input_argument(DNNL_ARG_SRC, 0, src), input_argument(DNNL_ARG_WEIGHTS, 1, weights),
                                    output_argument(DNNL_ARG_DST, 0, dst)});
    if (packs) {
      made.pack = reorder_kernel(plain, weights);
      made.packed = next_;
      next_ += aligned(weights.get_size());
    }
    return made;
  }
  /// Of the last kernels made, which are those of `part`.
  [[nodiscard]] std::size_t scratch_of(const RecurrentPart& part) const {
    std::size_t bytes = 0;
    for (std::size_t i = multiplies_.size() - part.pieces.size(); i < multiplies_.size(); ++i) {
      bytes = std::max(bytes, multiplies_[i].kernel->workspace());
      if (multiplies_[i].pack) bytes = std::max(bytes, multiplies_[i].pack->workspace());
    }
    return aligned(bytes);
  }

  std::string name_;
  RecurrentProduct product_;
  std::shared_ptr<const std::vector<RecurrentPart>> parts_;
  std::shared_ptr<const RecurrentStepWork> step_;
  std::vector<Multiply> multiplies_;  // of all parts' pieces
  std::vector<std::size_t> scratch_;  // of each part, where in the workspace
  std::vector<std::size_t> rounded_;  // of each part, where its source in bf16 lies
  bool is_narrow_ = false;            // whether factors are bf16
  std::size_t next_ = 0;              // of the workspace
};

}  // namespace

std::unique_ptr<Kernel> recurrent_kernel(std::string name, RecurrentProduct product, RecurrentStepWork step) {
  return std::make_unique<RecurrentKernel>(std::move(name), std::move(product), std::move(step));
}

}  // namespace concord::cpu
