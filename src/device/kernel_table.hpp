// KernelTable: from the concrete operator type to a backend's prepare function. Both backends keep one.
#pragma once

#include <typeindex>
#include <unordered_map>

#include "concord/core/error.hpp"
#include "concord/device/kernel.hpp"
#include "concord/graph/operator.hpp"

namespace concord {

/// `Backend` is what prepare functions get besides the request. Filled once with `entry<Op>(function)`.
template <class Backend>
class KernelTable {
 public:
  template <class Op>
  using Prepare = PreparedKernel (*)(Backend&, const Op&, const KernelRequest&);

  template <class Op, Prepare<Op> prepare>
  void add() {
    table_[typeid(Op)] = [](Backend& backend, const KernelRequest& request) {
      return prepare(backend, static_cast<const Op&>(*request.op), request);
    };
  }
  /// Throws NotSupported naming the operator when the backend has no kernel for it.
  [[nodiscard]] PreparedKernel prepare(Backend& backend, const KernelRequest& request) const {
    const auto found = table_.find(typeid(*request.op));
    if (found == table_.end()) throw NotSupported("no kernel for operator " + std::string(request.op->name()));
    return found->second(backend, request);
  }

 private:
  std::unordered_map<std::type_index, PreparedKernel (*)(Backend&, const KernelRequest&)> table_;
};

}  // namespace concord
