// Shared options.
#include "concord/cli/options.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <map>
#include <string_view>
#include <system_error>

#include "concord/core/atomic_file.hpp"
#include "concord/core/check.hpp"
#include "concord/core/platform.hpp"
#include "concord/core/text.hpp"
#include "concord/core/threads.hpp"
#include "concord/core/utf8.hpp"

namespace concord::cli {
namespace {

/// Throws IoError if there is no such folder.
void require_folder_of(const std::string& file) {
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::absolute(file, error).parent_path();
  const std::filesystem::file_type type = std::filesystem::status(folder, error).type();
  CONCORD_CHECK(type != std::filesystem::file_type::none, IoError, "{} cannot be written: {}: {}", printable(file),
                printable(folder.string()), error.message());
  CONCORD_CHECK(type == std::filesystem::file_type::directory, IoError, "{} cannot be written: there is no folder {}",
                printable(file), printable(folder.string()));
}

}  // namespace

void require_appendable(const std::string& file) {
  if (file.empty()) return;
  require_folder_of(file);
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(file, error);
  if (!std::filesystem::exists(status)) return static_cast<void>(AtomicFile(file));
  CONCORD_CHECK(!std::filesystem::is_directory(status), IoError, "{} cannot be written: it is a folder",
                printable(file));
  if (!std::filesystem::is_regular_file(status)) return;
  CONCORD_CHECK(std::ofstream(file, std::ios::app).is_open(), IoError, "{} cannot be written: {}", printable(file),
                std::generic_category().message(errno));
}

void require_safetensors_name(std::string_view option, const std::string& file) {
  constexpr std::array kOthers{".pt", ".pth", ".bin", ".h5", ".hdf5", ".keras", ".onnx", ".caffemodel", ".npz"};
  const std::string ending = lower(std::filesystem::path(file).extension().string());
  CONCORD_CHECK(std::ranges::find(kOthers, ending) == kOthers.end(), ArgumentError,
                "{} {}: weights are written as safetensors, and {} is the ending of another format", option,
                printable(file), ending);
}

void require_writable(const std::string& file) {
  CONCORD_CHECK(file != "-", ArgumentError, "'-' is not a file here; use ./- for a file with this name");
  if (file.empty()) return;
  require_folder_of(file);
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(file, error);
  CONCORD_CHECK(status.type() != std::filesystem::file_type::none, IoError, "{} cannot be written: {}", printable(file),
                error.message());
  CONCORD_CHECK(!std::filesystem::exists(status) || std::filesystem::is_regular_file(status), IoError,
                "{} cannot be written: it is not a regular file", printable(file));
  const AtomicFile probe(file);
}

void require_different(std::initializer_list<std::pair<std::string_view, std::string>> files) {
  std::map<std::filesystem::path, std::string_view> options;
  for (const auto& [option, file] : files) {
    std::error_code error;
    const std::filesystem::file_status status = std::filesystem::status(file, error);
    if (file.empty() || (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status))) continue;
    const auto [first, is_new] =
        options.emplace(std::filesystem::weakly_canonical(std::filesystem::absolute(file), error), option);
    CONCORD_CHECK(is_new, ArgumentError, "{} and {} would both write {}", first->second, option, printable(file));
  }
}

void PermitOption::add(CLI::App& command) {
  command
      .add_option(
          "--permit", patterns,
          "Differences between the weights and the network: missing=PATTERN for tensors that the file lacks or "
          "has in another shape, which keep their first values; extra=PATTERN for tensors that the network lacks; "
          "several with commas: missing=fc.*,extra=head.*")
      ->delimiter(',')
      ->allow_extra_args(false);
}

io::LoadOptions PermitOption::get() const {
  io::LoadOptions options;
  for (const std::string_view text : patterns) {
    const std::size_t sign = text.find('=');
    const std::string_view kind = text.substr(0, sign);
    const bool is_right =
        sign != std::string_view::npos && sign + 1 < text.size() && (kind == "missing" || kind == "extra");
    CONCORD_CHECK(is_right, ArgumentError, "--permit {}: expected missing=PATTERN or extra=PATTERN", text);
    (kind == "missing" ? options.permit_missing : options.permit_extra).emplace_back(text.substr(sign + 1));
  }
  return options;
}

