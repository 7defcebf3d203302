// concord data pack: the same pictures and labels as shards, a database and a folder, and what is refused.
#include <fmt/format.h>

#include "cli/packing.hpp"
#include "cli/pictures.hpp"
#include "concord/data/records/open.hpp"
#include "concord/data/records/shard_names.hpp"

using namespace concord;
using namespace concord::test;

namespace {

data::RecordsPtr open_packed(const std::string& spec, const std::vector<std::string>& classes = {}) {
  const data::RecordOptions how{.class_names = classes, .masks = {}};
  const std::string path = spec.substr(spec.find(':') + 1);
  if (spec.starts_with("lmdb:")) return data::open_lmdb(path, how);
  if (spec.starts_with("tar:")) {
    const std::vector<std::string> names = data::expand_braces(path);
    return data::open_tar({names.begin(), names.end()}, how);
  }
  const std::size_t list = path.find(",list=");
  return data::open_folder(path.substr(0, list), list == std::string::npos ? "" : path.substr(list + 6), how);
}

std::vector<std::int32_t> packed_classes(const data::Records& records) {
  const auto values = records.labels.at(0).values.values<std::int32_t>();
  return {values.begin(), values.end()};
}

std::string file_of_row(const data::Records& records, std::int64_t row) {
  std::vector<std::byte> scratch;
  const auto bytes = records.read(row, scratch).bytes;
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

data::Image image_of_row(const data::Records& records, std::int64_t row) {
  const std::string file = file_of_row(records, row);
  const auto bytes = std::as_bytes(std::span(file.data(), file.size()));
  data::Image image;
  data::decode_image(bytes, data::read_image_info(bytes).channels <= 2 ? 1 : 3, image);
  return image;
}

/// "cat": two PNG; "dog/big": a JPEG and a PNG that are larger; the classes are not in the order of their names.
std::string write_pets(const TemporaryFolder& folder) {
  write_picture(folder, "pets/b/0.png", 30, 20, 3, 0);
  write_picture(folder, "pets/b/1.png", 20, 30, 1, 1);
  write_picture(folder, "pets/a/2.jpg", 80, 40, 3, 2);
  write_picture(folder, "pets/a/3.png", 50, 90, 3, 3);
  write_file(folder / "pets/list.txt", "b/0.png 1\na/2.jpg 0\nb/1.png 1\na/3.png 0\n");
  write_file(folder / "pets/classes.txt", "dog/big\ncat\n");
  return fmt::format("folder:{},list={}", (folder / "pets").string(), (folder / "pets/list.txt").string());
}

std::string all_files(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  std::string all;
  for (const auto& path : paths) all += path.lexically_relative(folder).string() + "\n" + content_of(path) + "\n";
  return all;
}

}  // namespace

TEST_CASE("packing copies files, and keeps order, labels and names of classes", "[cli]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  const std::string pets = write_pets(folder);
  const auto source = open_packed(pets);
  REQUIRE(source->class_names == std::vector<std::string>{"dog/big", "cat"});
  std::filesystem::create_directories(folder / "s");
  const std::string shards = packed_spec(pets, (folder / "s/x-%03d.tar").string(), {"--shard-samples", "3"});
  CHECK(shards == "tar:" + (folder / "s/x-{000..001}.tar").string());
  const std::string database = packed_spec(pets, (folder / "p.lmdb").string());
  const std::string images = packed_spec(pets, (folder / "p/").string());
  CHECK(images == fmt::format("folder:{0}/p,list={0}/p/list.txt", folder.path().string()));
  for (const std::string& spec : {shards, database, images}) {
    INFO(spec);
    const auto packed = open_packed(spec);
    REQUIRE(packed->size() == 4);
    CHECK(packed->class_names == source->class_names);
    CHECK(packed_classes(*packed) == std::vector<std::int32_t>{1, 0, 1, 0});
    for (std::int64_t row = 0; row < 4; ++row) CHECK(file_of_row(*packed, row) == file_of_row(*source, row));
    // The classes of a model count, in its order.
    CHECK(packed_classes(*open_packed(spec, {"bird", "cat", "dog/big"})) == std::vector<std::int32_t>{1, 2, 1, 2});
    CHECK_THAT(message_of<ArgumentError>([&] {
                 static_cast<void>(open_packed(spec, {"cat", "dog"}));
               }),
               test::contains("\"dog/big\" is not one of the classes of the model"));
  }
  // Without the list the folders say the classes, sorted by class.
  const auto by_folder = open_packed("folder:" + (folder / "p").string());
  CHECK(by_folder->class_names == source->class_names);
  CHECK(packed_classes(*by_folder) == std::vector<std::int32_t>{1, 1, 0, 0});
}

TEST_CASE("packing resizes, encodes and shuffles, the same bytes for any number of threads", "[cli]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  const std::string pets = write_pets(folder);
  const auto source = open_packed(pets);

  const auto small = open_packed(packed_spec(pets, (folder / "small.tar").string(), {"--side", "25"}));
  CHECK(file_of_row(*small, 0) == file_of_row(*source, 0));  // smaller already
  CHECK(file_of_row(*small, 2) == file_of_row(*source, 2));
  CHECK(image_of_row(*small, 1).height == 25);
  CHECK(image_of_row(*small, 1).width == 50);
  CHECK(file_of_row(*small, 1).starts_with("\xFF\xD8"));  // JPEG stays JPEG
  CHECK(image_of_row(*small, 3).width == 25);
  CHECK(image_of_row(*small, 3).height == 45);
  CHECK(file_of_row(*small, 3).starts_with("\x89PNG"));

  const auto jpeg = open_packed(packed_spec(pets, (folder / "jpeg.tar").string(), {"--quality", "50"}));
  for (std::int64_t row = 0; row < 4; ++row) CHECK(file_of_row(*jpeg, row).starts_with("\xFF\xD8"));
  CHECK(file_of_row(*jpeg, 1) == file_of_row(*source, 1));
  CHECK(image_of_row(*jpeg, 2).channels == 1);
  const auto png = open_packed(packed_spec(pets, (folder / "png.tar").string(), {"--png"}));
  CHECK(file_of_row(*png, 0) == file_of_row(*source, 0));
  CHECK(image_of_row(*png, 1).pixels == image_of_row(*source, 1).pixels);
  CHECK(file_of_row(*png, 1).starts_with("\x89PNG"));

  const auto raw = open_packed(packed_spec(pets, (folder / "raw.tar").string(), {"--raw"}));
  const auto files = open_packed(packed_spec(pets, (folder / "raw/").string(), {"--raw"}));
  CHECK(file_of_row(*files, 0).starts_with("P6\n30 20\n255\n"));
  CHECK(file_of_row(*files, 2).starts_with("P5\n20 30\n255\n"));
  const auto planes = open_packed(packed_spec(pets, (folder / "raw.lmdb").string(), {"--raw"}));
  for (std::int64_t row = 0; row < 4; ++row) {
    std::vector<std::byte> scratch;
    CHECK(image_of_row(*files, row).pixels == image_of_row(*source, row).pixels);
    for (const auto& records : {planes, raw}) {
      const data::Record record = records->read(row, scratch);
      REQUIRE(record.raw);
      CHECK(record.raw->height == image_of_row(*source, row).height);
    }
  }

  // Shuffled with a seed; by one thread and by three.
  for (const char* const name : {"one", "three"}) {
    std::filesystem::create_directories(folder / name);
    const std::string threads = name == std::string("one") ? "1" : "3";
    for (const char* const out : {"x-%d.tar", "d.lmdb", "f/"}) {
      static_cast<void>(packed_spec(pets, (folder / name / out).string(),
                                    {"--shuffle", "7", "--side", "25", "--loader-threads", threads}));
    }
  }
  CHECK(all_files(folder / "one") == all_files(folder / "three"));
  const auto shuffled = open_packed("tar:" + (folder / "one/x-0.tar").string());
  const auto order = data::permutation(4, 7);
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(packed_classes(*shuffled)[i] == packed_classes(*source)[static_cast<std::size_t>(order[i])]);
  }
}

