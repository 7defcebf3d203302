// A cache that other users can write to: built programs are native code, so nothing in it is run or believed, and
// everything works without it. And files of it that were changed at random.
#include <unistd.h>

#include "concord/core/log.hpp"
#include "concord/core/philox.hpp"
#include "concord/core/private_files.hpp"
#include "concord/device/denylist.hpp"
#include "concord/opencl/driver/discovery.hpp"
#include "concord/opencl/gemm/tuning/table.hpp"
#include "concord/opencl/program/cache.hpp"
#include "files.hpp"
#include "opencl/opencl_test.hpp"

namespace concord::test {
namespace {

using std::filesystem::perms;

const std::string kSource = "__kernel void twice(__global int* p) { p[get_global_id(0)] *= 2; }";

perms permissions_of(const std::filesystem::path& path) {
  return std::filesystem::status(path).permissions() & perms::mask;
}

std::optional<boost::compute::device> any_device() {
  const std::vector<boost::compute::device> found = opencl::enumerate_devices();
  if (!found.empty()) return found.front();
  WARN("skipped: no OpenCL device");
  return std::nullopt;
}

/// What came from where for one program.
opencl::ProgramCache::Counts counts_of(const boost::compute::device& device, const std::filesystem::path& folder) {
  opencl::ProgramCache cache(boost::compute::context(device), device, folder, 0);
  CHECK(cache.get(kSource, "").get() != nullptr);
  return cache.counts();
}

std::filesystem::path file_in(const boost::compute::device& device, const std::filesystem::path& folder) {
  return opencl::ProgramCache(boost::compute::context(device), device, folder, 0).file_of(kSource, "");
}

class Warnings {
 public:
  Warnings() {
    set_log([this](LogLevel, std::string_view text) { texts.emplace_back(text); }, LogLevel::warning);
  }
  ~Warnings() { set_log({}, LogLevel::warning); }
  std::vector<std::string> texts;
};

/// A text changed in up to four ways.
std::string damaged(std::string text, PhiloxSequence& random) {
  static const std::vector<std::string> kInserted{"[",
                                                  "{",
                                                  "}",
                                                  "\"",
                                                  ",",
                                                  ":",
                                                  "1e999",
                                                  "-1",
                                                  "null",
                                                  "\xff",
                                                  "{\"a\":",
                                                  "18446744073709551616",
                                                  "[[[[[[[[[[[[[[[[[[[[",
                                                  "9223372036854775808"};
  for (std::uint32_t change = 0; change <= random.below(4) && !text.empty(); ++change) {
    const std::size_t at = random.below(static_cast<std::uint32_t>(text.size()));
    switch (random.below(5)) {
      case 0: text[at] = static_cast<char>(random.below(256)); break;
      case 1: text.erase(at, 1 + random.below(9)); break;
      case 2: text.insert(at, kInserted[random.below(static_cast<std::uint32_t>(kInserted.size()))]); break;
      case 3: text.insert(at, text.substr(random.below(static_cast<std::uint32_t>(text.size())), 30)); break;
      default: text.resize(at);
    }
  }
  return text;
}

}  // namespace

TEST_CASE("folders of the cache are their owner's alone, and so are the files", "[opencl][cache]") {
  const auto device = any_device();
  if (!device) return;
  const TemporaryFolder folder;
  const auto programs = folder / "cache" / "programs";
  CHECK(counts_of(*device, programs).built == 1);
  CHECK(permissions_of(folder / "cache") == perms::owner_all);
  CHECK(permissions_of(programs) == perms::owner_all);
  CHECK(permissions_of(file_in(*device, programs)) == (perms::owner_read | perms::owner_write));
  CHECK(counts_of(*device, programs).from_disk == 1);
}

TEST_CASE("programs in a folder that others may write to are not read, and kernels are built all the same",
          "[opencl][cache]") {
  const auto device = any_device();
  if (!device) return;
  for (const perms more : {perms::group_write, perms::others_write}) {
    const TemporaryFolder folder;
    const auto programs = folder / "programs";
    CHECK(counts_of(*device, programs).built == 1);
    std::filesystem::permissions(programs, perms::owner_all | more);
    std::filesystem::create_directory_symlink(programs, folder / "link");
    for (const auto& way : {programs, folder / "link"}) {
      const Warnings warnings;
      CHECK(counts_of(*device, way).built == 1);
      CHECK(counts_of(*device, way).from_disk == 0);
      REQUIRE(warnings.texts.size() == 1);  // once
      CHECK_THAT(warnings.texts[0], contains(way.string()) && contains("CONCORD_CACHE_DIR") && contains("chmod"));
    }
    std::filesystem::permissions(programs, perms::owner_all);
    CHECK(counts_of(*device, programs).from_disk == 1);
  }
}

TEST_CASE("a program file that others may write to is not run but built anew and replaced", "[opencl][cache]") {
  const auto device = any_device();
  if (!device) return;
  const TemporaryFolder folder;
  const auto programs = folder / "programs";
  CHECK(counts_of(*device, programs).built == 1);
  const auto file = file_in(*device, programs);
  std::filesystem::permissions(file, perms::owner_read | perms::owner_write | perms::others_write);
  {
    const Warnings warnings;
    CHECK(counts_of(*device, programs).built == 1);
    REQUIRE(warnings.texts.size() == 1);
    CHECK_THAT(warnings.texts[0], contains(file.string()));
  }
  CHECK(permissions_of(file) == (perms::owner_read | perms::owner_write));
  CHECK(counts_of(*device, programs).from_disk == 1);
  if (geteuid() != 0) return;  // only root can give files away
  REQUIRE(chown(file.c_str(), 12345, 12345) == 0);
  CHECK(counts_of(*device, programs).built == 1);
}

TEST_CASE("a device works with a cache that is not used", "[opencl][cache]") {
  if (opencl_devices().empty()) return;
  const TemporaryFolder folder;
  const auto cache = folder / "cache";
  create_private_directories(cache);
  std::filesystem::permissions(cache, perms::all);
  const Setting setting("CONCORD_CACHE_DIR", cache.string()), own("CONCORD_DRIVER_CACHE", "0");
  const Warnings warnings;
  for (int i = 0; i < 2; ++i) {
    const DevicePtr device = Device::open(opencl_devices().front()->info().id);
    Graph graph;
    const Value y = graph.input("x", {DType::f32, Shape{4}}) * 3.0F;
    Program program = compile(graph, {{y}}, std::make_shared<Variables>(device, 1));
    program.write("x", Tensor::of<float>(Shape{4}, std::vector<float>{1, 2, 3, 4}));
    program.run();
    CHECK(program.read(y).values<float>()[3] == 12);
  }
  CHECK(std::filesystem::is_empty(cache));
  CHECK(std::ranges::count_if(warnings.texts, [&](const auto& text) { return contains(text, cache.string()); }) == 1);
}

TEST_CASE("denylists and tuning tables that others may write to are not believed", "[opencl][cache]") {
  const TemporaryFolder folder;
  const auto cache = folder / "cache";
  const Setting setting("CONCORD_CACHE_DIR", cache.string());
  const DenylistOrigin origin{"a card", "1.2"};
  write_denylist(origin, {{"gemm.tiled", "wrong"}});
  CHECK(read_denylist(origin).size() == 1);
  CHECK(permissions_of(cache / "quirks") == perms::owner_all);
  CHECK(permissions_of(denylist_file(origin)) == (perms::owner_read | perms::owner_write));
  const auto file = denylist_file(origin);
  std::filesystem::permissions(file, perms::owner_read | perms::owner_write | perms::group_write);
  CHECK(read_denylist(origin).empty());
  std::filesystem::permissions(file, perms::owner_read | perms::owner_write);
  std::filesystem::permissions(cache / "quirks", perms::all);
  CHECK(read_denylist(origin).empty());
  CHECK(denylist_file(origin).empty());
  std::filesystem::permissions(cache / "quirks", perms::owner_all);
  CHECK(read_denylist(origin).size() == 1);
  create_private_directories(cache / "tuning");
  const auto has_own = [&] { return std::ranges::count(opencl::tuning_folders(), cache / "tuning") == 1; };
  CHECK(has_own());
  std::filesystem::permissions(cache / "tuning", perms::all);
  CHECK_FALSE(has_own());
}

TEST_CASE("damaged denylists say nothing, and damaged tuning tables are a FormatError", "[opencl][cache]") {
  const TemporaryFolder folder;
  const Setting setting("CONCORD_CACHE_DIR", (folder / "cache").string());
  const DenylistOrigin denylist{"a card", "1.2"};
  const opencl::TuningOrigin tuning{"a card", "1.2", 8, "gpu"};
  write_denylist(denylist, {{"gemm.tiled", "wrong"}, {"conv.winograd", "wrong \"too\""}});
  opencl::write_tuning(folder / "table", tuning,
                       {{"a key", {{"tiled", opencl::GemmTiling{"64x64", 2}}, 1e-3, 2e-3, "reference"}}});
  const std::string denylist_text = content_of(denylist_file(denylist)), table_text = content_of(folder / "table");
  PhiloxSequence random(Philox(3, philox_purpose("damage")));
  const auto write_private = [](const std::filesystem::path& file, const std::string& text) {
    write_file(file, text);
    std::filesystem::permissions(file, perms::owner_read | perms::owner_write);
  };
  int refused = 0;
  const int trials = 3000;
  for (int trial = 0; trial < trials; ++trial) {
    write_private(denylist_file(denylist), damaged(denylist_text, random));
    CHECK_NOTHROW(read_denylist(denylist));
    write_file(folder / "table", damaged(table_text, random));
    try {
      static_cast<void>(opencl::read_tuning(folder / "table", tuning));
    } catch (const FormatError&) {
      ++refused;
    } catch (const std::exception& error) {
      FAIL_CHECK("another exception: " << error.what());
    }
  }
  CHECK(refused > trials / 2);
  for (const std::string& text : {std::string(2'000'000, '['), std::string("{\"format\":1e999}")}) {
    write_private(denylist_file(denylist), text);
    CHECK(read_denylist(denylist).empty());
    write_file(folder / "table", text);
    CHECK_THROWS_AS(opencl::read_tuning(folder / "table", tuning), FormatError);
  }
}

}  // namespace concord::test
