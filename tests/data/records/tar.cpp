// Shards: which files are a sample, the index beside a shard, damage, and names of all kinds.
#include <clocale>
#include <cstring>
#include <thread>

#include "concord/data/records/write_tar.hpp"
#include "data/records/tar_files.hpp"

using namespace concord;
using namespace concord::test;

namespace {

/// The encoding of a locale while it lives.
class CharactersOf {
 public:
  explicit CharactersOf(const char* locale) { REQUIRE(std::setlocale(LC_CTYPE, locale) != nullptr); }
  CharactersOf(const CharactersOf&) = delete;
  CharactersOf& operator=(const CharactersOf&) = delete;
  ~CharactersOf() { std::setlocale(LC_CTYPE, "C"); }
};

}  // namespace

TEST_CASE("a shard: files of one name are a sample", "[data]") {
  const TemporaryFolder folder;
  const WarningsHeard warnings;
  const auto records = open_tar_of(folder, tar_of({{"./dir", "", AE_IFDIR},
                                                   {"./dir/b.JPG", "image b"},
                                                   {"./dir/b.cls", " 3\n"},
                                                   {"./dir/b.txt", "ignored"},
                                                   {"v1.2/a.seg.png", "mask a"},
                                                   {"v1.2/a.json", R"({"class": 1})"},
                                                   {"late.cls", "0"},
                                                   {"v1.2/a.png", std::string(513, 'a')},
                                                   {"late.bmp", ""},
                                                   {"__meta__.json", "{"},
                                                   {"README", "text"},
                                                   {".hidden.jpg", ""},
                                                   {"no_label.jpg", "x"},
                                                   {"no_image.cls", "1"},
                                                   {"both.png", "first"},
                                                   {"both.jpg", "second"},
                                                   {"both.json", R"({"label": 2, "class": 7})"}}));
  CHECK(tar_keys(*records) == std::vector<std::string>{"dir/b", "v1.2/a", "late", "both"});
  CHECK(classes_of(*records) == std::vector<std::int32_t>{3, 1, 0, 2});
  CHECK(records->labels[0].classes == 4);
  CHECK(content_of_row(*records, 0) == "image b");
  CHECK(content_of_row(*records, 1) == std::string(513, 'a'));
  CHECK(content_of_row(*records, 2).empty());
  CHECK(content_of_row(*records, 3) == "first");
  CHECK(records->has_mask());
  std::vector<std::byte> scratch;
  CHECK(text_of(records->read_mask(1, scratch).bytes) == "mask a");
  CHECK_THAT(message_of<FormatError>([&] { (void)records->read_mask(0, scratch); }),
             contains("dir/b: there is no mask"));
  CHECK(warnings.one("1 samples have no image"));
  CHECK(warnings.one("1 samples have no label"));
  CHECK(warnings.one("1 further images of samples are left out, such as"));
  CHECK(warnings.one("3 samples have no mask, such as"));
  CHECK(warnings.all().size() == 4);
}

TEST_CASE("a shard: a name that comes again begins another sample", "[data]") {
  const TemporaryFolder folder;
  const auto records = open_tar_of(
      folder, tar_of({{"a.jpg", "1"}, {"a.cls", "0"}, {"b.jpg", "2"}, {"b.cls", "1"}, {"a.jpg", "3"}, {"a.cls", "1"}}));
  CHECK(tar_keys(*records) == std::vector<std::string>{"a", "b", "a"});
  CHECK(classes_of(*records) == std::vector<std::int32_t>{0, 1, 1});
  CHECK(content_of_row(*records, 2) == "3");
}

