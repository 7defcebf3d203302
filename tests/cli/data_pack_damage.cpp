// concord data pack: damage is not copied, and what a killed run has left goes away.
#include <fmt/format.h>

#include "cli/pictures.hpp"
#include "cli/process.hpp"

using namespace concord;
using namespace concord::test;

namespace {

Ended pack_quietly(const TemporaryFolder& folder, const std::string& out, const Arguments& more = {}) {
  return run_command(
      with({"data", "pack", "folder:" + (folder / "set").string(), (folder / out).string(), "--quiet"}, more));
}

}  // namespace

TEST_CASE("files that are copied unchanged are decoded first", "[cli]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  for (int i = 0; i < 4; ++i) write_picture(folder, fmt::format("set/{}/{}.png", i % 2, i), 32, 24, 3, i);
  std::string cut = content_of(folder / "set/1/3.png");
  cut.resize(cut.size() - 40);  // its header is whole
  write_file(folder / "set/1/3.png", cut);
  const Ended refused = pack_quietly(folder, "x.tar");
  CHECK(refused.code == 1);
  CHECK_THAT(refused.err, test::contains("3.png") && test::contains("--bad skip leaves them out"));
  CHECK_FALSE(std::filesystem::exists(folder / "x.tar"));
  const Ended skipped = pack_quietly(folder, "x.tar", {"--bad", "skip"});
  CHECK(skipped.code == 0);
  CHECK_THAT(skipped.out, test::contains("3 samples") && test::contains("3 of them copied as they were"));
  const Ended copied = pack_quietly(folder, "y.tar", {"--no-verify"});
  CHECK(copied.code == 0);
  CHECK_THAT(copied.out, test::contains("4 of them copied as they were"));
}

TEST_CASE("packing removes what a killed run has left", "[cli]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  for (int i = 0; i < 2; ++i) write_picture(folder, fmt::format("set/{}/{}.png", i, i), 8, 8, 1, i);
  for (const char* left : {"x-000000.tar.incomplete", "x-000007.tar.incomplete", "other.tar.incomplete"}) {
    write_file(folder / left, "rest");
  }
  std::filesystem::create_directories(folder / "x.lmdb.incomplete");
  write_file(folder / "x.lmdb.incomplete/data.mdb", "rest");
  REQUIRE(pack_quietly(folder, "x-%06d.tar").code == 0);
  CHECK_FALSE(std::filesystem::exists(folder / "x-000000.tar.incomplete"));
  CHECK_FALSE(std::filesystem::exists(folder / "x-000007.tar.incomplete"));
  CHECK(std::filesystem::exists(folder / "other.tar.incomplete"));  // of another set
  REQUIRE(pack_quietly(folder, "x.lmdb").code == 0);
  CHECK_FALSE(std::filesystem::exists(folder / "x.lmdb.incomplete"));
}
