// Kernel sources with their includes resolved.
#include "concord/opencl/program/source.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <filesystem>
#include <set>
#include <span>

#include "concord/core/atomic_file.hpp"
#include "concord/core/check.hpp"
#include "concord/core/debug_options.hpp"
#include "concord/core/platform.hpp"

namespace concord::opencl {
namespace {

std::string text_of(std::string_view name) {
  if (const auto folder = debug_option("kernel_dir")) return read_file(std::filesystem::path(*folder) / name);
  for (const KernelSource& source : kernel_sources()) {
    if (source.name == name) return std::string(source.text);
  }
  throw Error(fmt::format("no kernel source \"{}\" was embedded", name));
}

std::string text_of_members(std::size_t first, std::size_t end, const std::function<std::string(std::size_t)>& text) {
  if (end - first == 1) return text(first);
  const std::size_t middle = (first + end) / 2;
  return fmt::format("if (group < m{}_end) {{ {}}} else {{ {}}} ", middle - 1, text_of_members(first, middle, text),
                     text_of_members(middle, end, text));
}

/// The file that `line` includes, or empty.
std::string_view included_by(std::string_view line) {
  constexpr std::string_view kDirective = "#include \"";
  if (!line.starts_with(kDirective)) return {};
  line.remove_prefix(kDirective.size());
  return line.substr(0, line.find('"'));
}

// Each file is included once, at its first mention.
void append(std::string_view name, std::set<std::string, std::less<>>& seen, std::string& out) {
  if (!seen.emplace(name).second) return;
  const std::string text = text_of(name);
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t end = std::min(rest.find('\n'), rest.size() - 1) + 1;
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(end);
    if (const std::string_view file = included_by(line); !file.empty()) {
      append(file, seen, out);
    } else {
      out += line;
    }
  }
  if (!out.empty() && out.back() != '\n') out += '\n';
}

}  // namespace

std::string kernel_source(std::string_view name) {
  std::set<std::string, std::less<>> seen;
  std::string out;
  append(name, seen, out);
  return out;
}

std::string text_by_group(std::size_t members, const std::function<std::string(std::size_t)>& text) {
  return text_of_members(0, members, text);
}

void keep_source(const std::string& source, const std::string& options) {
  const auto folder = debug_option("source_dir");
  if (!folder) return;
  const std::string text = "// " + options + "\n" + source;
  const auto digest = crc32_z(0, reinterpret_cast<const Bytef*>(text.data()), text.size());
  std::error_code error;
  std::filesystem::create_directories(*folder, error);
  CONCORD_CHECK(!error, IoError, "cannot create {} (CONCORD_DEBUG=source_dir): {}", *folder, error.message());
  const auto path = std::filesystem::path(*folder) / fmt::format("{:08x}-{}.cl", digest, text.size());
  write_file_atomically(path, std::as_bytes(std::span(text)), Durability::cached);
}

}  // namespace concord::opencl
