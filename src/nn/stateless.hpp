// Layers without parameters: activations, Identity, Flatten, Dropout. Each applies the function of ops/ with its name.
#pragma once

#include "concord/core/export.hpp"
#include "concord/nn/model_parallel.hpp"
#include "concord/nn/module.hpp"
#include "concord/ops/copy.hpp"
#include "concord/ops/pointwise.hpp"
#include "concord/ops/random.hpp"

namespace CONCORD_PUBLIC concord {
namespace nn {

class Identity : public Module {
 public:
  [[nodiscard]] Value forward(Value x) override { return x; }
};

class ReLU : public Module {
 public:
  [[nodiscard]] Value forward(Value x) override { return relu(x); }
};

class LeakyReLU : public Module {
 public:
  explicit LeakyReLU(float negative_slope = 0.01F) : negative_slope_(negative_slope) {}
  [[nodiscard]] Value forward(Value x) override { return leaky_relu(x, negative_slope_); }

 private:
  float negative_slope_;
};

class ELU : public Module {
 public:
  explicit ELU(float alpha = 1) : alpha_(alpha) {}
  [[nodiscard]] Value forward(Value x) override { return elu(x, alpha_); }

 private:
  float alpha_;
};

class Sigmoid : public Module {
 public:
  [[nodiscard]] Value forward(Value x) override { return sigmoid(x); }
};

class Tanh : public Module {
 public:
  [[nodiscard]] Value forward(Value x) override { return tanh(x); }
};

class SiLU : public Module {
 public:
  [[nodiscard]] Value forward(Value x) override { return silu(x); }
};

class GELU : public Module {
 public:
  enum class Form : std::uint8_t { exact, tanh };
  explicit GELU(Form form = Form::exact) : form_(form) {}
  [[nodiscard]] Value forward(Value x) override { return form_ == Form::exact ? gelu(x) : gelu_tanh(x); }

 private:
  Form form_;
};

class Softplus : public Module {
 public:
  [[nodiscard]] Value forward(Value x) override { return softplus(x); }
};

class HardSigmoid : public Module {
 public:
  [[nodiscard]] Value forward(Value x) override { return hard_sigmoid(x); }
};

class HardSwish : public Module {
 public:
  [[nodiscard]] Value forward(Value x) override { return hard_swish(x); }
};

/// Joins the dimensions from `start_axis` on into one.
class Flatten : public Module {
 public:
  explicit Flatten(std::int64_t start_axis = 1) : start_axis_(start_axis) {}
  [[nodiscard]] Value forward(Value x) override { return flatten(x, start_axis_); }

 private:
  std::int64_t start_axis_;
};

/// In training, sets each value to 0 with probability p and multiplies the others by 1/(1−p) (Srivastava et al., 2014).
class Dropout : public Module {
 public:
  explicit Dropout(float p = 0.5F) : p_(p) {}
  [[nodiscard]] Value forward(Value x) override {
    const OwnRandomNumbers own(x);
    return dropout(x, p_);
  }

 private:
  float p_;
};

}  // namespace nn
}  // namespace concord
