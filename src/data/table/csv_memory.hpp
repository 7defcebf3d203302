// What a lack of memory for a table becomes. Internal to the module.
#pragma once

#include <filesystem>
#include <new>

#include "concord/core/check.hpp"
#include "concord/core/utf8.hpp"

namespace concord::data {

/// Turns a lack of memory into an error that says what helps.
template <class Work>
auto with_csv_memory(const std::filesystem::path& path, Work&& work) {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    throw OutOfMemory(fmt::format(
        "{}: a table is read as a whole, and there is not enough memory for it. Leave out columns (drop=), or cut it "
        "into several files",
        printable(path.string())));
  }
}

}  // namespace concord::data
