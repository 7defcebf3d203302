// DCGAN for images of 64x64 (Radford et al., "Unsupervised Representation Learning with Deep Convolutional Generative
// Adversarial Networks", 2016): the generator makes an image in [-1, 1] of 100 numbers, the discriminator gives the
// logit of its being real. They are trained in turns; each alone is trained here as any network.
#include "concord/models/blocks.hpp"
#include "concord/models/networks.hpp"
#include "concord/ops/copy.hpp"

namespace concord::models {
namespace {

constexpr int kWidth = 64;

template <class Layer>
Layer narrow(Layer layer) {
  layer.weight()->init = nn::init::normal(0, 0.02);
  return layer;
}
nn::BatchNorm2d norm(int channels) {
  nn::BatchNorm2d layer{channels};
  layer.weight()->init = nn::init::normal(1, 0.02);
  return layer;
}

std::shared_ptr<nn::Module> named_main(const nn::Sequential& layers) {
  auto net = std::make_shared<nn::Sequential>();
  net->push("main", layers);
  return net;
}

nn::ConvTranspose2d twice_as_large(int in, int out) {
  return narrow(nn::ConvTranspose2d{in, out, 4, {.stride = 2, .padding = 1, .bias = false}});
}

std::shared_ptr<nn::Module> make_generator(const Variant& variant) {
  nn::Sequential main;
  main.push(narrow(nn::ConvTranspose2d{variant.input[0], 8 * kWidth, 4, {.bias = false}}));
  for (int width = 8 * kWidth; width > kWidth; width /= 2) {
    main.push(norm(width)).push(nn::ReLU{}).push(twice_as_large(width, width / 2));
  }
  main.push(norm(kWidth)).push(nn::ReLU{}).push(twice_as_large(kWidth, 3)).push(nn::Tanh{});
  return named_main(main);
}

std::shared_ptr<nn::Module> make_discriminator(const Variant& variant) {
  const nn::Conv2dOptions half{.stride = 2, .padding = 1, .bias = false};
  nn::Sequential main;
  main.push(narrow(nn::Conv2d{variant.input[0], kWidth, 4, half})).push(nn::LeakyReLU{0.2F});
  for (int width = kWidth; width < 8 * kWidth; width *= 2) {
    main.push(narrow(nn::Conv2d{width, 2 * width, 4, half})).push(norm(2 * width)).push(nn::LeakyReLU{0.2F});
  }
  main.push(narrow(nn::Conv2d{8 * kWidth, 1, 4, {.bias = false}})).push(nn::Flatten{});
  return named_main(main);
}

}  // namespace

Model dcgan_generator() {
  return {"dcgan_generator", "images of 64x64 from 100 numbers",
          Shape{100, 1, 1},  0,
          3576704,           make_generator,
          Shape{100, 1, 1},  Task::reconstruction};
}

Model dcgan_discriminator() {
  return {"dcgan_discriminator",
          "whether an image of 64x64 is real",
          Shape{3, 64, 64},
          1,
          2765568,
          make_discriminator,
          Shape{3, 64, 64},
          Task::discrimination};
}

}  // namespace concord::models
