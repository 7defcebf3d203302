// U-Net (Ronneberger et al., "U-Net: Convolutional Networks for Biomedical Image Segmentation", 2015), with padded
// convolutions, so that every pixel of the image gets its class.
#include "concord/models/blocks.hpp"
#include "concord/models/networks.hpp"
#include "concord/ops/copy.hpp"

namespace concord::models {
namespace {

constexpr int kLevels = 4, kWidth = 64;

nn::Sequential twice(int in, int out) {
  const nn::Conv2dOptions padded{.padding = 1};
  return nn::Sequential{kaiming(nn::Conv2d{in, out, 3, padded}, nn::init::Fan::in), nn::ReLU{},
                        kaiming(nn::Conv2d{out, out, 3, padded}, nn::init::Fan::in), nn::ReLU{}};
}

/// Down to half the size kLevels times, and up again beside what was there on the way down.
struct UNet : nn::Module {
  std::vector<nn::Sequential> down, up;
  std::vector<nn::ConvTranspose2d> enlarge;
  nn::Conv2d last;
  explicit UNet(const Variant& variant) : last(kWidth, variant.classes, 1) {
    int channels = static_cast<int>(variant.input[0]);
    for (int level = 0; level <= kLevels; ++level) {
      down.push_back(twice(channels, kWidth << level));
      channels = kWidth << level;
    }
    for (int level = kLevels; level-- > 0;) {
      enlarge.push_back(nn::ConvTranspose2d{channels, channels / 2, 2, {.stride = 2}});
      up.push_back(twice(channels, channels / 2));
      channels /= 2;
    }
  }
  Value forward(Value x) override {
    std::vector<Value> passed;
    for (std::size_t level = 0; level < down.size(); ++level) {
      x = down[level](level == 0 ? x : max_pool2d(x, {}));
      passed.push_back(x);
    }
    passed.pop_back();
    for (std::size_t level = 0; level < up.size(); ++level) {
      x = up[level](concat({passed.back(), enlarge[level](x)}, 1));
      passed.pop_back();
    }
    return last(x);
  }
  Children children() override {
    Children children;
    for (std::size_t i = 0; i < down.size(); ++i) children.push_back({"down." + std::to_string(i), &down[i]});
    for (std::size_t i = 0; i < up.size(); ++i) {
      children.push_back({"enlarge." + std::to_string(i), &enlarge[i]});
      children.push_back({"up." + std::to_string(i), &up[i]});
    }
    children.push_back({"last", &last});
    return children;
  }
};

}  // namespace

Model unet() {
  return {"unet",
          "U-Net for two classes of pixels; sizes are multiples of 16",
          Shape{1, 512, 512},
          2,
          31030658,
          [](const Variant& variant) -> std::shared_ptr<nn::Module> { return std::make_shared<UNet>(variant); },
          Shape{1, 32, 32},
          Task::segmentation};
}

}  // namespace concord::models
