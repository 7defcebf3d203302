// Comparing what is written with what is read.
#include "concord/cli/input_files.hpp"

#include <algorithm>
#include <array>
#include <system_error>

#include "concord/cli/data_spec.hpp"
#include "concord/core/check.hpp"
#include "concord/core/error.hpp"
#include "concord/core/text.hpp"
#include "concord/core/utf8.hpp"
#include "concord/data/records/image_names.hpp"

namespace concord::cli {
namespace {

namespace fs = std::filesystem;

/// What folders of samples hold, and the command writes there only by mistake.
bool is_sample(const fs::path& file) {
  constexpr std::array kOthers{".wav", ".flac", ".ogg", ".mp3", ".opus", ".mdb", ".tar", ".gz"};
  const std::string ending = lower(file.extension().string());
  return data::is_image_name(file.string()) || std::ranges::find(kOthers, ending) != kOthers.end();
}

bool is_inside(const fs::path& file, const fs::path& folder) {
  std::error_code error;
  const fs::path inner = fs::weakly_canonical(file, error), outer = fs::weakly_canonical(folder, error);
  return std::ranges::mismatch(outer, inner).in1 == outer.end();
}

}  // namespace

InputFiles& InputFiles::add(const std::string& path) {
  std::error_code error;
  if (!path.empty() && fs::exists(path, error)) paths_.emplace_back(path);
  return *this;
}

InputFiles& InputFiles::add_data(const std::string& text) {
  if (!DataSpec::names_data(text)) return add(text);
  DataSpec spec;
  try {
    spec = DataSpec::parse(text);
  } catch (const ArgumentError&) {
    return *this;  // reading it says what is wrong
  }
  add(spec.path);
  for (const char separator : {',', '+'}) {
    for (const std::string& part : split(spec.path, separator)) add(part);
  }
  for (const auto& [key, value] : spec.options) {
    add(value);
    for (const std::string& part : split(value, ',')) add(part);
  }
  return *this;
}

void InputFiles::require_kept(std::initializer_list<std::pair<std::string_view, std::string>> outputs) const {
  for (const auto& [option, output] : outputs) {
    std::error_code error;
    if (!output.empty() && fs::is_regular_file(output, error)) require_kept(option, output);
  }
}

void InputFiles::require_kept(std::string_view option, const fs::path& output) const {
  for (const fs::path& input : paths_) {
    std::error_code error;
    const bool is_same = fs::equivalent(input, output, error);
    const bool is_in_folder = fs::is_directory(input, error) && is_sample(output) && is_inside(output, input);
    CONCORD_CHECK(!is_same && !is_in_folder, ArgumentError,
                  "{} {} would replace a file that is read{}; give the output another name", option,
                  printable(output.string()), is_same ? "" : " from " + printable(input.string()));
  }
}

}  // namespace concord::cli
