// A training whose N-th allocation of host memory fails, for many N: each in a process of its own, forked before
// anything is allocated by the library. Its malloc stands before the C library's, so that operator new and every
// library that is linked get the failures, too.
//   concord_scarce_memory SESSION FIRST STEP LAST [lasting] [here]
// Prints how many allocations the session makes, and a line for each N that ended otherwise than it may; exit code 0
// when there is none.
#include <dlfcn.h>
#include <execinfo.h>
#include <fmt/format.h>
#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <string>

#include "concord/concord.hpp"
#include "faults/symbols.hpp"

extern "C" {
void* __libc_malloc(std::size_t);                 // NOLINT(bugprone-reserved-identifier)
void* __libc_calloc(std::size_t, std::size_t);    // NOLINT(bugprone-reserved-identifier)
void* __libc_realloc(void*, std::size_t);         // NOLINT(bugprone-reserved-identifier)
void* __libc_memalign(std::size_t, std::size_t);  // NOLINT(bugprone-reserved-identifier)
}

namespace {

std::atomic<long> made{0};
std::atomic<long> failing{0};  // 0: none
std::atomic<bool> lasts{false}, armed{false};

/// Whose the failed allocation was. oneDNN 2.6 uses memory without looking whether it got any, and the JSON library's
/// destructors allocate.
volatile bool in_onednn = false, in_json = false;

constexpr const char* kLibrary = "libconcord.so";

void look_who_asked() {
  void* frames[64];
  const int count = ::backtrace(frames, 64);
  for (int i = 0; i < count; ++i) {
    Dl_info info{};
    if (::dladdr(frames[i], &info) == 0 || info.dli_fname == nullptr) continue;
    in_onednn = in_onednn || std::strstr(info.dli_fname, "libdnnl") != nullptr;
    if (std::strstr(info.dli_fname, kLibrary) == nullptr) continue;  // whose table is read
    in_json = in_json || concord::faults::symbol_at(frames[i]).find("nlohmann") != std::string_view::npos;
  }
}

/// Whether the allocation that is asked for now fails.
bool fails() {
  if (!armed.load(std::memory_order_relaxed)) return false;
  const long number = ++made, wanted = failing;
  const bool is_it = wanted > 0 && (number == wanted || (lasts && number > wanted));
  if (is_it) {
    if (number == wanted) {
      armed = false;
      look_who_asked();
      armed = true;
    }
    errno = ENOMEM;
  }
  return is_it;
}

}  // namespace

extern "C" {
void* malloc(std::size_t bytes) { return fails() ? nullptr : __libc_malloc(bytes); }
void* calloc(std::size_t count, std::size_t bytes) { return fails() ? nullptr : __libc_calloc(count, bytes); }
void* realloc(void* old, std::size_t bytes) { return fails() ? nullptr : __libc_realloc(old, bytes); }
void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  return fails() ? nullptr : __libc_memalign(alignment, bytes);
}
void* memalign(std::size_t alignment, std::size_t bytes) {
  return fails() ? nullptr : __libc_memalign(alignment, bytes);
}
int posix_memalign(void** out, std::size_t alignment, std::size_t bytes) {
  void* const got = fails() ? nullptr : __libc_memalign(alignment, bytes);
  if (got == nullptr) return ENOMEM;
  *out = got;
  return 0;
}
}

