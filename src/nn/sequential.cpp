// Sequential: the chain of calls.
#include "concord/nn/sequential.hpp"

namespace concord::nn {

Value Sequential::forward(Value x) {
  for (const auto& module : modules_) x = (*module)(x);
  return x;
}

Module::Children Sequential::children() {
  Children children;
  for (std::size_t i = 0; i < modules_.size(); ++i) children.push_back({std::to_string(i), modules_[i].get()});
  return children;
}

}  // namespace concord::nn
