// The program as a child with the request in its environment, and a pipe that tells whether it met it.
#include "compare_program.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "concord/core/error.hpp"

namespace concord::cli {
namespace {

pid_t start(const std::string& program, std::vector<std::string>& arguments) {
  std::string name = program;
  std::vector<char*> words{name.data()};
  for (std::string& argument : arguments) words.push_back(argument.data());
  words.push_back(nullptr);
  pid_t process = 0;
  const int error = ::posix_spawn(&process, program.c_str(), nullptr, nullptr, words.data(), environ);
  if (error != 0) throw Error(fmt::format("{} does not start: {}", program, std::strerror(error)));
  return process;
}

/// Whether a byte comes before its writers are gone.
bool hears(int channel) {
  char byte = 0;
  ssize_t got = 0;
  while ((got = ::read(channel, &byte, 1)) < 0 && errno == EINTR) {
  }
  return got == 1;
}

int status_of(pid_t process) {
  int status = 0;
  while (::waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

}  // namespace

bool is_program(const std::string& model) { return model.find('/') != std::string::npos; }

void compare_program(const std::string& program, std::vector<std::string> arguments, CompareRequest request) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw Error(fmt::format("no pipe: {}", std::strerror(errno)));
  const auto [ours, theirs] = ends;
  ::fcntl(theirs, F_SETFD, 0);  // the program inherits it
  request.name = std::filesystem::path(program).filename().string();
  request.channel = theirs;
  ::setenv(CompareRequest::kVariable, request.text().c_str(), 1);
  const pid_t process = start(program, arguments);
  ::close(theirs);
  const bool met = hears(ours);
  const int status = status_of(process);
  ::close(ours);
  if (WIFSIGNALED(status)) throw Error(fmt::format("{} was ended: {}", program, ::strsignal(WTERMSIG(status))));
  if (!met) {
    throw Error(fmt::format(
        "{} ended, with exit code {}, and trained nothing by Trainer::fit that could be compared. A program with a "
        "training loop of its own calls concord::compare (samples/compare_devices.cpp)",
        program, WEXITSTATUS(status)));
  }
  if (WEXITSTATUS(status) != 0) throw Error(fmt::format("{} ended with exit code {}", program, WEXITSTATUS(status)));
}

}  // namespace concord::cli
