// The tables are those of ELF: .symtab of a file that was not stripped.
#include "faults/symbols.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

namespace concord::faults {
namespace {

struct Symbol {
  std::uintptr_t begin, end;  // from where the file is loaded
  std::string_view name;
};
using Symbols = std::vector<Symbol>;

/// The whole file for the rest of the process, or nothing.
std::span<const char> mapped(const char* path) {
  const int file = ::open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return {};
  struct stat about {};
  void* place = MAP_FAILED;
  if (::fstat(file, &about) == 0 && about.st_size > 0) {
    place = ::mmap(nullptr, static_cast<std::size_t>(about.st_size), PROT_READ, MAP_PRIVATE, file, 0);
  }
  ::close(file);
  if (place == MAP_FAILED) return {};
  return {static_cast<const char*>(place), static_cast<std::size_t>(about.st_size)};
}

template <class T>
std::span<const T> entries(std::span<const char> file, std::size_t offset, std::size_t bytes) {
  return {reinterpret_cast<const T*>(file.data() + offset), bytes / sizeof(T)};
}

/// Where the file's first loaded byte belongs, by its own count: 0 but for programs at a fixed address.
std::uintptr_t first_address(std::span<const char> file, const ElfW(Ehdr) & header) {
  for (const auto& part : entries<ElfW(Phdr)>(file, header.e_phoff, header.e_phnum * sizeof(ElfW(Phdr)))) {
    if (part.p_type == PT_LOAD) return part.p_vaddr - part.p_offset;
  }
  return 0;
}

Symbols symbols_of(const char* path) {
  const std::span<const char> file = mapped(path);
  if (file.size() < sizeof(ElfW(Ehdr)) || !std::equal(ELFMAG, ELFMAG + SELFMAG, file.data())) return {};
  const auto& header = *reinterpret_cast<const ElfW(Ehdr)*>(file.data());
  const auto sections = entries<ElfW(Shdr)>(file, header.e_shoff, header.e_shnum * sizeof(ElfW(Shdr)));
  const std::uintptr_t first = first_address(file, header);
  Symbols symbols;
  for (const auto& section : sections) {
    if (section.sh_type != SHT_SYMTAB) continue;
    const char* const names = file.data() + sections[section.sh_link].sh_offset;
    for (const auto& entry : entries<ElfW(Sym)>(file, section.sh_offset, section.sh_size)) {
      if ((entry.st_info & 0xf) != STT_FUNC || entry.st_shndx == SHN_UNDEF) continue;
      symbols.push_back({entry.st_value - first, entry.st_value - first + entry.st_size, names + entry.st_name});
    }
  }
  std::ranges::sort(symbols, {}, &Symbol::begin);
  return symbols;
}

bool is_program(const void* base) {
  Dl_info program{};
  return ::dladdr(reinterpret_cast<const void*>(::getauxval(AT_PHDR)), &program) != 0 && program.dli_fbase == base;
}

}  // namespace

std::string_view symbol_at(const void* address) {
  static std::map<const void*, Symbols> known;  // by where a file is loaded
  Dl_info found{};
  if (::dladdr(address, &found) == 0) return {};
  auto file = known.find(found.dli_fbase);
  if (file == known.end()) {
    const char* const path = is_program(found.dli_fbase) ? "/proc/self/exe" : found.dli_fname;
    file = known.emplace(found.dli_fbase, symbols_of(path)).first;
  }
  const auto place = reinterpret_cast<std::uintptr_t>(address) - reinterpret_cast<std::uintptr_t>(found.dli_fbase);
  const auto after = std::ranges::upper_bound(file->second, place, {}, &Symbol::begin);
  if (after == file->second.begin() || place > std::prev(after)->end) return {};
  return std::prev(after)->name;
}

void read_symbols_of(std::string_view library) {
  ::dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* name) {
        if (std::string_view(info->dlpi_name).find(*static_cast<std::string_view*>(name)) == std::string_view::npos)
          return 0;
        static_cast<void>(symbol_at(info->dlpi_phdr));
        return 1;
      },
      &library);
}

}  // namespace concord::faults
