// LMDB databases of Caffe's Datum: encoded and raw images, what is refused, and damage at every page.
#include "concord/data/records/lmdb.hpp"

#include <lmdb.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "concord/data/records/datum.hpp"
#include "concord/data/records/open.hpp"
#include "concord/data/records/write_lmdb.hpp"
#include "data/records/records_test.hpp"

using namespace concord;
using namespace concord::test;

namespace {

struct KeyedValue {
  std::string key, value;
};

void write_database(const std::filesystem::path& folder, const std::vector<KeyedValue>& values) {
  data::LmdbWriter writer(folder);
  for (const auto& [key, value] : values) writer.add(key, bytes_in(value));
  writer.finish();
}

std::string encoded(std::string_view file, int label) { return data::datum_of(bytes_in(file), label); }

/// Opens a database of one value, "k", and gives the message of its refusal.
template <class ErrorClass>
std::string refused_value(const std::string& value, const data::RecordOptions& options = {}) {
  const TemporaryFolder folder;
  write_database(folder / "db", {{"k", value}});
  return message_of<ErrorClass>([&] { (void)data::open_lmdb(folder / "db", options); });
}

template <class ErrorClass>
std::string refused_file(const std::string& bytes) {
  const TemporaryFolder folder;
  write_file(folder / "data.mdb", bytes);
  return message_of<ErrorClass>([&] { (void)data::open_lmdb(folder / "data.mdb", {}); });
}

/// A database with values of all sizes and some levels of pages, as a file.
std::string deep_database() {
  static const std::string bytes = [] {
    const TemporaryFolder folder;
    std::vector<KeyedValue> values;
    for (int i = 0; i < 400; ++i) {
      values.push_back(
          {std::string(100, 'k') + std::to_string(1000 + i), encoded(std::string(i % 50 == 0 ? 9000 : 30, 'x'), 1)});
    }
    write_database(folder / "db", values);
    return content_of(folder / "db/data.mdb");
  }();
  return bytes;
}

}  // namespace

