// The exceptions of Concord. Everything that can go wrong at the public face is one of these.
// A message says what happened, where (network, node, shapes, file offset) and what to do about it.
#pragma once

#include <stdexcept>
#include <string>

#include "concord/core/export.hpp"

namespace CONCORD_PUBLIC concord {

/// Base of every exception that Concord throws.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// No such device, a driver that does not load, a failed driver call.
class DeviceError : public Error {
 public:
  using Error::Error;
};

/// The program needs more device or host memory than there is.
class OutOfMemory : public DeviceError {
 public:
  using DeviceError::DeviceError;
};

/// The device's compiler refuses a kernel, or ends without one; the message has the compiler's words.
class KernelBuildError : public DeviceError {
 public:
  using DeviceError::DeviceError;
};

/// Shapes or types that do not fit together; thrown while a network is built.
class ShapeError : public Error {
 public:
  using Error::Error;
};

/// A damaged, truncated or lying file; the message names the file, byte offset and field.
class FormatError : public Error {
 public:
  using Error::Error;
};

/// A file that cannot be opened, read, written or replaced.
class IoError : public Error {
 public:
  using Error::Error;
};

/// Something Concord or this device cannot do.
class NotSupported : public Error {
 public:
  using Error::Error;
};

/// A value outside its range: batch 0, a negative rate, a label beyond the classes.
class ArgumentError : public Error {
 public:
  using Error::Error;
};

/// A loss or value that is not finite; names the first node that produced it.
class NonFinite : public Error {
 public:
  using Error::Error;
};

}  // namespace concord
