// The VGG networks (Simonyan and Zisserman, "Very Deep Convolutional Networks for Large-Scale Image Recognition", 2015)
// and their forms with batch normalisation.
#include <algorithm>

#include "concord/models/blocks.hpp"
#include "concord/models/networks.hpp"

namespace concord::models {
namespace {

/// 3x3 convolutions of each stage; a stage ends with a pooling.
struct Depths {
  int stages[5];
};
constexpr Depths kVgg11{{1, 1, 2, 2, 2}}, kVgg13{{2, 2, 2, 2, 2}}, kVgg16{{2, 2, 3, 3, 3}}, kVgg19{{2, 2, 4, 4, 4}};

nn::Sequential make_features(const Depths& depths, bool batch_norm) {
  nn::Sequential layers;
  int channels = 3, width = 64;
  for (const int depth : depths.stages) {
    for (int i = 0; i < depth; ++i) {
      layers.push(kaiming(nn::Conv2d{channels, width, 3, {.padding = 1}}));
      if (batch_norm) layers.push(nn::BatchNorm2d{width});
      layers.push(nn::ReLU{});
      channels = width;
    }
    layers.push(nn::MaxPool2d{2});
    width = std::min(2 * width, 512);
  }
  return layers;
}

Model make_vgg(std::string_view name, std::string_view description, const Depths& depths, bool batch_norm,
               std::int64_t parameters) {
  const auto make = [depths, batch_norm](const Variant& variant) -> std::shared_ptr<nn::Module> {
    const float rate = variant.rate(0.5F);
    return std::make_shared<FeaturesAndClassifier>(
        make_features(depths, batch_norm), 7,
        nn::Sequential{normal(nn::Linear{512 * 49, 4096}, 0.01), nn::ReLU{}, nn::Dropout{rate},
                       normal(nn::Linear{4096, 4096}, 0.01), nn::ReLU{}, nn::Dropout{rate},
                       normal(nn::Linear{4096, variant.classes}, 0.01)});
  };
  return {
      name, description, Shape{3, 224, 224}, 1000, parameters, make, batch_norm ? Shape{3, 64, 64} : Shape{3, 32, 32}};
}

}  // namespace

std::vector<Model> vgg() {
  return {make_vgg("vgg11", "VGG, configuration A", kVgg11, false, 132863336),
          make_vgg("vgg11_bn", "VGG, configuration A, with batch norm", kVgg11, true, 132868840),
          make_vgg("vgg13", "VGG, configuration B", kVgg13, false, 133047848),
          make_vgg("vgg13_bn", "VGG, configuration B, with batch norm", kVgg13, true, 133053736),
          make_vgg("vgg16", "VGG, configuration D", kVgg16, false, 138357544),
          make_vgg("vgg16_bn", "VGG, configuration D, with batch norm", kVgg16, true, 138365992),
          make_vgg("vgg19", "VGG, configuration E", kVgg19, false, 143667240),
          make_vgg("vgg19_bn", "VGG, configuration E, with batch norm", kVgg19, true, 143678248)};
}

}  // namespace concord::models
