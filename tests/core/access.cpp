// Who may use a file, asked by the user who runs the tests and, where that is root, by nobody.
#include "concord/core/access.hpp"

#include <grp.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "files.hpp"

namespace concord::test {
namespace {

/// Whether the file may be used by somebody who is not root.
bool may_use(const std::filesystem::path& path) {
  if (getuid() != 0) return permission_of(path).ours;
  const pid_t copy = fork();
  if (copy == 0) {
    constexpr unsigned kNobody = 65534;
    if (setgroups(0, nullptr) != 0 || setgid(kNobody) != 0 || setuid(kNobody) != 0) _exit(2);
    _exit(permission_of(path).ours ? 1 : 0);
  }
  int status = 0;
  REQUIRE(waitpid(copy, &status, 0) == copy);
  REQUIRE(WIFEXITED(status));
  REQUIRE(WEXITSTATUS(status) < 2);
  return WEXITSTATUS(status) == 1;
}

}  // namespace

TEST_CASE("the permission of a file is told", "[core]") {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder / "device";
  write_file(path, "");
  const bool is_root = getuid() == 0;
  const auto set = [&](mode_t mode) { REQUIRE(chmod(path.c_str(), mode) == 0); };
  set(0666);
  CHECK(may_use(path));
  for (const mode_t mode : {0444, 0222, 0000}) {
    set(mode);
    CHECK_FALSE(may_use(path));
  }
  CHECK_FALSE(may_use(folder / "missing"));

  // Of the group alone, as device files are.
  const gid_t group = is_root ? 65533 : getegid();
  REQUIRE(chown(path.c_str(), static_cast<uid_t>(-1), group) == 0);
  set(0060);
  CHECK(permission_of(path).of_group == (group != 0));
  set(0040);
  CHECK_FALSE(permission_of(path).of_group);
  if (is_root) {
    CHECK_FALSE(may_use(path));
    CHECK(permission_of(path).group == "65533");
    REQUIRE(chown(path.c_str(), 0, 0) == 0);
    set(0060);
    CHECK_FALSE(permission_of(path).of_group);
    CHECK(permission_of(path).group == "root");
  }
}

}  // namespace concord::test
