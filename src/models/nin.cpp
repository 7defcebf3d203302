// Network in Network for large images (Lin et al., "Network In Network", 2014): each convolution is followed by two of
// 1x1, and the mean of a map is the logit of its class.
#include "concord/models/blocks.hpp"
#include "concord/models/networks.hpp"

namespace concord::models {
namespace {

struct Unit {
  int in, out, kernel;
  nn::Pair stride, padding;
};

void push_unit(nn::Sequential& net, const Unit& unit, int last) {
  net.push(nn::Conv2d{unit.in, unit.out, unit.kernel, {.stride = unit.stride, .padding = unit.padding}});
  net.push(nn::ReLU{}).push(nn::Conv2d{unit.out, unit.out, 1}).push(nn::ReLU{});
  net.push(nn::Conv2d{unit.out, last, 1}).push(nn::ReLU{});
}

std::shared_ptr<nn::Module> make_nin(const Variant& variant) {
  const nn::MaxPool2d pool{3, {.stride = 2, .ceil_mode = true}};
  auto net = std::make_shared<nn::Sequential>();
  push_unit(*net, {3, 96, 11, 4, 0}, 96);
  net->push(pool);
  push_unit(*net, {96, 256, 5, 1, 2}, 256);
  net->push(pool);
  push_unit(*net, {256, 384, 3, 1, 1}, 384);
  net->push(pool).push(nn::Dropout{variant.rate(0.5F)});
  push_unit(*net, {384, 1024, 3, 1, 1}, variant.classes);
  net->push(nn::GlobalAvgPool2d{}).push(nn::Flatten{});
  return net;
}

}  // namespace

Model nin() { return {"nin", "Network in Network", Shape{3, 224, 224}, 1000, 7595176, make_nin, Shape{3, 64, 64}}; }

}  // namespace concord::models