namespace {

using namespace concord;

/// Whether data, layers and graphs are still being made by hand: std::bad_alloc is no wonder there.
bool by_hand = true;

/// Two steps with batch norm, pooling, dropout and a last batch, streamed by threads, evaluated and saved.
void train() {
  const Dataset data = data::synthetic(Shape{1, 8, 8}, 3, 12, 0);
  Trainer trainer{nn::Sequential{nn::Conv2d{1, 4, 3, {.padding = 1}}, nn::BatchNorm2d{4}, nn::ReLU{}, nn::MaxPool2d{2},
                                 nn::Dropout{0.2F}, nn::Flatten{}, nn::Linear{64, 3}},
                  loss::cross_entropy,
                  optim::Adam{.lr = 0.01},
                  Device::open("cpu"),
                  {.seed = 4, .clip = {.norm = 1}, .resident_fraction = 0}};
  const std::filesystem::path file =
      std::filesystem::temp_directory_path() / fmt::format("concord-scarce-{}.safetensors", ::getpid());
  by_hand = false;
  static_cast<void>(trainer.fit(data, {.epochs = 1, .batch = 8, .validate = data}));
  struct Removed {
    const std::filesystem::path& path;
    ~Removed() { ::unlink(path.c_str()); }
  };
  const Removed removed{file};
  trainer.save(file);
  trainer.load(file);
}

/// A recurrent layer and attention-free text: what the other session has not.
void sequences() {
  Graph graph;
  nn::Sequential net{nn::LSTM{3, 8}, nn::Linear{8, 4}, nn::LayerNorm{4}, nn::Softmax{}};
  const Value y = net(graph.input("x", {DType::f32, Shape{4, 6, 3}}));
  const Value loss = mean(y * y);
  graph.rename(loss, "loss");
  optim::minimize(loss, optim::Sgd{.lr = 0.1});
  Program program = compile(graph, {loss}, std::make_shared<Variables>(Device::open("cpu"), 3));
  program.write("x", Tensor::of(Shape{4, 6, 3}, std::vector<float>(72, 0.5F)));
  for (int i = 0; i < 2; ++i) program.run();
  static_cast<void>(program.read("loss"));
}

enum Ending : int {
  went_on = 0,
  out_of_memory = 40,
  other_error = 41,
  bad_alloc = 42,
  foreign = 43,
  in_callers_code = 44,  // std::bad_alloc outside a public function: what a program of one's own builds by hand
  crash_of_onednn = 45,
  end_of_json = 46
};

extern "C" void on_crash(int signal) {
  look_who_asked();  // where all fail from one on, another one may be what ended the process
  if (in_onednn) ::_exit(crash_of_onednn);
  if (in_json) ::_exit(end_of_json);
  void* frames[64];
  ::backtrace_symbols_fd(frames, ::backtrace(frames, 64), STDERR_FILENO);
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

/// The standard error of the parent; that of a quiet child is silent.
int heard = STDERR_FILENO;

/// A session that waits for ever: where its main thread is. Other programs make a session slow, but not so slow.
constexpr unsigned kLongestSeconds = 60;
extern "C" void on_alarm(int signal) {
  void* frames[64];
  ::backtrace_symbols_fd(frames, ::backtrace(frames, 64), heard);
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

int run(void (*session)(), long number) {
  failing = number;
  armed = true;
  try {
    session();
  } catch (const OutOfMemory&) {
    return out_of_memory;
  } catch (const Error& error) {
    armed = false;
    std::fprintf(stderr, "%ld: %s\n", number, error.what());
    return other_error;
  } catch (const std::bad_alloc&) {
    return by_hand ? in_callers_code : bad_alloc;
  } catch (const std::exception& error) {
    armed = false;
    std::fprintf(stderr, "%ld: %s\n", number, error.what());
    return foreign;
  }
  return went_on;
}

/// How a run with the failing allocation ended; `count` gets how many allocations it made.
int in_child(void (*session)(), long number, long& count, bool is_quiet) {
  int ends[2];
  if (::pipe(ends) != 0) return -1;
  std::fflush(stdout);
  const pid_t child = ::fork();
  if (child == 0) {
    heard = ::dup(STDERR_FILENO);
    std::signal(SIGALRM, on_alarm);
    ::alarm(kLongestSeconds);
    for (const int signal : {SIGSEGV, SIGABRT}) std::signal(signal, on_crash);
    if (is_quiet && std::getenv("CONCORD_SCARCE_LOUD") == nullptr) {
      if (std::freopen("/dev/null", "w", stderr) == nullptr) ::_exit(1);
    }
    const int code = run(session, number);
    const long total = made;
    armed = false;
    static_cast<void>(!::write(ends[1], &total, sizeof total));
    ::_exit(code);
  }
  ::close(ends[1]);
  int status = 0;
  ::waitpid(child, &status, 0);
  if (::read(ends[0], &count, sizeof count) != sizeof count) count = 0;
  ::close(ends[0]);
  return status;
}

std::string text_of(int status) {
  if (WIFSIGNALED(status))
    return fmt::format("ended by the signal {} ({})", WTERMSIG(status), ::strsignal(WTERMSIG(status)));
  switch (WEXITSTATUS(status)) {
    case went_on: return "went on";
    case out_of_memory: return "OutOfMemory";
    case other_error: return "another Error";
    case bad_alloc: return "std::bad_alloc";
    case foreign: return "an exception that is no Error";
    case in_callers_code: return "std::bad_alloc in the caller's own code";
    case end_of_json: return "the JSON library's destructor found no memory";
    case crash_of_onednn: return "oneDNN used memory that it did not get";
    default: return fmt::format("exit code {}", WEXITSTATUS(status));
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) return 2;
  concord::faults::read_symbols_of(kLibrary);
  look_who_asked();  // loads what a look takes
  in_onednn = false;
  in_json = false;
  const std::string name = argv[1];
  void (*const session)() = name == "sequences" ? sequences : train;
  const long first = std::atol(argv[2]), step = std::atol(argv[3]), last = std::atol(argv[4]);
  const auto has = [&](const char* word) {
    return std::any_of(argv + 5, argv + argc, [=](const char* given) { return std::strcmp(given, word) == 0; });
  };
  lasts = has("lasting");
  if (has("here")) return run(session, first);  // in this process, for a debugger
  long total = 0;
  const int whole = in_child(session, 0, total, false);
  fmt::print("{}: {} allocations, {}\n", name, total, text_of(whole));
  if (whole != 0) return 1;
  std::map<std::string, long> endings;
  int wrong = 0;
  for (long n = first; n <= std::min(last, total); n += step) {
    long count = 0;
    const int status = in_child(session, n, count, true);
    ++endings[text_of(status)];
    // GCC's OpenMP ends the process itself where it finds no memory, with exit code 1 and a line that says so.
    constexpr std::array kRight{static_cast<int>(went_on),         static_cast<int>(out_of_memory),
                                static_cast<int>(in_callers_code), static_cast<int>(crash_of_onednn),
                                static_cast<int>(end_of_json),     1};
    const bool is_right = WIFEXITED(status) && std::ranges::find(kRight, WEXITSTATUS(status)) != kRight.end();
    if (is_right) continue;
    ++wrong;
    if (wrong <= 40) fmt::print("  allocation {}: {}\n", n, text_of(status));
  }
  for (const auto& [ending, count] : endings) fmt::print("  {}: {}\n", ending, count);
  return wrong == 0 ? 0 : 1;
}
