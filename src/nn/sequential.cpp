// Sequential: the chain of calls.
#include "concord/nn/sequential.hpp"

#include <algorithm>

#include "concord/core/check.hpp"
#include "concord/core/utf8.hpp"

namespace concord::nn {

void Sequential::check_name(std::string_view name) const {
  check_child_name("a Sequential", name);
  CONCORD_CHECK(std::ranges::find(modules_, name, &Named::name) == modules_.end(), ArgumentError,
                "a Sequential has two children named '{}'; give them different names", printable(name));
}

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