TEST_CASE("shards end where they are full", "[cli]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  const std::string data = write_digits(folder / "data", 25, 7);
  // Each sample is two files of a header and a block or two.
  const std::string spec = packed_spec(data, (folder / "x-%d.tar").string(),
                                       {"--raw", "--shard-size", "16KiB", "--part", "train"});  // six of 2,560 bytes
  CHECK(spec == "tar:" + (folder / "x-{0..4}.tar").string());
  for (int i = 0; i < 5; ++i) CHECK(std::filesystem::file_size(folder / fmt::format("x-{}.tar", i)) <= (17U << 10U));
  CHECK(open_packed(spec)->size() == 25);
  const std::string test = packed_spec(data, (folder / "t-%d.tar").string(), {"--part", "test"});
  CHECK(test == "tar:" + (folder / "t-0.tar").string());
  CHECK(open_packed(test)->size() == 7);
  // With --force a shorter set leaves no shard of the longer one.
  CHECK_THAT(pack(data, (folder / "x-%d.tar").string()).err, test::contains("x-0.tar is there already; --force"));
  static_cast<void>(packed_spec(data, (folder / "x-%d.tar").string(), {"--force"}));
  CHECK(std::filesystem::exists(folder / "x-0.tar"));
  CHECK_FALSE(std::filesystem::exists(folder / "x-1.tar"));
}

