// Masks in shards: whose labels they are, and samples that have nothing else.
#include "data/records/tar_files.hpp"

using namespace concord;
using namespace concord::test;

namespace {

const std::vector<TarFile> kStreets = {{"a.jpg", "image a"},     {"a.seg.png", "mask a"}, {"b.jpg", "image b"},
                                       {"b.mask.png", "mask b"}, {"c.jpg", "image c"},    {"c.cls", "1"},
                                       {"d.jpg", "image d"}};

}  // namespace

TEST_CASE("a shard: a mask is a label, alone or beside a class", "[data][masks]") {
  const TemporaryFolder folder;
  const WarningsHeard warnings;
  const auto records = open_tar_of(folder, tar_of(kStreets), {.mask_classes = 3});
  CHECK(tar_keys(*records) == std::vector<std::string>{"a", "b", "c"});
  REQUIRE(records->has_mask());
  CHECK(records->mask_classes == 3);
  std::vector<std::byte> scratch;
  CHECK(text_of(records->read_mask(1, scratch).bytes) == "mask b");
  CHECK(warnings.one("1 samples have no mask, such as"));
  CHECK(warnings.one("1 samples have no label"));
  CHECK(classes_of(*records) == std::vector<std::int32_t>{0, 0, 0});  // some samples have no class
  const auto again = data::open_tar({folder / "s.tar"}, {});          // by the index
  CHECK(tar_keys(*again) == tar_keys(*records));
  CHECK(again->has_mask());
}

TEST_CASE("a shard: masks may be left aside, and samples without a class with them", "[data][masks]") {
  const TemporaryFolder folder;
  const WarningsHeard warnings;
  const auto records = open_tar_of(folder, tar_of(kStreets), {.masks_in_shards = false});
  CHECK(tar_keys(*records) == std::vector<std::string>{"c"});
  CHECK_FALSE(records->has_mask());
  CHECK(classes_of(*records) == std::vector<std::int32_t>{1});
  CHECK(warnings.one("3 samples have no label"));
  // With a class for each, the classes are those of the files.
  std::vector<TarFile> labelled = kStreets;
  for (const char* const key : {"a", "b", "d"}) labelled.push_back({std::string(key) + ".cls", "2"});
  CHECK(classes_of(*open_tar_of(folder, tar_of(labelled))) == std::vector<std::int32_t>{2, 2, 1, 2});
  CHECK(classes_of(*open_tar_of(folder, tar_of(labelled), {.masks_in_shards = false})) ==
        std::vector<std::int32_t>{2, 2, 1, 2});
}