TEST_CASE("a shard: labels by name, targets, and labels that cannot be read", "[data]") {
  const TemporaryFolder folder;
  const auto words = open_tar_of(
      folder, tar_of({{"a.jpg", ""}, {"a.cls", "whale"}, {"b.jpg", ""}, {"b.json", R"({"label": "ant"})"}}));
  CHECK(words->class_names == std::vector<std::string>{"ant", "whale"});
  CHECK(classes_of(*words) == std::vector<std::int32_t>{1, 0});
  const auto targets =
      open_tar_of(folder, tar_of({{"a.jpg", ""}, {"a.cls", "0.5"}, {"b.jpg", ""}, {"b.json", R"({"label": 3.0})"}}));
  CHECK(targets->labels[0].values.values<float>()[1] == 3);
  const WarningsHeard warnings;
  const std::vector<TarFile> damaged = {
      {"a.jpg", ""},   {"a.json", "{\"label\": "},       {"b.jpg", ""}, {"b.cls", "\n"},
      {"c.jpg", ""},   {"c.cls", std::string(300, '1')}, {"d.jpg", ""}, {"d.json", R"({"label": [1]})"},
      {"e.jpg", ""},   {"e.json", R"({"width": 3})"},    {"f.jpg", ""}, {"f.cls", "1"},
      {"f.json", "[]"}};
  CHECK(tar_keys(*open_tar_of(folder, tar_of(damaged))) == std::vector<std::string>{"f"});
  CHECK(warnings.one("4 labels cannot be read, such as"));
  CHECK(warnings.one("s.tar: a.json"));
  CHECK(warnings.one("5 samples have no label"));
  CHECK_THAT(refused_tar(tar_of({{"a.jpg", ""}, {"a.cls", "1"}, {"b.jpg", ""}, {"b.cls", "1x"}})),
             contains("s.tar: b: the label \"1x\" is a word, but \"1\" is a whole number (") && contains("s.tar: a)"));
  CHECK_THAT(refused_tar(tar_of({{"a.jpg", ""}, {"a.cls", "-1"}})), contains("the class -1 is negative"));
  CHECK_THAT(message_of<ArgumentError>([&] {
               (void)open_tar_of(folder, tar_of({{"a.jpg", ""}}));
             }),
             contains("there is no sample; a sample is an image and a label of one name"));
}

TEST_CASE("a shard: long and foreign names in every format, under every locale", "[data]") {
  const TemporaryFolder folder;
  const std::string deep = std::string(150, 'd') + "/" + std::string(160, 'k');
  const int format = GENERATE(ARCHIVE_FORMAT_TAR_PAX_INTERCHANGE, ARCHIVE_FORMAT_TAR_GNUTAR);
  const char* const of_writer = GENERATE("C", "C.UTF-8");
  const char* const of_reader = GENERATE("C", "C.UTF-8");
  const std::vector<TarFile> files = {
      {deep + ".jpg", "deep"},    {deep + ".cls", "1"},   {"caf\xC3\xA9.jpg", "cafe"},   {"caf\xC3\xA9.cls", "0"},
      {"latin\xE9.jpg", "latin"}, {"latin\xE9.cls", "0"}, {"two\nlines.jpg", "newline"}, {"two\nlines.cls", "0"}};
  std::string bytes;
  {
    const CharactersOf locale(of_writer);
    bytes = tar_of(files, format);
  }
  const CharactersOf locale(of_reader);
  const auto records = open_tar_of(folder, bytes);
  CHECK(tar_keys(*records) == std::vector<std::string>{deep, "caf\xC3\xA9", "latin\xE9", "two\nlines"});
  CHECK(content_of_row(*records, 0) == "deep");
  CHECK(content_of_row(*records, 1) == "cafe");
  CHECK(content_of_row(*records, 2) == "latin");
  CHECK(content_of_row(*records, 3) == "newline");
}

TEST_CASE("a shard: links, devices and names that lead outside are left out", "[data]") {
  const TemporaryFolder folder;
  const WarningsHeard warnings;
  const auto records = open_tar_of(folder, tar_of({{"a.jpg", "a"},
                                                   {"a.cls", "0"},
                                                   {"b.jpg", "", AE_IFLNK, "a.jpg"},
                                                   {"b.cls", "0"},
                                                   {"c.jpg", "", AE_IFREG, "a.jpg", true},
                                                   {"c.cls", "0"},
                                                   {"d.jpg", "", AE_IFCHR},
                                                   {"../e.jpg", "e"},
                                                   {"../e.cls", "0"},
                                                   {"/f.jpg", "f"},
                                                   {"g/../h.jpg", "g"}}));
  CHECK(tar_keys(*records) == std::vector<std::string>{"a"});
  CHECK(warnings.one("3 links, devices and sparse files are left out, such as"));
  CHECK(warnings.one("4 files whose names begin with / or have .. are left out"));
  CHECK(warnings.one("2 samples have no image"));
}

