// A perceptron with one hidden layer of a thousand units, for 28x28 grey images.
#include "concord/models/networks.hpp"
#include "concord/nn/linear.hpp"
#include "concord/nn/sequential.hpp"
#include "concord/nn/stateless.hpp"

namespace concord::models {

Model mlp() {
  return {"mlp",
          "perceptron 784-1000-10",
          Shape{1, 28, 28},
          10,
          795010,
          [](const Variant& variant) -> std::shared_ptr<nn::Module> {
            return std::make_shared<nn::Sequential>(nn::Flatten{}, nn::Linear{784, 1000}, nn::ReLU{},
                                                    nn::Linear{1000, variant.classes});
          }};
}

}  // namespace concord::models
