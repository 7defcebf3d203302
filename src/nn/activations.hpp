// Less common activations as layers with PyTorch's names. nn/stateless.hpp has the common ones.
#pragma once

#include "concord/core/export.hpp"
#include "concord/nn/module.hpp"
#include "concord/ops/activations.hpp"
#include "concord/ops/softmax.hpp"

namespace CONCORD_PUBLIC concord {
namespace nn {

class ReLU6 : public Module {
 public:
  [[nodiscard]] Value forward(Value x) override { return relu6(x); }
};

class SELU : public Module {
 public:
  [[nodiscard]] Value forward(Value x) override { return selu(x); }
};

class CELU : public Module {
 public:
  explicit CELU(float alpha = 1) : alpha_(alpha) {}
  [[nodiscard]] Value forward(Value x) override { return celu(x, alpha_); }

 private:
  float alpha_;
};

class Mish : public Module {
 public:
  [[nodiscard]] Value forward(Value x) override { return mish(x); }
};

class LogSigmoid : public Module {
 public:
  [[nodiscard]] Value forward(Value x) override { return log_sigmoid(x); }
};

class Softsign : public Module {
 public:
  [[nodiscard]] Value forward(Value x) override { return softsign(x); }
};

class Hardtanh : public Module {
 public:
  explicit Hardtanh(float low = -1, float high = 1) : low_(low), high_(high) {}
  [[nodiscard]] Value forward(Value x) override { return hardtanh(x, low_, high_); }

 private:
  float low_, high_;
};

/// x for x > 0, else weight·x with a trained weight: (1), or (C) for x (N, C, …).
class PReLU : public Module {
 public:
  /// `parameters` is the size of the weight, `first` its initial value. Throws ArgumentError for fewer than 1
  /// parameters.
  explicit PReLU(std::int64_t parameters = 1, float first = 0.25F);
  [[nodiscard]] Value forward(Value x) override;
  [[nodiscard]] const VariablePtr& weight() const { return weight_; }

 private:
  VariablePtr weight_;
};

/// A layer that applies a function along one axis.
template <Value (*function)(Value, std::int64_t)>
class AlongAxis : public Module {
 public:
  explicit AlongAxis(std::int64_t axis = -1) : axis_(axis) {}
  [[nodiscard]] Value forward(Value x) override { return function(x, axis_); }

 private:
  std::int64_t axis_;
};
using Softmax = AlongAxis<softmax>;
using LogSoftmax = AlongAxis<log_softmax>;
using Softmin = AlongAxis<softmin>;
using GLU = AlongAxis<glu>;
using SwiGLU = AlongAxis<swiglu>;

}  // namespace nn
}  // namespace concord
