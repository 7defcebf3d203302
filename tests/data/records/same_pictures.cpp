// The same pictures as a folder, a database and shards are the same records: bytes, labels, order.
#include "concord/data/records/datum.hpp"
#include "concord/data/records/open.hpp"
#include "concord/data/records/write_lmdb.hpp"
#include "concord/data/records/write_tar.hpp"
#include "data/records/records_test.hpp"

using namespace concord;
using namespace concord::test;

TEST_CASE("the same pictures from a folder, a list, a database and shards", "[data]") {
  const TemporaryFolder folder;
  std::vector<std::string> contents;
  std::vector<std::int32_t> classes;
  std::string list;
  data::LmdbWriter database(folder / "db");
  std::vector<std::filesystem::path> shards;
  for (int i = 0; i < 30; ++i) {
    const std::string key = "class" + std::to_string(i / 10) + "/" + std::to_string(100 + i);
    contents.push_back("picture " + std::to_string(i) + std::string(static_cast<std::size_t>(i * 331), '.'));
    classes.push_back(i / 10);
    write_in(folder, "images/" + key + ".jpg", contents.back());
    list += key + ".jpg " + std::to_string(i / 10) + "\n";
    database.add(key, bytes_in(data::datum_of(bytes_in(contents.back()), i / 10)));
  }
  database.finish();
  for (std::size_t shard = 0; shard < 3; ++shard) {
    shards.push_back(folder / ("s" + std::to_string(shard) + ".tar"));
    data::TarWriter writer(shards.back());
    for (std::size_t i = shard * 10; i < shard * 10 + 10; ++i) {
      writer.add("class/" + std::to_string(100 + i), "jpg", bytes_in(contents[i]));
      writer.add("class/" + std::to_string(100 + i), "cls", bytes_in(std::to_string(classes[i])));
    }
    writer.finish();
  }
  write_file(folder / "list.txt", list);
  const std::vector<data::RecordsPtr> all = {data::open_folder(folder / "images", {}, {}),
                                             data::open_folder(folder / "images", folder / "list.txt", {}),
                                             data::open_lmdb(folder / "db", {}), data::open_tar(shards, {})};
  for (const data::RecordsPtr& records : all) {
    INFO(records->name);
    REQUIRE(records->size() == 30);
    CHECK(classes_of(*records) == classes);
    CHECK(records->labels[0].classes == 3);
    std::vector<std::byte> scratch;
    for (std::int64_t row : {29, 0, 7, 15, 8, 29}) {
      const data::Record record = records->read(row, scratch);
      CHECK(text_of(record.bytes) == contents[static_cast<std::size_t>(row)]);
      CHECK_FALSE(record.raw.has_value());
    }
  }
}
