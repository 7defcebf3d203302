// Layout: how a tensor lies in device memory. Code above the backends only compares layouts. Null means dense
// row-major.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "concord/core/export.hpp"

namespace CONCORD_PUBLIC concord {

/// A memory layout of one tensor that a backend defines, for example nChw16c of oneDNN.
class LayoutDescription {
 public:
  virtual ~LayoutDescription() = default;
  [[nodiscard]] virtual std::size_t bytes() const = 0;
  [[nodiscard]] virtual bool equals(const LayoutDescription& other) const = 0;
  /// A name for traces: "nhwc", "nChw16c".
  [[nodiscard]] virtual std::string str() const = 0;
};
using Layout = std::shared_ptr<const LayoutDescription>;

[[nodiscard]] inline bool same_layout(const Layout& a, const Layout& b) { return a == b || (a && b && a->equals(*b)); }

}  // namespace concord
