// The exceptions of Concord: the library reports each error to the user as one of them.
// The message of an exception says what happened, where (network, node, shapes, file offset) and what to do about it.
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

/// The device does not exist, its driver does not load, or a call of the driver failed.
class DeviceError : public Error {
 public:
  using Error::Error;
};

/// The program needs more device or host memory than there is.
class OutOfMemory : public DeviceError {
 public:
  using DeviceError::DeviceError;
};

/// The compiler of the device rejected a kernel or crashed. The message contains the output of the compiler.
class KernelBuildError : public DeviceError {
 public:
  using DeviceError::DeviceError;
};

/// Shapes or types do not match. Thrown while a network is built.
class ShapeError : public Error {
 public:
  using Error::Error;
};

/// A file is damaged, truncated or inconsistent. The message names the file, the byte offset and the field.
class FormatError : public Error {
 public:
  using Error::Error;
};

/// A file cannot be opened, read, written or replaced.
class IoError : public Error {
 public:
  using Error::Error;
};

/// Concord, or this device, does not support the request.
class NotSupported : public Error {
 public:
  using Error::Error;
};

/// Another rank of a training on several devices has ended, has left it, or did not take part within the deadline. The
/// message names the rank. The group of ranks is of no use after it.
class RankLost : public Error {
 public:
  using Error::Error;
};

/// An argument is invalid, for example a batch of 0, a negative learning rate or a label that is not a class.
class ArgumentError : public Error {
 public:
  using Error::Error;
};

/// A loss or another value is NaN or infinite. The message names the first node that produced it.
class NonFinite : public Error {
 public:
  using Error::Error;
};

}  // namespace concord