TEST_CASE("a shard that is cut off or damaged", "[data]") {
  const std::string whole = tar_of({{"a.jpg", std::string(2000, 'a')}, {"a.cls", "0"}}, ARCHIVE_FORMAT_TAR_USTAR);
  CHECK_THAT(refused_tar(whole.substr(0, 1500)), contains("s.tar, byte ") && contains("cut off"));
  CHECK_THAT(refused_tar(whole.substr(0, 300)), contains("cut off"));
  CHECK_THAT(refused_tar(whole.substr(0, 2700)), contains("cut off"));
  CHECK_THAT(refused_tar(""), contains("s.tar: the tar file is empty"));
  CHECK_THAT(refused_tar("\x1F\x8B" + whole), contains("s.tar is compressed") && contains("gunzip"));
  CHECK_THAT(refused_tar(std::string(2048, 'x')), contains("the tar file is damaged"));
  std::string damaged = whole;
  damaged[2560 + 3] = 'X';  // the header of a.cls: its checksum is wrong
  CHECK_THAT(refused_tar(damaged), contains("the tar file is damaged"));
  std::string lying = whole;  // a size beyond the file, with its checksum
  std::memcpy(lying.data() + 124, "77777777777", 11);
  unsigned sum = 0;
  std::memset(lying.data() + 148, ' ', 8);
  for (std::size_t i = 0; i < 512; ++i) sum += static_cast<unsigned char>(lying[i]);
  for (std::size_t i = 0; i < 6; ++i) lying[153 - i] = static_cast<char>('0' + (sum >> (3 * i) & 7));
  lying[154] = '\0';
  CHECK_THAT(refused_tar(lying), contains("cut off"));
  const TemporaryFolder folder;
  const WarningsHeard warnings;
  CHECK(open_tar_of(folder, whole.substr(0, 3584))->size() == 1);
  CHECK(warnings.one("1 shards end without a mark and may be cut off"));
  CHECK(open_tar_of(folder, whole + whole)->size() == 2);  // joined by cat
  CHECK_THAT(message_of<IoError>([&] { (void)data::open_tar({folder / "none.tar"}, {}); }),
             contains("none.tar: No such"));
  CHECK_THAT(message_of<IoError>([&] { (void)data::open_tar({folder.path()}, {}); }), contains("not a regular file"));
}

TEST_CASE("the index of a shard lies beside it and is made again when it is stale", "[data]") {
  const TemporaryFolder folder;
  const std::string first = tar_of({{"a.jpg", "1"}, {"a.cls", "0"}});
  (void)open_tar_of(folder, first);
  const std::string index = content_of(folder / "s.tar.idx");
  REQUIRE(index.starts_with("concord tar index 2\n"));
  const auto keys = [&] { return tar_keys(*data::open_tar({folder / "s.tar"}, {})); };
  CHECK(keys() == std::vector<std::string>{"a"});
  for (std::size_t at = 18; at < index.size(); at += 7) {
    std::string damaged = index;
    damaged[at] = static_cast<char>(damaged[at] ^ 4);
    write_file(folder / "s.tar.idx", damaged);
    CHECK(keys() == std::vector<std::string>{"a"});
    CHECK(content_of(folder / "s.tar.idx") == index);
  }
  write_file(folder / "s.tar.idx", index.substr(0, index.size() / 2));
  CHECK(keys() == std::vector<std::string>{"a"});
  CHECK(content_of(folder / "s.tar.idx") == index);

  write_file(folder / "s.tar", tar_of({{"b.jpg", "1"}, {"b.cls", "0"}, {"c.jpg", "1"}, {"c.cls", "0"}}));
  CHECK(keys() == std::vector<std::string>{"b", "c"});

  const WarningsHeard warnings;
  write_file(folder / "s.tar.idx", "my notes");
  CHECK(keys() == std::vector<std::string>{"b", "c"});
  CHECK(content_of(folder / "s.tar.idx") == "my notes");
  CHECK(warnings.one("the index is none; it is not used, and not replaced"));
}

