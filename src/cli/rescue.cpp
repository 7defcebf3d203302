// The folders are tried in this order: those where files are most likely to stay and to be found come first.
#include "concord/cli/rescue.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <system_error>
#include <vector>

#include "concord/core/error.hpp"
#include "concord/core/platform.hpp"

namespace concord::cli {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> places() {
  std::vector<fs::path> folders;
  std::error_code error;
  if (fs::path temporary = fs::temp_directory_path(error); !error) folders.push_back(std::move(temporary));
  if (const auto home = environment("HOME")) folders.emplace_back(*home);
  if (fs::path here = fs::current_path(error); !error) folders.push_back(std::move(here));
  folders.emplace_back("/dev/shm");
  return folders;
}

/// "net.rescued.safetensors", or with a number if that name is taken.
fs::path free_name(const fs::path& folder, const fs::path& file) {
  const std::string stem = file.stem().string(), ending = file.extension().string();
  fs::path name = folder / (stem + ".rescued" + ending);
  std::error_code error;
  for (int i = 1; fs::exists(name, error); ++i) name = folder / fmt::format("{}.rescued-{}{}", stem, i, ending);
  return name;
}

}  // namespace

void save_somewhere(const std::string& what, const fs::path& file, const std::function<void(const fs::path&)>& save) {
  std::string refusal;
  try {
    return save(file);
  } catch (const IoError& error) {
    refusal = error.what();
  }
  std::vector<std::string> tried;
  for (const fs::path& folder : places()) {
    const fs::path place = free_name(folder, file);
    try {
      save(place);
    } catch (const IoError&) {
      tried.push_back(folder.string());
      continue;
    }
    throw IoError(fmt::format("{}; {} are saved in {} instead; move that file", refusal, what, place.string()));
  }
  throw IoError(
      fmt::format("{}; {} could not be written to {} either, and are lost", refusal, what, fmt::join(tried, ", ")));
}

}  // namespace concord::cli
