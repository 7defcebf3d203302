// Processes through posix_spawn, the place of the command, and small data for it.
#include "cli/process.hpp"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <thread>

extern char** environ;  // NOLINT(readability-redundant-declaration): POSIX leaves it to the user

namespace concord::test {
namespace {

std::vector<std::string> whole_environment() {
  std::vector<std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) all.emplace_back(*entry);
  return all;
}

/// As it was at the start: Khronos's OpenCL loader cuts the lists of drivers in it to pieces while it reads them.
const std::vector<std::string> first_environment = whole_environment();

std::vector<std::string> joined_environment(const Environment& own) {
  std::vector<std::string> all;
  for (const std::string& entry : first_environment) {
    if (!own.contains(entry.substr(0, entry.find('=')))) all.push_back(entry);
  }
  for (const auto& [name, value] : own) all.push_back(name + "=" + value);
  return all;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> list;
  for (std::string& text : texts) list.push_back(text.data());
  list.push_back(nullptr);
  return list;
}

std::string idx_header(char rank, int items) {
  const auto count = static_cast<unsigned>(items);
  std::string text{'\0', '\0', '\x08', rank, '\0', '\0', static_cast<char>(count >> 8), static_cast<char>(count)};
  if (rank == 3) text += std::string("\0\0\0\x1c\0\0\0\x1c", 8);
  return text;
}

}  // namespace

Process::Process(const std::string& program, const Arguments& arguments, const Environment& environment) {
  std::vector<std::string> words{program};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<std::string> variables = joined_environment(environment);
  std::array<int, 2> pipe_ends{};
  REQUIRE(pipe(pipe_ends.data()) == 0);
  for (const int end : pipe_ends) fcntl(end, F_SETFD, FD_CLOEXEC);
  err_ = pipe_ends[0];
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, (folder_ / "out").c_str(), O_WRONLY | O_CREAT, 0600);
  posix_spawn_file_actions_adddup2(&files, pipe_ends[1], STDERR_FILENO);
  const int failed =
      posix_spawn(&pid_, program.c_str(), &files, nullptr, pointers(words).data(), pointers(variables).data());
  posix_spawn_file_actions_destroy(&files);
  close(pipe_ends[1]);
  INFO(program);
  REQUIRE(failed == 0);
}

Process::~Process() {
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  if (err_ >= 0) close(err_);
}

bool Process::read_error_text() {
  std::array<char, 4096> bytes{};
  ssize_t got = 0;
  do {
    got = read(err_, bytes.data(), bytes.size());
  } while (got < 0 && errno == EINTR);
  if (got > 0) err_text_.append(bytes.data(), static_cast<std::size_t>(got));
  return got > 0;
}

bool Process::wait_for_error_text(std::string_view text) {
  while (!contains(err_text_, text)) {
    if (!read_error_text()) return false;
  }
  return true;
}

void Process::send(int signal) const { REQUIRE(kill(pid_, signal) == 0); }

Ended Process::finish() {
  while (read_error_text()) {
  }
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), content_of(folder_ / "out"), err_text_};
}

bool wait_until(const std::function<bool()>& is_true) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!is_true()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return true;
}

std::string command_path() {
  const char* moved = std::getenv("CONCORD_PROGRAM");
  return moved != nullptr ? moved : CONCORD_PROGRAM;
}

bool command_is_there() {
  if (access(command_path().c_str(), X_OK) == 0) return true;
  WARN("skipped: there is no program " << command_path() << "; build it, or name it in CONCORD_PROGRAM");
  return false;
}

Ended run_command(const Arguments& arguments, const Environment& environment) {
  return Process(command_path(), arguments, environment).finish();
}

Ended run_command_in_shell(const std::string& line, const Arguments& arguments) {
  Arguments all{"-c", line, "sh", command_path()};
  all.insert(all.end(), arguments.begin(), arguments.end());
  return Process("/bin/sh", all).finish();
}

Arguments with(Arguments first, const Arguments& more) {
  first.insert(first.end(), more.begin(), more.end());
  return first;
}

void check_refusal(const Arguments& arguments, int code, const std::vector<std::string>& words) {
  std::string line = "concord";
  for (const std::string& argument : arguments) line += " " + argument;
  INFO(line);
  const Ended ended = run_command(arguments);
  CHECK(ended.code == code);
  CHECK(ended.out.empty());
  for (const std::string& word : words) CHECK_THAT(ended.err, test::contains(word));
}

std::string cheap_device() {
  const auto is_cpu = [](const DevicePtr& device) { return device->info().id == "cpu"; };
  return std::ranges::any_of(devices(), is_cpu) ? "cpu" : devices().front()->info().id;
}

std::string write_digits(const std::filesystem::path& folder, int train, int test) {
  std::filesystem::create_directories(folder);
  const auto write = [&](const std::string& prefix, int samples) {
    std::string images = idx_header(3, samples), labels = idx_header(1, samples);
    for (int i = 0; i < samples; ++i) {
      const int label = i % 10;
      labels += static_cast<char>(label);
      // A bright bar whose place is the label, of a length of its own.
      for (int pixel = 0; pixel < 28 * 28; ++pixel) {
        const bool bright = pixel / 28 / 2 == label && pixel % 28 < 8 + i % 17;
        images += static_cast<char>(bright ? 200 : 10);
      }
    }
    write_file(folder / (prefix + "-images-idx3-ubyte"), images);
    write_file(folder / (prefix + "-labels-idx1-ubyte"), labels);
  };
  write("train", train);
  write("t10k", test);
  return "mnist:" + folder.string();
}

Arguments train(const std::string& data, const Arguments& more) {
  return with({"train", "mlp", "--data", data, "--device", cheap_device(), "--batch", "10"}, more);
}

}  // namespace concord::test
