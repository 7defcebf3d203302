// Sequential: the chain of calls.
#include "concord/nn/sequential.hpp"

namespace concord::nn {

Value Sequential::forward(Value x) {
  for (const Named& named : modules_) x = (*named.module)(x);
  return x;
}

Module::Children Sequential::children() {
  Children children;
  for (const Named& named : modules_) children.push_back({named.name, named.module.get()});
  return children;
}

}  // namespace concord::nn
