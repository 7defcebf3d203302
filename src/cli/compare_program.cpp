// The program with the request in its environment, and its answer.
#include "concord/cli/compare_program.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <string_view>

#include "concord/cli/case_network.hpp"
#include "concord/cli/command.hpp"
#include "concord/core/child_process.hpp"
#include "concord/core/error.hpp"

namespace concord::cli {

std::vector<std::string> cut_program_arguments(std::vector<char*>& words) {
  static std::string launch = "launch";
  const auto is = [](std::string_view text) { return [text](const char* word) { return text == word; }; };
  const auto dashes = std::ranges::find_if(words, is("--"));
  const auto takes_program = [&](const char* word) {
    return is("compare")(word) || is(launch)(word) || is("run")(word);
  };
  const auto command = std::find_if(words.begin(), dashes, takes_program);
  if (dashes == words.end() || command == dashes) return {};
  if (is("run")(*command)) *command = launch.data();  // `run -- PROGRAM`
  std::vector<std::string> cut(dashes + 1, words.end());
  words.erase(dashes, words.end());
  return cut;
}

bool is_program(const std::string& model) { return model.find('/') != std::string::npos && !model.ends_with(".onnx"); }

namespace {

/// Throws Error where the program did not answer: `failure` says what it did not do, `advice` what may help.
CompareReply answer_of(const std::string& program, std::vector<std::string> arguments, CompareRequest request,
                       std::string_view failure, std::string_view advice) {
  const auto request_through = [&](int channel) {
    request.channel = channel;
    return fmt::format("{}={}", CompareRequest::kVariable, request.text());
  };
  const auto output = request.outputs.prints_json ? ChildProcess::Output::to_errors : ChildProcess::Output::shared;
  ChildProcess child = ChildProcess::reporting(program, std::move(arguments), request_through, output);
  if (auto reply = CompareReply::read(child.receive_report())) return *std::move(reply);
  const ChildEnd end = child.finish();
  throw Error(fmt::format("{} {}{}. The command compares a training by Trainer::fit{}", program, failure,
                          end.how.empty() ? "" : fmt::format(" and ended: {}", end.how), advice));
}

/// A program may change its folder.
void make_absolute(std::string& file) {
  if (!file.empty()) file = std::filesystem::absolute(file).string();
}

}  // namespace

void require_agreement(const CompareReply& reply) {
  if (reply.is_wrong_use) throw ArgumentError(reply.error);
  if (!reply.error.empty()) throw Error(reply.error);
}

void compare_program(const std::string& program, std::vector<std::string> arguments, CompareRequest request) {
  request.name = std::filesystem::path(program).filename().string();
  request.network = case_program(program, arguments);
  for (std::string* const file :
       {&request.outputs.html_file, &request.outputs.json_file, &request.outputs.case_file, &request.trace_file}) {
    make_absolute(*file);
  }
  const CompareReply reply =
      answer_of(program, std::move(arguments), std::move(request), "compared nothing",
                "; a program with its own training loop calls concord::compare (samples/compare_devices.cpp)");
  std::cout << reply.text;
  require_agreement(reply);
}

CompareReply replay_program(const std::string& program, std::vector<std::string> arguments, std::string case_file,
                            const std::string& device, std::string trace_file) {
  make_absolute(case_file);
  make_absolute(trace_file);
  return answer_of(program, std::move(arguments),
                   {.name = {},
                    .devices = {device},
                    .outputs = {.prints_json = true},
                    .replayed_case = case_file,
                    .trace_file = trace_file},
                   "replayed nothing", "");
}

}  // namespace concord::cli
