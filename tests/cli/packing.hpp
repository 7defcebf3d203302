// `concord data pack` in tests: what it prints for --data, as a shell reads it, and the losses of trainings on that.
#pragma once

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/process.hpp"

namespace concord::test {

[[nodiscard]] inline Ended pack(const std::string& spec, const std::string& out, const Arguments& more = {}) {
  return run_command(with({"data", "pack", spec, out, "--quiet"}, more));
}

/// What packing prints behind --data, as it is printed; fails the test if packing does not end well.
[[nodiscard]] inline std::string printed_spec(const std::string& spec, const std::string& out,
                                              const Arguments& more = {}) {
  const Ended ended = pack(spec, out, more);
  INFO(ended.err);
  REQUIRE(ended.code == 0);
  const std::size_t at = ended.out.find("--data ");
  REQUIRE(at != std::string::npos);
  return ended.out.substr(at + 7, ended.out.size() - at - 8);
}

/// The same without the quotes of the shell.
[[nodiscard]] inline std::string packed_spec(const std::string& spec, const std::string& out,
                                             const Arguments& more = {}) {
  std::string printed = printed_spec(spec, out, more);
  if (printed.starts_with('\'')) printed = printed.substr(1, printed.size() - 2);
  return printed;
}

/// The losses in the log of `concord train MODEL --data SPEC`, of training and validation.
[[nodiscard]] inline std::vector<double> losses_of(const TemporaryFolder& folder, const std::string& model,
                                                   const std::string& spec, const Arguments& more = {}) {
  const std::string log = (folder / "log").string();
  std::filesystem::remove(log);
  const Ended trained =
      run_command(with({"train", model, "--data", spec, "--device", cheap_device(), "--log", log, "--quiet"}, more));
  INFO(spec << "\n" << trained.err);
  REQUIRE(trained.code == 0);
  std::vector<double> losses;
  std::ifstream lines(log);
  for (std::string line; std::getline(lines, line);) {
    const auto event = nlohmann::json::parse(line);
    if (event.contains("loss")) losses.push_back(event["loss"]);
    if (event.contains("validation") && event["validation"].contains("loss")) {
      losses.push_back(event["validation"]["loss"]);
    }
  }
  return losses;
}

}  // namespace concord::test
