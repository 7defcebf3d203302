// What a killed process leaves behind is removed by the next one that writes to the folder, and nothing else is.
#include "concord/core/atomic_file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "concord/core/platform.hpp"
#include "files.hpp"

namespace concord::test {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

std::vector<std::string> names_in(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    names.push_back(entry.path().filename().string());
  std::ranges::sort(names);
  return names;
}

/// A process that has begun to write the file and neither goes on nor ends by itself.
pid_t start_writer(const std::filesystem::path& path) {
  int ready[2];
  REQUIRE(pipe(ready) == 0);
  const pid_t child = fork();
  if (child == 0) {
    AtomicFile file(path);
    file.write(bytes_of("half of"));
    if (write(ready[1], "x", 1) != 1) _exit(1);
    while (true) pause();
  }
  char signal = 0;
  REQUIRE(read(ready[0], &signal, 1) == 1);
  close(ready[0]);
  close(ready[1]);
  return child;
}

void kill_and_wait(pid_t child) {
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}

}  // namespace

TEST_CASE("temporary files of killed processes are removed at the next save", "[core]") {
  const TemporaryFolder folder;
  std::vector<pid_t> children;
  for (const char* name : {"weights", "weights", "weights", "other"}) children.push_back(start_writer(folder / name));
  for (const pid_t child : children) kill_and_wait(child);
  CHECK(names_in(folder.path()).size() == 4);
  write_file_atomically(folder / "weights", bytes_of("whole"));
  CHECK(names_in(folder.path()) == std::vector<std::string>{"weights"});
  CHECK(read_file(folder / "weights") == "whole");
}

TEST_CASE("temporary files of running processes and files of others stay", "[core]") {
  const TemporaryFolder folder;
  const std::vector<std::string> others{"notes.tmp", "weights.1.2.tmp", "weights.concord-1-2.tmp.bak",
                                        "weights.concord-x-2.tmp", "weights.concord-12.tmp"};
  for (const std::string& name : others) write_file(folder / name, "");
  const pid_t child = start_writer(folder / "weights");
  write_file_atomically(folder / "weights", bytes_of("whole"));
  CHECK(names_in(folder.path()).size() == others.size() + 2);
  kill_and_wait(child);
  write_file_atomically(folder / "weights", bytes_of("again"));
  CHECK(names_in(folder.path()).size() == others.size() + 1);
}

/// As a process in a container, where each has the same number, leaves files behind that nobody can lock.
TEST_CASE("names of temporary files that are taken are passed over", "[core]") {
  const TemporaryFolder folder;
  std::string taken;
  {
    const AtomicFile first(folder / "weights");
    taken = names_in(folder.path()).at(0);
  }
  const std::size_t end = taken.rfind(".tmp"), begin = taken.rfind('-', end) + 1;
  const unsigned number = static_cast<unsigned>(std::stoul(taken.substr(begin, end - begin)));
  std::vector<int> locked;
  for (unsigned i = 1; i <= 3; ++i) {
    const std::string name = taken.substr(0, begin) + std::to_string(number + i) + ".tmp";
    locked.push_back(open((folder / name).c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    REQUIRE(locked.back() >= 0);
    REQUIRE(flock(locked.back(), LOCK_EX | LOCK_NB) == 0);
  }
  write_file_atomically(folder / "weights", bytes_of("whole"));
  CHECK(content_of(folder / "weights") == "whole");
  CHECK(names_in(folder.path()).size() == 4);
  for (const int descriptor : locked) close(descriptor);
  write_file_atomically(folder / "weights", bytes_of("again"));
  CHECK(names_in(folder.path()) == std::vector<std::string>{"weights"});
}

TEST_CASE("a file for its owner alone is nobody else's to read", "[core]") {
  const TemporaryFolder folder;
  write_file_atomically(folder / "binary", bytes_of("code"), Durability::cached, Readers::owner);
  CHECK((std::filesystem::status(folder / "binary").permissions() & std::filesystem::perms::mask) ==
        (std::filesystem::perms::owner_read | std::filesystem::perms::owner_write));
}

}  // namespace concord::test