void PermitOption::require_weights(const std::string& weights) const {
  CONCORD_CHECK(!weights.empty() || patterns.empty(), ArgumentError, "--permit needs --weights");
}

void SavedModelOptions::add(CLI::App& command) {
  command.add_option("--weights", weights, "Weights or checkpoint: safetensors, PyTorch, Keras or Caffe")
      ->check(file_name());
  permit.add(command);
  data.add(command, command.add_option("--data", data.text, kDataHelp));
  split_option = command.add_option("--split", split, "The part of the data")
                     ->capture_default_str()
                     ->check(one_of({"train", "validation", "test"}));
}

Shape sample_shape(const std::string& text, const models::Model& model) {
  if (text.empty()) return published_sample(model);
  std::vector<std::int64_t> dims;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (true) {
    std::int64_t size = 0;
    const auto [rest, error] = std::from_chars(at, end, size);
    if (error != std::errc{} || size < 1 || (rest != end && *rest != 'x')) {
      throw ArgumentError(fmt::format("--input {}: expected sizes such as 3x224x224", text));
    }
    dims.push_back(size);
    if (rest == end) return Shape(dims);
    at = rest + 1;
  }
}

std::string sample_text(const Shape& sample) { return fmt::format("{}", fmt::join(sample.dims(), "x")); }

void MemoryBudgetOption::add(CLI::App& command) {
  command
      .add_option("--memory-budget", text,
                  "Most memory for values and workspaces of a training step, without weights and data: 800MiB, 1.5GiB. "
                  "Values that do not fit are computed again instead of kept")
      ->check(number_of_bytes());
}

std::size_t MemoryBudgetOption::bytes() const { return text.empty() ? 0 : parse_bytes(text); }

void PrecisionOption::add(CLI::App& command) {
  command
      .add_option("--precision", name,
                  "Lets the device round factors of matrix multiplications, and with 16 bits also values between "
                  "operators, to this precision where it has matrix cores for it")
      ->capture_default_str()
      ->check(one_of({"fp32", "tf32", "bf16", "fp16"}));
}

void PrecisionOption::warn_of(const DeviceInfo& device) const {
  if (std::ranges::find(device.precisions, name) != device.precisions.end()) return;
  const bool is_opencl = device.backend == "opencl";
  log(LogLevel::warning,
      fmt::format("--precision {}: {} ({}) has no matrix cores for it; {}", name, device.name, device.id,
                  is_opencl ? "matrix multiplications use fp32"
                            : "matrix multiplications use fp32, unless oneDNN is faster with it"));
}

void TraceOption::add(CLI::App& command) {
  command
      .add_option("--trace", file,
                  "Write a timeline of kernels, copies and the host to this file, for https://ui.perfetto.dev")
      ->check(file_name());
}

void TraceOption::around(const InputFiles& inputs, const std::function<void()>& work, int rank) const {
  std::filesystem::path own = file;
  if (!file.empty() && rank > 0) {
    own.replace_filename(fmt::format("{}.rank{}{}", own.stem().string(), rank, own.extension().string()));
  }
  inputs.require_kept({{"--trace", own.string()}});
  require_writable(own.string());
  timeline::record(own, work);
}

void add_threads(CLI::App& command) {
  command
      .add_option_function<int>(
          "--threads", [](const int& threads) { set_num_threads(threads); },
          "Number of host threads [$CONCORD_NUM_THREADS, else $OMP_NUM_THREADS, else the processors that the process "
          "may use]")
      ->check(whole(1, 4096));
}

void DeviceOption::add(CLI::App& command) {
  add_threads(command);
  command.add_option("--device", selector, "auto, cpu, opencl, opencl:1, opencl:nvidia … [$CONCORD_DEVICE, else auto]")
      ->check(device_selector());
}

}  // namespace concord::cli