TEST_CASE("a shard that changes while it is read", "[data]") {
  const TemporaryFolder folder;
  const auto records = open_tar_of(folder, tar_of({{"a.jpg", std::string(3000, '1')}, {"a.cls", "0"}}));
  write_file(folder / "s.tar", tar_of({{"b.jpg", std::string(3000, '2')}, {"b.cls", "0"}}));
  CHECK_THAT(message_of<FormatError>([&] { (void)content_of_row(*records, 0); }),
             contains("s.tar was changed after its samples were indexed"));
  const auto again = data::open_tar({folder / "s.tar"}, {});
  CHECK(content_of_row(*again, 0) == std::string(3000, '2'));
  std::filesystem::resize_file(folder / "s.tar", 1000);
  CHECK_THAT(message_of<FormatError>([&] { (void)content_of_row(*again, 0); }), contains("the shard was changed"));
}

TEST_CASE("more shards than may be open, by several threads", "[data]") {
  const TemporaryFolder folder;
  std::vector<std::filesystem::path> shards;
  for (int i = 0; i < 300; ++i) {
    shards.push_back(folder / ("s" + std::to_string(i) + ".tar"));
    write_file(shards.back(), tar_of({{"x.jpg", "image " + std::to_string(i)}, {"x.cls", std::to_string(i % 10)}}));
  }
  const auto records = data::open_tar(shards, {});
  REQUIRE(records->size() == 300);
  std::vector<int> wrong(4);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < wrong.size(); ++t) {
    threads.emplace_back([&, t] {
      for (std::int64_t i = 0; i < 600; ++i) {
        const std::int64_t row = (i * (7 + 4 * static_cast<std::int64_t>(t))) % 300;
        if (content_of_row(*records, row) != "image " + std::to_string(row)) ++wrong[t];
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == std::vector<int>(4));
  std::size_t open = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code ignored;
    if (std::filesystem::read_symlink(entry.path(), ignored).string().starts_with(folder.path().string())) ++open;
  }
  CHECK(open <= 256);
}

TEST_CASE("the writer of shards: equal samples give equal bytes", "[data]") {
  const TemporaryFolder folder;
  const std::string deep = "cat/" + std::string(300, 'k');
  const auto write = [&](const char* name) {
    data::TarWriter writer(folder / name);
    for (const std::string& key : {std::string("cat/1"), deep, std::string("caf\xC3\xA9"), std::string("latin\xE9")}) {
      writer.add(key, "jpg", bytes_in("image of " + key));
      writer.add(key, "cls", bytes_in("1"));
    }
    writer.finish();
    return content_of(folder / name);
  };
  const std::string bytes = write("a.tar");
  CHECK(write("b.tar") == bytes);
  {
    const CharactersOf locale("C.UTF-8");
    CHECK(write("b.tar") == bytes);
  }
  const auto records = data::open_tar({folder / "a.tar"}, {});
  CHECK(tar_keys(*records) == std::vector<std::string>{"cat/1", deep, "caf\xC3\xA9", "latin\xE9"});
  CHECK(content_of_row(*records, 1) == "image of " + deep);
  data::TarWriter writer(folder / "c.tar");
  for (const char* const key : {"", "/a", "a/", "../a", "a/../b", "a.b", ".a"}) {
    CHECK_THROWS_AS(writer.add(key, "jpg", {}), ArgumentError);
  }
  CHECK_THROWS_AS(writer.add("a", "", {}), ArgumentError);
  CHECK_FALSE(std::filesystem::exists(folder / "c.tar"));
}
