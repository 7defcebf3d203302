// Folders and files that another user may have written are told apart.
#include "concord/core/private_files.hpp"

#include <unistd.h>

#include "concord/core/log.hpp"
#include "files.hpp"
#include "setting.hpp"

namespace concord::test {
namespace {

using std::filesystem::perms;

perms permissions_of(const std::filesystem::path& path) {
  return std::filesystem::status(path).permissions() & perms::mask;
}

}  // namespace

TEST_CASE("a folder of one's own is private, one that others may write to is not", "[core]") {
  const TemporaryFolder folder;
  const auto own = folder / "a" / "b";
  create_private_directories(own);
  CHECK(permissions_of(own) == perms::owner_all);
  CHECK(permissions_of(folder / "a") == perms::owner_all);
  CHECK(foreign_access(own).empty());
  CHECK(foreign_access(folder / "absent").empty());
  CHECK_NOTHROW(create_private_directories(own));
  for (const perms more : {perms::group_write, perms::others_write}) {
    std::filesystem::permissions(own, perms::owner_all | more);
    CHECK_THAT(foreign_access(own), contains("other users may write"));
    std::filesystem::create_directory_symlink(own, folder / "link");
    CHECK_THAT(foreign_access(folder / "link"), contains("other users may write"));
    std::filesystem::remove(folder / "link");
  }
  std::filesystem::permissions(own, perms::owner_all);
  std::filesystem::permissions(folder / "a", perms::all);
  CHECK_THAT(foreign_access(own), contains("everybody may replace"));
  std::filesystem::permissions(folder / "a", perms::all | perms::sticky_bit);
  CHECK(foreign_access(own).empty());
}

TEST_CASE("what belongs to another user is foreign", "[core]") {
  if (geteuid() != 0) {
    WARN("skipped: only root can give files away");
    return;
  }
  const TemporaryFolder folder;
  write_file(folder / "file", "code");
  REQUIRE(chown((folder / "file").c_str(), 12345, 12345) == 0);
  CHECK_THAT(foreign_access(folder / "file"), contains("12345"));
}

TEST_CASE("a cache folder that others may write to is not used, and one warning says so", "[core]") {
  const TemporaryFolder folder;
  const auto cache = folder / "cache";
  create_private_directories(cache);
  const Setting setting("CONCORD_CACHE_DIR", cache.string());
  CHECK(private_cache_directory() == cache);
  std::filesystem::permissions(cache, perms::all);
  std::vector<std::string> warnings;
  set_log([&](LogLevel, std::string_view text) { warnings.emplace_back(text); }, LogLevel::warning);
  CHECK(private_cache_directory().empty());
  CHECK(private_cache_directory().empty());
  set_log({}, LogLevel::warning);
  REQUIRE(warnings.size() == 1);
  CHECK_THAT(warnings[0], contains(cache.string()) && contains("chmod"));
}

}  // namespace concord::test
