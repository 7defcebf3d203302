// What `concord data` says: words for a shell, names with control characters, parts that are left, subcommands.
#include <fmt/format.h>

#include "cli/packing.hpp"
#include "cli/pictures.hpp"

using namespace concord;
using namespace concord::test;

namespace {

/// Three pictures of two classes in `name`.
std::string write_set(const TemporaryFolder& folder, const std::string& name) {
  for (int i = 0; i < 3; ++i) write_picture(folder, fmt::format("{}/{}/{}.png", name, i % 2, i), 8, 8, 3, i);
  return "folder:" + (folder / name).string();
}

/// Whether a text has bytes that a terminal acts on.
bool has_controls(const std::string& text) {
  return std::ranges::any_of(text, [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return (byte < 0x20 && c != '\n') || byte == 0x7F;
  });
}

}  // namespace

TEST_CASE("packing prints --data as a shell reads it", "[cli]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  const std::string set = write_set(folder, "set"), root = folder.path().string();
  CHECK(printed_spec(set, (folder / "x.tar").string()) == "tar:" + root + "/x.tar");
  CHECK(printed_spec(set, (folder / "y-%d.tar").string(), {"--shard-samples", "2"}) ==
        "'tar:" + root + "/y-{0..1}.tar'");
  CHECK(printed_spec(set, (folder / "a b.lmdb").string()) == "'lmdb:" + root + "/a b.lmdb'");
  CHECK(printed_spec(set, (folder / "it's.tar").string()) == "'tar:" + root + "/it'\\''s.tar'");
  CHECK(printed_spec(set, (folder / "a\x1b[31m.tar").string()) == "$'tar:" + root + "/a\\x1b[31m.tar'");
  // A shell makes the same words of them.
  for (const char* const out : {"p q;&.tar", "it's too.tar", "$HOME `x`.tar", "tab\there.tar"}) {
    const std::string printed = printed_spec(set, (folder / out).string());
    INFO(printed);
    write_file(folder / "line.sh", fmt::format("exec \"$1\" data check {}\n", printed));
    CHECK(run_command_in_shell(fmt::format("exec bash '{}' \"$1\"", (folder / "line.sh").string()), {}).code == 0);
  }
}

TEST_CASE("a pattern that a shell took apart is told", "[cli]") {
  if (!command_is_there()) return;
  const Arguments words{"tar:x-0.tar", "tar:x-1.tar"};
  for (const Arguments& first :
       {Arguments{"data", "check"}, Arguments{"data", "bench"}, Arguments{"train", "lenet", "--data"}}) {
    check_refusal(with(first, words), 2, {"tar:x-1.tar", "put it in quotes: 'tar:x-{000..001}.tar'"});
  }
  check_refusal(with({"data", "pack"}, words), 2, {"tar:x-1.tar", "put it in quotes: 'tar:x-{000..001}.tar'"});
  check_refusal(with(with({"data", "pack"}, words), {"out.tar"}), 2, {"put it in quotes"});
}

TEST_CASE("packing says which parts are left", "[cli]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  const std::string train = write_set(folder, "train"), val = write_set(folder, "val");
  const std::string spec = train + ",val=" + (folder / "val").string();
  const Ended packed = pack(spec, (folder / "x.tar").string());
  CHECK(packed.code == 0);
  CHECK_THAT(packed.out, test::contains("The validation part is not packed: --part validation packs it"));
  CHECK_THAT(packed.out, !test::contains("test part"));
  const Ended other = pack(spec, (folder / "v.tar").string(), {"--part", "validation"});
  CHECK(other.code == 0);
  CHECK_THAT(other.out, test::contains("The train part is not packed"));
  CHECK_THAT(pack(train, (folder / "w.tar").string()).out, !test::contains("is not packed"));
}

