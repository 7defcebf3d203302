// Whether HDF5 files, which are Keras's, can be read: their reader is a library of its own.
#pragma once

#include "concord/weights/file.hpp"
#include "goldens.hpp"

namespace concord::test {

/// False where libconcord-hdf5.so is not there, which is reported as skipped.
[[nodiscard]] inline bool has_hdf5_reader() {
  try {
    static_cast<void>(weights::File(golden_path("weights/keras.h5")));
    return true;
  } catch (const NotSupported& error) {
    WARN("skipped: " << error.what());
    return false;
  }
}

}  // namespace concord::test
