// Names of functions from the symbol tables of files, which hold the hidden ones, too, that dladdr does not know.
#pragma once

#include <string_view>

namespace concord::faults {

/// The mangled name of the function that an address lies in; empty where its file has no table or nothing there. A
/// file's table is read at the first address in it; later ones allocate nothing.
[[nodiscard]] std::string_view symbol_at(const void* address);

/// Reads the table of the loaded library whose file name holds this.
void read_symbols_of(std::string_view library);

}  // namespace concord::faults