TEST_CASE("a network learns the same from the idx files, shards, a database and a folder", "[cli]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  const std::string data = write_digits(folder / "data", 40, 10);
  std::vector<std::string> specs{data};
  specs.push_back(packed_spec(data, (folder / "x-%06d.tar").string(), {"--png", "--shard-samples", "16"}));
  specs.push_back(packed_spec(data, (folder / "x.lmdb").string(), {}));
  specs.push_back(packed_spec(data, (folder / "x/").string(), {"--png"}));
  std::vector<std::vector<double>> losses;
  for (const std::string& spec : specs) {
    losses.push_back(losses_of(folder, "lenet", spec, {"--batch", "8", "--epochs", "2"}));
    REQUIRE(losses.back().size() == 4);  // of training and validation
    INFO(spec);
    CHECK(losses.back() == losses.front());
  }
}

TEST_CASE("targets, several labels and masks go where they can be read again", "[cli]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  for (int i = 0; i < 2; ++i) {
    write_picture(folder, fmt::format("set/{}.png", i), 32, 24, 3, i);
    write_picture(folder, fmt::format("masks/{}.png", i), 32, 24, 1, 0);
  }
  const std::string set = (folder / "set").string();
  write_file(folder / "set/t.txt", "0.png 0.1\n1.png 3.0\n");
  const std::string targets = fmt::format("folder:{0},list={0}/t.txt", set);
  for (const char* const out : {"t.tar", "t/"}) {
    const auto packed = open_packed(packed_spec(targets, (folder / out).string()));
    REQUIRE(packed->labels[0].values.dtype() == DType::f32);
    CHECK(packed->labels[0].values.values<float>()[0] == 0.1F);
    CHECK(packed->labels[0].values.values<float>()[1] == 3.0F);
  }
  const Ended refused = pack(targets, (folder / "t.lmdb").string());
  CHECK(refused.code == 2);
  CHECK_THAT(refused.err, test::contains("one class for each image; this set has targets"));
  CHECK_FALSE(std::filesystem::exists(folder / "t.lmdb.incomplete"));

  write_file(folder / "set/s.txt", "0.png 1 0.5\n1.png 0 1.5\n");
  const std::string several = fmt::format("folder:{0},list={0}/s.txt", set);
  const auto both = open_packed(packed_spec(several, (folder / "s/").string()));
  REQUIRE(both->labels.size() == 2);
  CHECK(packed_classes(*both) == std::vector<std::int32_t>{1, 0});
  CHECK(both->labels[1].values.values<float>()[1] == 1.5F);
  const Ended warned = pack(several, (folder / "s.tar").string());
  CHECK(warned.code == 0);
  CHECK_THAT(warned.err, test::contains("reads the first of them"));
  CHECK(packed_classes(*open_packed("tar:" + (folder / "s.tar").string())) == std::vector<std::int32_t>{1, 0});

  const std::string masked = fmt::format("folder:{},masks={}", set, (folder / "masks").string());
  const auto packed = open_packed(packed_spec(masked, (folder / "m.tar").string(), {"--side", "12"}));
  REQUIRE(packed->has_mask());
  std::vector<std::byte> scratch;
  const data::ImageInfo mask = data::read_image_info(packed->read_mask(1, scratch).bytes);
  CHECK(mask.height == 12);
  CHECK(mask.width == 16);
  CHECK_THAT(pack(masked, (folder / "m.lmdb").string()).err, test::contains("masks are packed into shards alone"));
}