TEST_CASE("pixels of shards stay pixels when they are packed again, unless a form is asked for", "[cli]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  for (const char* const name : {"raw", "again", "database", "png"}) std::filesystem::create_directories(folder / name);
  const std::string raw = packed_spec(write_set(folder, "set"), (folder / "raw/x.tar").string(), {"--raw"});
  static_cast<void>(packed_spec(raw, (folder / "again/x.tar").string()));
  CHECK(content_of(folder / "again/x.tar") == content_of(folder / "raw/x.tar"));
  CHECK_THAT(pack(raw, (folder / "again/x.tar").string(), {"--force"}).out, test::contains("3 of them copied"));
  const std::string database = packed_spec(raw, (folder / "database/x.lmdb").string());
  static_cast<void>(packed_spec(database, (folder / "database/x.tar").string()));
  CHECK(content_of(folder / "database/x.tar") == content_of(folder / "raw/x.tar"));
  static_cast<void>(packed_spec(raw, (folder / "png/x.tar").string(), {"--png"}));
  CHECK_THAT(content_of(folder / "png/x.tar"), test::contains("\x89PNG") && !test::contains("NUMPY"));
}

TEST_CASE("control characters of names do not reach the terminal", "[cli]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  const std::string escape = "\x1b]0;title\x07\x1b[31m";
  for (int i = 0; i < 6; ++i) write_picture(folder, fmt::format("set/a{}/{}.png", i % 2, i), 28, 28, 1, i);
  write_file(folder / fmt::format("set/a0/{}bad.png", escape), "no picture");
  std::string cut = content_of(folder / "set/a1/1.png");
  cut.resize(cut.size() - 40);
  write_file(folder / fmt::format("set/a1/{}cut.png", escape), cut);
  const std::string set = "folder:" + (folder / "set").string();
  const std::vector<Arguments> lines{
      {"train", "lenet", "--data", set, "--device", cheap_device(), "--batch", "2", "--validate", "none", "--bad",
       "skip"},
      {"train", "lenet", "--data", set, "--device", cheap_device(), "--batch", "8", "--validate", "none", "--bad",
       "fail"},
      {"data", "check", set},
      {"data", "pack", set, (folder / "x.tar").string()},
      {"data", "pack", set, (folder / "x.tar").string(), "--bad", "skip"},
      {"data", "pack", set, (folder / fmt::format("{}.tar", escape)).string(), "--bad", "skip"},
      {"data", "pack", set, (folder / fmt::format("{}.tar", escape)).string(), "--bad", "skip"},  // is there already
      {"data", "pack", set, (folder / fmt::format("{}.xyz", escape)).string()}};
  for (const Arguments& line : lines) {
    const Ended ended = run_command(line);
    INFO(line[0] << ' ' << line[1] << ": " << ended.out << ended.err);
    CHECK_FALSE(has_controls(ended.out));
    CHECK_FALSE(has_controls(ended.err));
    CHECK_THAT(ended.out + ended.err, test::contains("\\x1b]0;title\\x07"));
  }
}

TEST_CASE("data bench counts bad samples, not tries", "[cli]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  const std::string set = write_set(folder, "set");
  write_file(folder / "set/0/bad.png", "no picture");
  write_file(folder / "set/1/bad.png", "");
  const Ended ended = run_command(
      {"data", "bench", set, "--image", "8", "--seconds", "0.1", "--batch", "4", "--loader-threads", "2", "--json"});
  INFO(ended.err);
  REQUIRE(ended.code == 0);
  const auto stages = nlohmann::json::parse(ended.out)["stages"];
  REQUIRE(stages.size() == 6);
  for (const auto& stage : stages) {
    INFO(stage.dump());
    CHECK(stage["bad"] == (stage["stage"] == "read" ? 0 : 2));  // a file can be read that is no picture
    CHECK(stage["samples"] > 5);
  }
}

TEST_CASE("a subcommand that is misspelt is suggested", "[cli]") {
  if (!command_is_there()) return;
  check_refusal({"data", "chek", "folder:x"}, 2,
                {"data has no subcommand 'chek'; did you mean check? There are check, pack, bench"});
  check_refusal({"data", "folder:x"}, 2, {"data has no subcommand 'folder:x': check, pack, bench"});
  check_refusal({"trian"}, 2, {"not 'trian'; did you mean train?"});
  check_refusal({"data"}, 2, {"A subcommand is required"});
}
