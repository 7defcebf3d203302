// OpenFile: a descriptor of the system. Internal to the library.
#pragma once

#include <unistd.h>

#include <utility>

namespace concord {

/// Owns the descriptor of a file, a socket or a pipe, and closes it at the end; -1: of none.
class OpenFile {
 public:
  explicit OpenFile(int descriptor = -1) : descriptor_(descriptor) {}
  OpenFile(OpenFile&& other) noexcept : descriptor_(other.release()) {}
  OpenFile& operator=(OpenFile&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~OpenFile() {
    if (is_open()) ::close(descriptor_);
  }

  [[nodiscard]] int get() const { return descriptor_; }
  [[nodiscard]] bool is_open() const { return descriptor_ >= 0; }
  /// The descriptor has another owner from now on.
  [[nodiscard]] int release() { return std::exchange(descriptor_, -1); }

 private:
  int descriptor_;
};

}  // namespace concord
