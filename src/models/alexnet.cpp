// AlexNet in the form for one device (Krizhevsky, "One weird trick for parallelizing convolutional neural networks",
// 2014), as torchvision has it.
#include "concord/models/blocks.hpp"
#include "concord/models/networks.hpp"

namespace concord::models {
namespace {

std::shared_ptr<nn::Module> make_alexnet(const Variant& variant) {
  const nn::MaxPool2d pool{3, {.stride = 2}};
  const nn::Dropout dropout{variant.rate(0.5F)};
  return std::make_shared<FeaturesAndClassifier>(
      nn::Sequential{nn::Conv2d{3, 64, 11, {.stride = 4, .padding = 2}}, nn::ReLU{}, nn::MaxPool2d{pool},
                     nn::Conv2d{64, 192, 5, {.padding = 2}}, nn::ReLU{}, nn::MaxPool2d{pool},
                     nn::Conv2d{192, 384, 3, {.padding = 1}}, nn::ReLU{}, nn::Conv2d{384, 256, 3, {.padding = 1}},
                     nn::ReLU{}, nn::Conv2d{256, 256, 3, {.padding = 1}}, nn::ReLU{}, nn::MaxPool2d{pool}},
      6,
      nn::Sequential{nn::Dropout{dropout}, nn::Linear{256 * 36, 4096}, nn::ReLU{}, nn::Dropout{dropout},
                     nn::Linear{4096, 4096}, nn::ReLU{}, nn::Linear{4096, variant.classes}});
}

}  // namespace

Model alexnet() {
  return {"alexnet", "AlexNet for one device", Shape{3, 224, 224}, 1000, 61100840, make_alexnet, Shape{3, 63, 63}};
}

}  // namespace concord::models
