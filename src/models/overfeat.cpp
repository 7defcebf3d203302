// OverFeat, the fast model (Sermanet et al., "OverFeat: Integrated Recognition, Localization and Detection using
// Convolutional Networks", 2014).
#include "concord/models/blocks.hpp"
#include "concord/models/networks.hpp"

namespace concord::models {
namespace {

std::shared_ptr<nn::Module> make_overfeat(const Variant& variant) {
  const float rate = variant.rate(0.5F);
  return std::make_shared<FeaturesAndClassifier>(
      nn::Sequential{nn::Conv2d{3, 96, 11, {.stride = 4}}, nn::ReLU{}, nn::MaxPool2d{2},  // (N, 96, 28, 28)
                     nn::Conv2d{96, 256, 5}, nn::ReLU{}, nn::MaxPool2d{2},                // (N, 256, 12, 12)
                     nn::Conv2d{256, 512, 3, {.padding = 1}}, nn::ReLU{}, nn::Conv2d{512, 1024, 3, {.padding = 1}},
                     nn::ReLU{}, nn::Conv2d{1024, 1024, 3, {.padding = 1}}, nn::ReLU{},
                     nn::MaxPool2d{2}},  // (N, 1024, 6, 6)
      6,
      nn::Sequential{nn::Dropout{rate}, nn::Linear{1024 * 36, 3072}, nn::ReLU{}, nn::Dropout{rate},
                     nn::Linear{3072, 4096}, nn::ReLU{}, nn::Linear{4096, variant.classes}});
}

}  // namespace

Model overfeat() {
  return {"overfeat", "OverFeat, the fast model", Shape{3, 231, 231}, 1000, 145920872, make_overfeat, Shape{3, 71, 71}};
}

}  // namespace concord::models
