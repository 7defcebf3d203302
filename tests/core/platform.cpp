// Files that appear whole or not at all, what lies in a folder, and the folder of the cache.
#include "concord/core/platform.hpp"

#include <cerrno>
#include <cstdlib>

#include "cli/process.hpp"
#include "concord/core/atomic_file.hpp"
#include "files.hpp"

namespace concord::test {
namespace {

std::size_t files_in(const TemporaryFolder& folder) {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder.path())) ++count;
  return count;
}

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

/// Sets an environment variable for as long as it lives.
class Variable {
 public:
  Variable(std::string name, const char* value) : name_(std::move(name)), before_(environment(name_.c_str())) {
    set(value);
  }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;
  ~Variable() { set(before_ ? before_->c_str() : nullptr); }

 private:
  void set(const char* value) const {
    if (value == nullptr) {
      unsetenv(name_.c_str());
    } else {
      setenv(name_.c_str(), value, 1);
    }
  }
  std::string name_;
  std::optional<std::string> before_;
};

TEST_CASE("a device or a folder is not replaced, and a symbolic link is followed", "[core]") {
  const TemporaryFolder folder;
  CHECK_THROWS_AS(write_file_atomically("/dev/null", bytes_of("x")), IoError);
  CHECK(std::filesystem::is_character_file("/dev/null"));
  CHECK_THROWS_AS(write_file_atomically(folder.path(), bytes_of("x")), IoError);
  const std::filesystem::path file = folder.path() / "file", link = folder.path() / "link";
  write_file_atomically(file, bytes_of("old"));
  std::filesystem::create_symlink(file, link);
  write_file_atomically(link, bytes_of("new"));
  CHECK(std::filesystem::is_symlink(link));
  CHECK(read_file(file) == "new");
}

}  // namespace

TEST_CASE("an atomic file replaces the old one only when it is committed", "[core]") {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder / "weights";
  const std::string old_text = "old", new_text(100'000, 'n');
  write_file_atomically(path, bytes_of(old_text));
  {
    AtomicFile abandoned(path);
    abandoned.write(bytes_of(new_text));
  }
  CHECK(concord::read_file(path) == old_text);
  CHECK(files_in(folder) == 1);
  {
    AtomicFile file(path);
    file.write(bytes_of(new_text));
    file.write(bytes_of(old_text));
    CHECK(concord::read_file(path) == old_text);
    file.commit();
  }
  CHECK(concord::read_file(path) == new_text + old_text);
  CHECK(files_in(folder) == 1);
}

TEST_CASE("a file that cannot be written or read is an IoError with path and reason", "[core]") {
  const TemporaryFolder folder;
  const std::string text = "text";
  CHECK_THROWS_AS(write_file_atomically(folder / "absent" / "file", bytes_of(text)), IoError);
  CHECK_THROWS_WITH(write_file_atomically(folder / "absent" / "file", bytes_of(text)), contains("absent"));
  CHECK_THROWS_WITH(concord::read_file(folder / "nothing"), contains("nothing") && contains("No such file"));
  CHECK_THROWS_AS(concord::read_file(folder.path()), IoError);
  std::filesystem::create_directory(folder / "taken");
  CHECK_THROWS_AS(write_file_atomically(folder / "taken", bytes_of(text)), IoError);
  CHECK(files_in(folder) == 1);
}

TEST_CASE("the cache is where the environment says", "[core]") {
  const Variable own("CONCORD_CACHE_DIR", "/somewhere");
  CHECK(cache_directory() == "/somewhere");
  const Variable none("CONCORD_CACHE_DIR", nullptr);
  const Variable xdg("XDG_CACHE_HOME", "/xdg");
  CHECK(cache_directory() == "/xdg/concord");
  const Variable no_xdg("XDG_CACHE_HOME", "");
  const Variable home("HOME", "/home/somebody");
  CHECK(cache_directory() == "/home/somebody/.cache/concord");
  const Variable no_home("HOME", nullptr);
  CHECK(cache_directory().empty());
  const Variable relative("CONCORD_CACHE_DIR", "some/where");
  CHECK(cache_directory() == std::filesystem::current_path() / "some/where");
}

TEST_CASE("elsewhere", "[.elsewhere]") {
  std::filesystem::current_path("/");
  CHECK(std::filesystem::is_directory(shared_data_directory() / "names"));
}

TEST_CASE("files of the library are found from any folder, however the program was started", "[core]") {
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) {
    WARN("skipped: this system does not name the running program");
    return;
  }
  const std::string name = program.filename().string();
  for (const std::string& start : {"./" + name, "../" + program.parent_path().filename().string() + "/" + name,
                                   "PATH=.:$PATH; " + name, program.string()}) {
    INFO(start);
    Process process("/bin/sh", {"-c", "cd \"$0\"; " + start + " '[.elsewhere]'", program.parent_path().string()});
    const Ended ended = process.finish();
    INFO(ended.out << ended.err);
    CHECK(ended.code == 0);
  }
}

TEST_CASE("the memory of this process and machine is known", "[core]") {
  CHECK(peak_resident_bytes() > 1'000'000);
  CHECK(physical_memory_bytes() > peak_resident_bytes());
}

TEST_CASE("what lies in a folder is listed in order, by paths; nothing where there is no folder to read", "[core]") {
  const TemporaryFolder folder;
  CHECK(paths_in(folder.path()).empty());
  write_file_atomically(folder / "b.json", bytes_of("b"));
  write_file_atomically(folder / "a", bytes_of("a"));
  write_file_atomically(folder / ".hidden", bytes_of("h"));
  std::filesystem::create_directory(folder / "c");
  write_file_atomically(folder / "c" / "inner", bytes_of("i"));
  std::filesystem::create_symlink(folder / "absent", folder / "broken");
  const std::vector<std::filesystem::path> expected{folder / ".hidden", folder / "a", folder / "b.json",
                                                    folder / "broken", folder / "c"};
  CHECK(paths_in(folder.path()) == expected);
  CHECK(paths_in(folder / "c" / "") == std::vector{folder / "c" / "inner"});
  for (const std::filesystem::path& none : {folder / "absent", folder / "a", std::filesystem::path()}) {
    INFO(none);
    CHECK(paths_in(none).empty());
  }
}

TEST_CASE("a file that the host has no memory to open is OutOfMemory, any other an IoError", "[core]") {
  errno = ENOMEM;
  CHECK_THROWS_AS(fail_to_open("there.bin"), OutOfMemory);
  errno = EACCES;
  CHECK_THROWS_WITH(fail_to_open("there.bin"), "cannot open there.bin: Permission denied");
}

}  // namespace concord::test
