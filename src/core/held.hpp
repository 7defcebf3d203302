// Held: what a movable object of the public face owns. Its use after a move is an error that says so, not a crash.
#pragma once

#include <memory>
#include <string_view>
#include <utility>

#include "concord/core/export.hpp"

namespace CONCORD_PUBLIC concord {

/// Throws ArgumentError: `what` ("a Trainer") was moved from.
[[noreturn]] void refuse_moved(std::string_view what);

/// A std::unique_ptr that is checked where it is used.
template <class T>
class Held {
 public:
  /// `what` names the holder, with an article; it outlives this.
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