TEST_CASE("bad samples end the packing without a trace, or are left out", "[cli]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  write_pets(folder);
  write_file(folder / "pets/a/0 bad.png", "no picture");
  const std::string pets = "folder:" + (folder / "pets").string();
  for (const char* const out : {"x-%d.tar", "x.lmdb", "x/"}) {
    INFO(out);
    const Ended failed = pack(pets, (folder / out).string());
    CHECK(failed.code == 1);
    CHECK_THAT(failed.err, test::contains("a/0 bad.png") && test::contains("--bad skip leaves them out"));
    for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
      CHECK(entry.path().filename() == "pets");
    }
  }
  for (const char* const out : {"x-%d.tar", "x.lmdb", "x/"}) {
    const Ended skipped = pack(pets, (folder / out).string(), {"--bad", "skip"});
    CHECK(skipped.code == 0);
    CHECK_THAT(skipped.out, test::contains("left out: 1 bad sample\n"));
    CHECK_THAT(skipped.err, test::contains("a/0 bad.png"));
  }
}

TEST_CASE("packing writes over its own files alone, and only if it is told to", "[cli]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  const std::string pets = write_pets(folder);
  for (const char* const out : {"x.tar", "x.lmdb", "x/"}) {
    INFO(out);
    const std::string target = (folder / out).string();
    static_cast<void>(packed_spec(pets, target));
    const Ended refused = pack(pets, target, {"--png"});
    CHECK(refused.code == 1);
    CHECK_THAT(refused.err, test::contains("is there already; --force writes over it"));
    CHECK(open_packed(packed_spec(pets, target, {"--png", "--force"}))->size() == 4);
  }
  for (const char* const name : {"x", "x.lmdb"}) {
    write_file(folder / name / "my notes", "mine");
    const Ended refused = pack(pets, (folder / name / "").string(), {"--force"});
    CHECK(refused.code == 1);
    CHECK_THAT(refused.err, test::contains("did not write there, such as my notes"));
    CHECK(content_of(folder / name / "my notes") == "mine");
  }
  // Other shards in the folder may need its classes.txt.
  const std::string data = write_digits(folder / "data", 10, 10);
  const Ended others = pack(data, (folder / "y.tar").string());
  CHECK(others.code == 1);
  CHECK_THAT(others.err, test::contains("x.tar, whose classes are others; pack into another folder"));
  CHECK_THAT(pack(data, (folder / "y.tar").string(), {"--force"}).err, test::contains("pack into another folder"));
  CHECK(content_of(folder / "classes.txt") == "dog/big\ncat\n");
  // Nor may shards whose classes have no names get some.
  std::filesystem::create_directories(folder / "digits");
  static_cast<void>(packed_spec(data, (folder / "digits/y.tar").string()));
  CHECK_THAT(pack(pets, (folder / "digits/x.tar").string(), {"--force"}).err,
             test::contains("y.tar, whose classes have no names; pack into another folder"));
  CHECK_FALSE(std::filesystem::exists(folder / "digits/classes.txt"));
  // Without other shards --force replaces it.
  std::filesystem::create_directories(folder / "alone");
  write_file(folder / "alone/classes.txt", "a\nb\n");
  CHECK_THAT(
      pack(pets, (folder / "alone/x.tar").string()).err,
      test::contains("classes.txt is there already and has other classes: pack into another folder, or --force"));
  static_cast<void>(packed_spec(pets, (folder / "alone/x.tar").string(), {"--force"}));
  CHECK(content_of(folder / "alone/classes.txt") == "dog/big\ncat\n");
}