TEST_CASE("an LMDB database: encoded and raw images in the order of keys", "[data]") {
  const TemporaryFolder folder;
  const std::string pixels = "RrGgBb", large(100'000, 'L');
  write_database(folder / "db",
                 {{"00000002_c", data::datum_of({.channels = 3, .height = 1, .width = 2}, bytes_in(pixels), 1)},
                  {"00000001_b", encoded(large, 2)},
                  {"00000000_a", encoded("small", 0)},
                  {"00000003_d", data::datum_of({.channels = 1, .height = 3, .width = 2}, bytes_in(pixels), 1)}});
  const std::filesystem::path path = GENERATE("db", "db/data.mdb");
  const auto records = data::open_lmdb(folder.path() / path, {});
  REQUIRE(records->size() == 4);
  CHECK(classes_of(*records) == std::vector<std::int32_t>{0, 2, 1, 1});
  CHECK(records->labels[0].classes == 3);
  CHECK(records->class_names.empty());
  CHECK(records->name_of(1).ends_with("db/data.mdb: 00000001_b"));
  CHECK(content_of_row(*records, 0) == "small");
  CHECK(content_of_row(*records, 1) == large);
  std::vector<std::byte> scratch;
  const data::Record colour = records->read(2, scratch);
  CHECK(text_of(colour.bytes) == "BbGgRr");
  REQUIRE(colour.raw.has_value());
  CHECK(colour.raw->channels == 3);
  CHECK(colour.raw->height == 1);
  CHECK(colour.raw->width == 2);
  CHECK(colour.raw->is_blue_first);
  const data::Record grey = records->read(3, scratch);
  CHECK(text_of(grey.bytes) == pixels);
  CHECK(grey.raw->height == 3);
  CHECK_FALSE(grey.raw->is_blue_first);
  CHECK_FALSE(records->read(0, scratch).raw.has_value());
  CHECK_FALSE(std::filesystem::exists(folder / "db/lock.mdb"));
}

TEST_CASE("an LMDB database with many pages is read as liblmdb reads it", "[data]") {
  const TemporaryFolder folder;
  std::vector<KeyedValue> values;
  for (int i = 0; i < 3000; ++i) {
    const std::string key = std::to_string(i * 7919 % 3000) + std::string(static_cast<std::size_t>(i % 90), 'k');
    values.push_back(
        {key,
         encoded(std::string(static_cast<std::size_t>(1 + i * i % 5000), static_cast<char>('a' + i % 26)), i % 10)});
  }
  write_database(folder / "db", values);
  const auto records = data::open_lmdb(folder / "db", {});
  MDB_env* environment = nullptr;
  MDB_txn* transaction = nullptr;
  MDB_cursor* cursor = nullptr;
  MDB_dbi database{};
  REQUIRE(mdb_env_create(&environment) == 0);
  REQUIRE(mdb_env_open(environment, (folder / "db").c_str(), MDB_RDONLY | MDB_NOLOCK, 0) == 0);
  REQUIRE(mdb_txn_begin(environment, nullptr, MDB_RDONLY, &transaction) == 0);
  REQUIRE(mdb_dbi_open(transaction, nullptr, 0, &database) == 0);
  REQUIRE(mdb_cursor_open(transaction, database, &cursor) == 0);
  MDB_val key{}, value{};
  std::int64_t row = 0, wrong = 0;
  while (mdb_cursor_get(cursor, &key, &value, MDB_NEXT) == 0) {
    const std::string_view name(static_cast<const char*>(key.mv_data), key.mv_size);
    const std::string_view datum(static_cast<const char*>(value.mv_data), value.mv_size);
    const int label = classes_of(*records)[static_cast<std::size_t>(row)];
    if (!records->name_of(row).ends_with(": " + std::string(name)) ||
        encoded(content_of_row(*records, row), label) != datum) {
      ++wrong;
    }
    ++row;
  }
  mdb_cursor_close(cursor);
  mdb_txn_abort(transaction);
  mdb_env_close(environment);
  CHECK(row == 3000);
  CHECK(records->size() == row);
  CHECK(wrong == 0);
}

TEST_CASE("an LMDB database: values that are no images with labels", "[data]") {
  const std::string good = encoded("file", 1);
  CHECK_THAT(refused_value<NotSupported>(std::string("\x08\x01\x10\x01\x18\x01\x35\0\0\0\0\x28\x01", 13)),
             contains("k has float_data"));
  CHECK_THAT(refused_value<NotSupported>(std::string("\x32\x04\0\0\0\0\x28\x01", 8)), contains("k has float_data"));
  CHECK_THAT(refused_value<FormatError>(encoded("file", -1)), contains("k has the label -1"));
  CHECK_THAT(refused_value<ArgumentError>(encoded("file", 2), {.class_names = {"a", "b"}}),
             contains("the label 2, which is not one of the 2 classes"));
  const TemporaryFolder folder;
  write_database(folder / "db", {{"0", good},
                                 {"1", good.substr(0, 3)},
                                 {"2", ""},
                                 {"3", std::string("\x22\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01", 11)},
                                 {"4", std::string("\x28\x01", 2)},
                                 {"5", std::string(12, '\xFF')},
                                 {"6", "\x23" + good},
                                 {"7", "\x22\x01x"},
                                 {"8", std::string("\x08\x03\x10\x02\x18\x02\x22\x05hello\x28\x00", 15)},
                                 {"9", std::string("\x22\x01z\x28\x01\x38\x01\x49\1\2\3\4\5\6\7\x08\x52\x02no", 20)}});
  const WarningsHeard warnings;
  const auto records = data::open_lmdb(folder / "db", {});
  REQUIRE(records->size() == 4);  // 0, 7, 8, 9
  CHECK(warnings.one("6 values are left out, such as 1: the value is no Datum: byte "));
  CHECK(warnings.one("1 values have no label and are class 0, as in Caffe, such as 7"));
  CHECK(classes_of(*records) == std::vector<std::int32_t>{1, 0, 0, 1});
  CHECK(content_of_row(*records, 3) == "z");
  CHECK_THAT(message_of<FormatError>([&] { (void)content_of_row(*records, 2); }),
             contains("8: pixels of 3 channels, 2 rows and 2 columns have 5 bytes") && contains("`encoded`"));
  CHECK_THAT(message_of<FormatError>([&] { (void)content_of_row(*records, 1); }), contains("0 channels"));
}

TEST_CASE("what is no LMDB database, or one of another machine", "[data]") {
  const TemporaryFolder folder;
  CHECK_THAT(message_of<IoError>([&] { (void)data::open_lmdb(folder / "none", {}); }), contains("none: No such file"));
  CHECK_THAT(message_of<IoError>([&] { (void)data::open_lmdb(folder.path(), {}); }),
             contains("data.mdb: No such file"));
  write_file(folder / "CURRENT", "MANIFEST-1");
  CHECK_THAT(message_of<NotSupported>([&] { (void)data::open_lmdb(folder.path(), {}); }), contains("LevelDB"));
  CHECK_THAT(refused_file<FormatError>(""), contains("data.mdb: the file has 0 bytes"));
  CHECK_THAT(refused_file<FormatError>(std::string(4096, 'x')), contains("data.mdb is no LMDB database"));
  const std::string good = deep_database();
  std::string big = good, small = good, other = good, odd = good;
  std::memcpy(big.data() + 16, "\xBE\xEF\xC0\xDE", 4);
  std::memcpy(small.data() + 12, "\xDE\xC0\xEF\xBE", 4);
  other[20] = 2;
  odd[40] = 1;
  CHECK_THAT(refused_file<FormatError>(big), contains("was written by a big-endian machine") && contains("mdb_dump"));
  CHECK_THAT(refused_file<FormatError>(small), contains("was written by a 32-bit machine"));
  CHECK_THAT(refused_file<FormatError>(other), contains("LMDB's format 2 is not supported"));
  CHECK_THAT(refused_file<FormatError>(odd), contains("the page size is damaged"));
  write_database(folder / "empty", {});
  CHECK_THAT(message_of<ArgumentError>([&] { (void)data::open_lmdb(folder / "empty", {}); }),
             contains("has no sample"));
  CHECK(data::network_file_system(0x6969) == "NFS");
  CHECK(data::network_file_system(0xEF53).empty());
}

TEST_CASE("several databases or values of a key in one LMDB file are refused", "[data]") {
  const TemporaryFolder folder;
  const bool has_names = GENERATE(true, false);
  MDB_env* environment = nullptr;
  MDB_txn* transaction = nullptr;
  MDB_dbi database{};
  REQUIRE(mdb_env_create(&environment) == 0);
  REQUIRE(mdb_env_set_maxdbs(environment, 2) == 0);
  REQUIRE(mdb_env_open(environment, folder.path().c_str(), MDB_NOLOCK, 0600) == 0);
  REQUIRE(mdb_txn_begin(environment, nullptr, 0, &transaction) == 0);
  REQUIRE(mdb_dbi_open(transaction, has_names ? "train" : nullptr, has_names ? MDB_CREATE : MDB_DUPSORT, &database) ==
          0);
  std::string text = "k";
  MDB_val key{1, text.data()}, value{1, text.data()};
  REQUIRE(mdb_put(transaction, database, &key, &value, 0) == 0);
  REQUIRE(mdb_txn_commit(transaction) == 0);
  mdb_env_close(environment);
  CHECK_THAT(message_of<NotSupported>([&] { (void)data::open_lmdb(folder.path(), {}); }), contains("several"));
}

TEST_CASE("an LMDB database that is cut off or damaged", "[data]") {
  const std::string good = deep_database();
  const TemporaryFolder folder;
  const auto open = [&](const std::string& bytes) {
    write_file(folder / "data.mdb", bytes);
    std::filesystem::remove(folder / "data.mdb.idx");
    const auto records = data::open_lmdb(folder.path(), {});
    for (std::int64_t row = 0; row < records->size(); ++row) (void)content_of_row(*records, row);
  };
  open(good);
  int refused = 0;
  for (std::size_t pages = 0; pages < good.size() / 4096; ++pages) {
    CHECK_THROWS_AS(open(good.substr(0, pages * 4096 + 1000)), FormatError);
  }
  // Bytes of the headers of pages, with all bits turned over.
  for (std::size_t page = 0; page < good.size(); page += 4096) {
    for (std::size_t at = page + 8; at < page + 40; at += 3) {
      std::string damaged = good;
      damaged[at] = static_cast<char>(~damaged[at]);
      try {
        open(damaged);
      } catch (const FormatError&) {
        ++refused;
      } catch (const NotSupported&) {
        ++refused;
      }
    }
  }
  CHECK(refused > 50);
}

TEST_CASE("the index of an LMDB database lies beside it", "[data]") {
  const TemporaryFolder folder;
  write_database(folder / "db", {{"a", encoded(std::string(9000, 'a'), 3)}, {"b", "\x22\x01z"}, {"c", "damaged"}});
  const auto open = [&] {
    const WarningsHeard warnings;
    const auto records = data::open_lmdb(folder / "db", {});
    CHECK(warnings.one("1 values are left out, such as c"));
    CHECK(warnings.one("1 values have no label and are class 0, as in Caffe, such as b"));
    CHECK(classes_of(*records) == std::vector<std::int32_t>{3, 0});
    CHECK(content_of_row(*records, 0) == std::string(9000, 'a'));
  };
  open();
  const std::string index = content_of(folder / "db/data.mdb.idx");
  REQUIRE(index.starts_with("concord lmdb index 1\n"));
  open();
  for (std::size_t at = 10; at < index.size(); at += 5) {
    std::string damaged = index;
    damaged[at] = static_cast<char>(damaged[at] ^ 16);
    write_file(folder / "db/data.mdb.idx", damaged);
    open();
    CHECK(content_of(folder / "db/data.mdb.idx") == index);
  }
  // Another database of the same name.
  std::filesystem::remove(folder / "db/data.mdb");
  write_database(folder / "db", {{"x", encoded("new", 1)}});
  CHECK(content_of_row(*data::open_lmdb(folder / "db", {}), 0) == "new");
}

TEST_CASE("an LMDB database that changes, and one that a fork inherits", "[data]") {
  const TemporaryFolder folder;
  write_database(folder / "db", {{"a", encoded(std::string(9000, 'a'), 0)}, {"b", encoded("b", 1)}});
  const auto records = data::open_lmdb(folder / "db", {});
  const pid_t child = fork();
  if (child == 0) _exit(content_of_row(*records, 0) == std::string(9000, 'a') ? 7 : 1);
  int status = 0;
  waitpid(child, &status, 0);
  CHECK(WEXITSTATUS(status) == 7);
  CHECK(content_of_row(*records, 1) == "b");
  std::filesystem::resize_file(folder / "db/data.mdb", 4096 * 2);
  CHECK_THAT(message_of<FormatError>([&] { (void)content_of_row(*records, 0); }),
             contains("a: the database was changed after it was opened"));
}

TEST_CASE("the writer of LMDB databases grows, and refuses what it cannot keep", "[data]") {
  const TemporaryFolder folder;
  const std::string value(3 << 20, 'v');
  {
    data::LmdbWriter writer(folder / "db");
    for (int i = 0; i < 10; ++i) writer.add(std::to_string(i), bytes_in(encoded(value, i)));
    CHECK_THAT(message_of<ArgumentError>([&] { writer.add("3", {}); }), contains("two values of the key 3"));
    CHECK_THROWS_AS(writer.add("", {}), ArgumentError);
    CHECK_THROWS_AS(writer.add(std::string(512, 'k'), {}), ArgumentError);
    writer.finish();
    CHECK_THROWS_AS(writer.add("x", {}), ArgumentError);
  }
  CHECK(content_of_row(*data::open_lmdb(folder / "db", {}), 9) == value);
  CHECK_THAT(message_of<IoError>([&] { data::LmdbWriter again(folder / "db"); }), contains("holds a database already"));
  { data::LmdbWriter abandoned(folder / "other/db"); }
  CHECK_FALSE(std::filesystem::exists(folder / "other/db"));
}
