// LeNet-5 as published, but for its sparse second convolution and its Gaussian output units (LeCun et al.,
// "Gradient-based learning applied to document recognition", 1998); 28x28 images are padded to the 32x32 of the paper.
#include "concord/models/networks.hpp"
#include "concord/nn/conv.hpp"
#include "concord/nn/linear.hpp"
#include "concord/nn/pool.hpp"
#include "concord/nn/sequential.hpp"
#include "concord/nn/stateless.hpp"

namespace concord::models {

Model lenet5() {
  return {"lenet5",
          "LeNet-5 of 1998: tanh and average pooling",
          Shape{1, 28, 28},
          10,
          61706,
          [](const Variant& variant) -> std::shared_ptr<nn::Module> {
            return std::make_shared<nn::Sequential>(
                nn::Conv2d{1, 6, 5, {.padding = 2}}, nn::Tanh{}, nn::AvgPool2d{2},  // (N, 6, 14, 14)
                nn::Conv2d{6, 16, 5}, nn::Tanh{}, nn::AvgPool2d{2},                 // (N, 16, 5, 5)
                nn::Conv2d{16, 120, 5}, nn::Tanh{}, nn::Flatten{},                  // (N, 120)
                nn::Linear{120, 84}, nn::Tanh{}, nn::Linear{84, variant.classes});
          }};
}

}  // namespace concord::models
