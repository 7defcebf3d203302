// LeNet in the form that Caffe made known, for 28x28 grey images; after LeCun et al., "Gradient-based learning applied
// to document recognition", 1998.
#include "concord/models/networks.hpp"
#include "concord/nn/conv.hpp"
#include "concord/nn/linear.hpp"
#include "concord/nn/pool.hpp"
#include "concord/nn/sequential.hpp"
#include "concord/nn/stateless.hpp"

namespace concord::models {

Model lenet() {
  return {"lenet",
          "two convolutions, two linear layers",
          Shape{1, 28, 28},
          10,
          431080,
          [](const Variant& variant) -> std::shared_ptr<nn::Module> {
            return std::make_shared<nn::Sequential>(
                nn::Conv2d{1, 20, 5}, nn::ReLU{}, nn::MaxPool2d{2},   // (N, 20, 12, 12)
                nn::Conv2d{20, 50, 5}, nn::ReLU{}, nn::MaxPool2d{2},  // (N, 50, 4, 4)
                nn::Flatten{}, nn::Linear{800, 500}, nn::ReLU{}, nn::Linear{500, variant.classes});
          }};
}

}  // namespace concord::models
