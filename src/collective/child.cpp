// Starting a process with pipes for what it prints, which threads copy.
#include "concord/collective/child.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <functional>
#include <span>
#include <string_view>
#include <thread>
#include <utility>

#include "concord/core/check.hpp"

namespace concord::collective {
namespace {

using Clock = std::chrono::steady_clock;

/// A pipe: what is read, and what is written.
std::array<int, 2> make_pipe(int rank) {
  std::array<int, 2> ends{};
  CONCORD_CHECK(::pipe2(ends.data(), O_CLOEXEC) == 0, IoError, "no pipe to rank {}: {}", rank, std::strerror(errno));
  return ends;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> list;
  for (std::string& text : texts) list.push_back(text.data());
  list.push_back(nullptr);
  return list;
}

/// Where a process writes to.
struct Outputs {
  int out, errors;
};

/// Adds the variables of this process but those that are set already: which of two of a name counts depends on who
/// reads.
void inherit_environment(std::vector<std::string>& variables) {
  const std::vector<std::string> own = variables;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view inherited(*entry);
    const std::string_view name = inherited.substr(0, inherited.find('=') + 1);
    const auto has_name = [&](const std::string& variable) { return variable.starts_with(name); };
    if (std::ranges::none_of(own, has_name)) variables.emplace_back(inherited);
  }
}

/// A process with `outputs` has no input.
pid_t start_process(ChildStart start, std::optional<Outputs> outputs) {
  posix_spawn_file_actions_t files{};
  posix_spawn_file_actions_init(&files);
  if (outputs) {
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&files, outputs->out, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&files, outputs->errors, STDERR_FILENO);
  }
  posix_spawnattr_t attributes{};
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  posix_spawnattr_setsigmask(&attributes, &start.blocked);
  inherit_environment(start.variables);
  pid_t process = 0;
  const int error = ::posix_spawnp(&process, start.words[0].c_str(), &files, &attributes, pointers(start.words).data(),
                                   pointers(start.variables).data());
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&attributes);
  CONCORD_CHECK(error == 0, IoError, "{} does not start: {}", start.words[0], std::strerror(error));
  return process;
}

}  // namespace

/// A thread that gives what it reads from a file, which it closes at the end, to a function.
class Child::Copier {
 public:
  Copier(int file, std::function<void(std::string_view)> take)
      : thread_([file, take = std::move(take)] {
          std::array<char, 4096> bytes{};
          for (;;) {
            const ssize_t got = ::read(file, bytes.data(), bytes.size());
            if (got < 0 && errno == EINTR) continue;
            if (got <= 0) break;
            take({bytes.data(), static_cast<std::size_t>(got)});
          }
          take({});
          ::close(file);
        }) {}
  Copier(const Copier&) = delete;
  Copier& operator=(const Copier&) = delete;
  ~Copier() { thread_.join(); }

 private:
  std::thread thread_;
};

namespace {

/// Copies to standard output while the rank is the first.
void copy_of_first(std::string_view text, int rank, const FirstRank& first) {
  if (first != rank) return;
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

/// Copies whole lines to standard error; an empty text is the end.
void copy_lines(std::string_view more, std::string& text, const std::string& prefix) {
  text += more;
  for (std::size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n')) {
    std::fputs((prefix + text.substr(0, end + 1)).c_str(), stderr);
    text.erase(0, end + 1);
  }
  if (more.empty() && !text.empty()) std::fputs((prefix + text + '\n').c_str(), stderr);
}

}  // namespace

Child::Child(ChildStart start, const FirstRank& first) {
  const int rank = start.rank;
  if (rank == 0) {
    process_ = start_process(std::move(start), std::nullopt);
    return;
  }
  const std::array out = make_pipe(rank), errors = make_pipe(rank);
  output_.push_back(
      std::make_unique<Copier>(out[0], [rank, &first](std::string_view text) { copy_of_first(text, rank, first); }));
  output_.push_back(std::make_unique<Copier>(
      errors[0], [prefix = fmt::format("[rank {}] ", rank), text = std::string()](std::string_view more) mutable {
        copy_lines(more, text, prefix);
      }));
  const auto close_ends = [&] {
    ::close(out[1]);
    ::close(errors[1]);
  };
  try {
    process_ = start_process(std::move(start), Outputs{out[1], errors[1]});
  } catch (...) {
    close_ends();  // or the copiers would wait
    throw;
  }
  close_ends();
}

Child::Child(Child&& other) noexcept
    : process_(std::exchange(other.process_, 0)),
      status_(other.status_),
      stopped_(other.stopped_),
      output_(std::move(other.output_)) {}

Child::~Child() {
  if (process_ == 0 || status_) return;
  ::kill(process_, SIGKILL);
  ::waitpid(process_, nullptr, 0);
}

bool Child::look() {
  int status = 0;
  if (status_ || ::waitpid(process_, &status, WNOHANG | WUNTRACED | WCONTINUED) != process_) return false;
  stopped_ = WIFSTOPPED(status) ? std::optional(Clock::now()) : std::nullopt;
  if (!WIFEXITED(status) && !WIFSIGNALED(status)) return false;
  status_ = status;
  return true;
}

std::string Child::how_it_ended() const {
  const int status = *status_;
  if (WIFSIGNALED(status)) {
    return fmt::format("was ended by signal {} ({})", WTERMSIG(status), ::strsignal(WTERMSIG(status)));
  }
  return fmt::format("ended with exit code {}", WEXITSTATUS(status));
}

bool Child::is_stopped_for(std::chrono::duration<double> time) const {
  return stopped_ && Clock::now() - *stopped_ > time;
}

void Child::send(int signal) const {
  if (process_ > 0 && !status_) ::kill(process_, signal);
}

void Child::finish_output() { output_.clear(); }

}  // namespace concord::collective
