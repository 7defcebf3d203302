// Held: the owned implementation of a movable public object. Using the object after a move throws an error.
#pragma once

#include <memory>
#include <string_view>
#include <utility>

#include "concord/core/export.hpp"

namespace CONCORD_PUBLIC concord {

/// Throws ArgumentError which says that `what` ("a Trainer") was moved from.
[[noreturn]] void refuse_moved(std::string_view what);

/// A std::unique_ptr that checks for null at each use.
template <class T>
class Held {
 public:
  /// `what` names the owner with an article ("a Trainer"). The string must outlive this object.
  explicit Held(const char* what) : what_(what) {}
  Held(const char* what, std::unique_ptr<T> object) : what_(what), object_(std::move(object)) {}
  Held& operator=(std::unique_ptr<T> object) {
    object_ = std::move(object);
    return *this;
  }

  [[nodiscard]] T& operator*() const {
    if (!object_) refuse_moved(what_);
    return *object_;
  }
  [[nodiscard]] T* operator->() const { return &**this; }

 private:
  const char* what_;
  std::unique_ptr<T> object_;
};

}  // namespace concord
