// The functions of libconcord-hdf5.so, which is linked with HDF5 and loaded where a file needs it. Plain C, so that it
// and the library may come from different compilers. Internal to the room and to the folder hdf5.
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {

/// A data set of a file. `element` is its type as safetensors names it, null for one that is no number. Or a group with
/// an attribute "name", which is a text.
struct ConcordHdf5Dataset {
  const char* path;  // "model_weights/conv/kernel:0"
  const char* element;
  const std::int64_t* dims;
  std::size_t rank;
  const char* group_name;  // null for a data set
};

/// A message, cut to fit.
struct ConcordHdf5Error {
  char text[512];
};

using ConcordHdf5Visit = void (*)(void* context, const ConcordHdf5Dataset* dataset);

/// Opens a file, or with `bytes` what was read of one. Null, with an error, where it cannot.
using ConcordHdf5Open = void*(const char* path, const void* bytes, std::size_t count, ConcordHdf5Error* error);
using ConcordHdf5Close = void(void* file);
/// Calls `visit` for every data set whose numbers are in the file: no links to other files, none without storage; and
/// for every group that has a name.
/// Returns 0, or 1 with an error.
using ConcordHdf5List = int(void* file, void* context, ConcordHdf5Visit visit, ConcordHdf5Error* error);
/// Reads a data set of exactly `count` bytes, in the host's byte order.
using ConcordHdf5Read = int(void* file, const char* path, void* bytes, std::size_t count, ConcordHdf5Error* error);
/// Changes with these declarations.
using ConcordHdf5Version = int();
constexpr int kConcordHdf5Version = 2;

}  // extern "C"
