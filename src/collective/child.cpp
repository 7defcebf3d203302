// Starting a process with pipes for what it prints, which threads copy.
#include "concord/collective/child.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <functional>
#include <latch>
#include <string_view>
#include <thread>
#include <utility>

#include "concord/collective/descendants.hpp"
#include "concord/core/check.hpp"
#include "concord/core/open_file.hpp"

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

OpenFile make_wake() {
  const int descriptor = ::eventfd(0, EFD_CLOEXEC);
  CONCORD_CHECK(descriptor >= 0, IoError, "no eventfd to end copying by: {}", std::strerror(errno));
  return OpenFile(descriptor);
}

}  // namespace

/// A thread that gives what it reads from a pipe, which it closes at the end, to a function.
class Child::Copier {
 public:
  Copier(int file, std::function<void(std::string_view)> take)
      : file_(file), wake_(make_wake()), take_(std::move(take)), thread_([this] { copy(); }) {}
  Copier(const Copier&) = delete;
  Copier& operator=(const Copier&) = delete;
  ~Copier() {
    end();
    thread_.join();
  }

  /// See Child::end_output.
  void end() {
    constexpr std::uint64_t kOne = 1;
    static_cast<void>(!::write(wake_.get(), &kOne, sizeof kOne));
    drained_.wait();
  }

 private:
  static constexpr std::chrono::milliseconds kNow{0}, kSilence{1000}, kMost{5000};
  static constexpr std::size_t kPipe = std::size_t{64} << 10;  // what may be in a pipe

  void copy() {
    const bool is_open = copy_until_wake() && copy_what_is_there();
    drained_.count_down();
    if (is_open) copy_until_silence();
    take_({});
    ::close(file_);
  }

  /// Returns false at the end of the pipe, as the next one.
  [[nodiscard]] bool copy_until_wake() {
    for (;;) {
      std::array<pollfd, 2> ready{{{file_, POLLIN, 0}, {wake_.get(), POLLIN, 0}}};
      ::poll(ready.data(), ready.size(), -1);
      if (ready[1].revents != 0) return true;
      if (ready[0].revents != 0 && take_some() == 0) return false;
    }
  }
  [[nodiscard]] bool copy_what_is_there() {
    for (std::size_t left = kPipe; left > 0 && is_readable(kNow);) {
      const std::size_t got = take_some();
      if (got == 0) return false;
      left -= std::min(left, got);
    }
    return true;
  }
  void copy_until_silence() {
    const Clock::time_point end = Clock::now() + kMost;
    while (Clock::now() < end && is_readable(kSilence) && take_some() > 0) {
    }
  }

  [[nodiscard]] bool is_readable(std::chrono::milliseconds patience) const {
    pollfd ready{file_, POLLIN, 0};
    int found = 0;
    do {
      found = ::poll(&ready, 1, static_cast<int>(patience.count()));
    } while (found < 0 && errno == EINTR);
    return found > 0;
  }
  /// 0 at the end of the pipe.
  std::size_t take_some() {
    std::array<char, 4096> bytes{};
    ssize_t got = 0;
    do {
      got = ::read(file_, bytes.data(), bytes.size());
    } while (got < 0 && errno == EINTR);
    if (got <= 0) return 0;
    take_({bytes.data(), static_cast<std::size_t>(got)});
    return static_cast<std::size_t>(got);
  }

  int file_;
  OpenFile wake_;
  std::function<void(std::string_view)> take_;
  std::latch drained_{1};
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

Child::Child(ChildStart start, const FirstRank& first) : marks_(start.marks) {
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
      marks_(std::move(other.marks_)),
      status_(other.status_),
      ended_(other.ended_),
      told_(std::move(other.told_)),
      is_cleared_(other.is_cleared_),
      stopped_(other.stopped_),
      output_(std::move(other.output_)) {}

Child::~Child() {
  if (process_ == 0 || status_) return;
  send(SIGKILL);
  ::waitpid(process_, nullptr, 0);
}

bool Child::look() {
  int status = 0;
  if (status_ || ::waitpid(process_, &status, WNOHANG | WUNTRACED | WCONTINUED) != process_) return false;
  stopped_ = WIFSTOPPED(status) ? std::optional<RunningTime>(std::in_place) : std::nullopt;
  if (!WIFEXITED(status) && !WIFSIGNALED(status)) return false;
  status_ = status;
  ended_ = Clock::now();
  return true;
}

std::string Child::how_it_ended() const {
  const int status = *status_;
  if (WIFSIGNALED(status)) {
    return fmt::format("was ended by signal {} ({})", WTERMSIG(status), ::strsignal(WTERMSIG(status)));
  }
  return fmt::format("ended with exit code {}", WEXITSTATUS(status));
}

bool Child::is_stopped_for(std::chrono::duration<double> time) { return stopped_ && stopped_->look() > time; }

void Child::send(int signal) const {
  if (process_ == 0 || status_) return;
  std::vector<pid_t> started;
  if (signal == SIGKILL) started = descendants_of(process_, marks_);
  ::kill(process_, signal);
  for (const pid_t one : started) ::kill(one, signal);
}

bool Child::end_remains(std::chrono::duration<double> patience) {
  constexpr std::chrono::seconds kKilled{1};  // until a killed process is gone
  if (!failed() || is_cleared_) return false;
  const std::vector<pid_t> remains = descendants_of(0, marks_);
  const std::chrono::duration<double> passed = Clock::now() - ended_;
  for (const pid_t one : remains) {
    if (passed > patience) {
      ::kill(one, SIGKILL);
    } else if (std::ranges::find(told_, one) == told_.end()) {
      ::kill(one, SIGTERM);
      told_.push_back(one);
    }
  }
  is_cleared_ = remains.empty() || passed > patience + kKilled;
  return !is_cleared_;
}

void Child::end_output() {
  for (const std::unique_ptr<Copier>& copier : output_) copier->end();
}

}  // namespace concord::collective
