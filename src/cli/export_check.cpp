// Comparing an exported file with its network.
#include "concord/cli/export_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <nlohmann/json.hpp>

#include "concord/cli/tensor_files.hpp"
#include "concord/core/atomic_file.hpp"
#include "concord/core/check.hpp"
#include "concord/core/child_process.hpp"
#include "concord/core/json.hpp"
#include "concord/core/platform.hpp"
#include "concord/core/utf8.hpp"
#include "concord/onnx/network.hpp"

namespace concord::cli {
namespace {

namespace fs = std::filesystem;

void compare_output(const Tensor& given, const Tensor& expected, OutputDifference& result) {
  CONCORD_CHECK(given.shape() == expected.shape(), ShapeError, "the output '{}' must be {}, but is {}", result.output,
                expected.shape().str(), given.shape().str());
  const std::vector<double> a = numbers_of(given), b = numbers_of(expected);
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::isfinite(b[i])) result.largest = std::max(result.largest, std::abs(b[i]));
    const bool is_same = a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]));
    if (is_same) continue;
    const double difference = std::abs(a[i] - b[i]);
    result.difference =
        std::isfinite(difference) ? std::max(result.difference, difference) : std::numeric_limits<double>::infinity();
  }
}

std::vector<OutputDifference> compared(const std::vector<NamedTensors>& given,
                                       const std::vector<NamedTensors>& expected) {
  std::vector<OutputDifference> results;
  for (std::size_t run = 0; run < std::min(given.size(), expected.size()); ++run) {
    for (const auto& [name, tensor] : expected[run]) {
      const auto found = given[run].find(name);
      CONCORD_CHECK(found != given[run].end(), FormatError, "the file has no output '{}'", printable(name));
      auto place = std::ranges::find(results, name, &OutputDifference::output);
      if (place == results.end()) place = results.insert(place, OutputDifference{name});
      compare_output(found->second, tensor, *place);
    }
  }
  return results;
}

/// The first python3 of $PATH.
fs::path python() {
  const std::string path = environment("PATH").value_or("/usr/local/bin:/usr/bin:/bin");
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find(':', begin), path.size());
    const fs::path program = fs::path(path.substr(begin, end - begin)) / "python3";
    std::error_code unknown;
    if (program.is_absolute() && fs::is_regular_file(program, unknown)) return program;
    begin = end + 1;
  }
  throw NotSupported("--verify=onnxruntime needs python3 with the packages onnx and onnxruntime; there is no python3");
}

/// A new folder, which goes with all that is in it.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (fs::temp_directory_path() / "concord-export-XXXXXX").string();
    CONCORD_CHECK(::mkdtemp(name.data()) != nullptr, IoError, "cannot create a folder in {}",
                  fs::temp_directory_path().string());
    path_ = name;
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  [[nodiscard]] const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

}  // namespace

double OutputDifference::relative() const {
  if (difference == 0) return 0;
  return largest > 0 ? difference / largest : std::numeric_limits<double>::infinity();
}

std::vector<OutputDifference> differences_by_import(const ExportCase& one, const DevicePtr& device) {
  Session session(onnx::load(one.file), device);
  return compared({session.run(one.inputs)}, {one.expected.front()});
}

std::vector<OutputDifference> differences_by_onnxruntime(const ExportCase& one) {
  const fs::path script = shared_data_directory() / "onnx" / "run.py", program = python();
  CONCORD_CHECK(fs::exists(script), IoError, "{} is missing, which comes with the library", script.string());
  const TemporaryFolder folder;
  nlohmann::json request{
      {"inputs", nlohmann::json::array()}, {"steps", one.expected.size()}, {"feedback", one.feedback}};
  for (const auto& [name, tensor] : one.inputs) {
    const std::string file = fmt::format("input.{}.npy", request["inputs"].size());
    io::write_npy(folder.path() / file, tensor);
    request["inputs"].push_back({{"name", name}, {"file", file}});
  }
  const std::string text = request.dump();
  write_file_atomically(folder.path() / "request.json", std::as_bytes(std::span(text)), Durability::cached);
  ChildProcess process =
      ChildProcess::serving(program, {script.string(), fs::absolute(one.file).string(), folder.path().string()});
  const ChildEnd end = process.finish();
  CONCORD_CHECK(!end.failed && !end.output.empty(), IoError, "{} {} ended with {}", program.string(), script.string(),
                end.how.empty() ? "no answer" : end.how);
  const nlohmann::json answer = parse_json(end.output, "the answer of onnxruntime");
  CONCORD_CHECK(!answer.contains("missing"), NotSupported,
                "--verify=onnxruntime needs python3 with the packages onnx and onnxruntime: {} says: {}",
                program.string(), answer.value("missing", std::string()));
  CONCORD_CHECK(!answer.contains("error"), FormatError, "{}: {}", one.file.string(),
                answer.value("error", std::string()));
  std::vector<NamedTensors> given;
  for (const nlohmann::json& step : answer.at("steps")) {
    NamedTensors& outputs = given.emplace_back();
    for (const nlohmann::json& output : step) {
      outputs[output.at("name").get<std::string>()] =
          io::read_npy(folder.path() / output.at("file").get<std::string>());
    }
  }
  return compared(given, one.expected);
}

}  // namespace concord::cli
