// Tuning::store(): what of a file stays when entries are added, and what happens to files that cannot be read.
#include <array>
#include <future>

#include "concord/core/log.hpp"
#include "concord/opencl/gemm/tuning/table.hpp"
#include "files.hpp"
#include "opencl/context_of.hpp"
#include "opencl/opencl_test.hpp"

namespace concord::test {
namespace {

using opencl::GemmTiling;
using opencl::Tuning;
using opencl::TuningEntries;
using opencl::TuningEntry;
using std::filesystem::perms;

const TuningEntry kTiled{{"tiled", GemmTiling{"64x64", 3}}, 1e-3, 2e-3, "clblast"};
const TuningEntry kClblast{{"clblast", std::nullopt}, 0.5, 0.5, "clblast"};

void replace_in(const std::filesystem::path& file, const std::string& from, const std::string& to) {
  std::string text = content_of(file);
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  text.replace(at, from.size(), to);
  write_file(file, text);
}

std::filesystem::path stored(const DevicePtr& device, const std::string& key, const TuningEntry& entry,
                             const std::filesystem::path& file = {}) {
  Tuning tuning(context_of(device));
  tuning.put(key, entry);
  return tuning.store(file);
}

TuningEntries entries_in(const DevicePtr& device, const std::filesystem::path& file) {
  return opencl::read_tuning(file, tuning_origin(context_of(device))).value().entries;
}

}  // namespace

TEST_CASE("entries of a file that others may write to are not taken over", "[opencl][tuning]") {
  for (const DevicePtr& device : opencl_devices()) {
    const TemporaryFolder folder;
    const Setting setting("CONCORD_TUNING_DIR", folder.path().string());
    const std::filesystem::path file = stored(device, "one", kClblast);
    CHECK(stored(device, "two", kClblast) == file);
    CHECK(entries_in(device, file).size() == 2);
    std::filesystem::permissions(file, perms::group_write, std::filesystem::perm_options::add);
    CHECK_FALSE(Tuning(context_of(device)).knows("one"));
    stored(device, "three", kClblast);
    CHECK(entries_in(device, file) == TuningEntries{{"three", kClblast}});
    CHECK((std::filesystem::status(file).permissions() & perms::mask) == (perms::owner_read | perms::owner_write));
  }
}

TEST_CASE("a file loses outdated entries with a message", "[opencl][tuning]") {
  for (const DevicePtr& device : opencl_devices()) {
    const TemporaryFolder folder;
    const Setting setting("CONCORD_TUNING_DIR", folder.path().string());
    const std::filesystem::path own = stored(device, "one", kTiled), named = folder / "named.txt";
    stored(device, "two", kClblast);
    replace_in(own, opencl::kernel_digests().at("tiled"), "01234567");
    std::filesystem::permissions(own, perms::owner_read | perms::owner_write);
    std::filesystem::copy_file(own, named);
    for (const LogLevel level : {LogLevel::info, LogLevel::warning}) {
      const std::filesystem::path file = level == LogLevel::info ? own : named;
      std::vector<LogLevel> levels;
      set_log([&](LogLevel at, std::string_view text) {
        if (contains(text, "1 entries of " + file.string() + " are dropped")) levels.push_back(at);
      });
      stored(device, "three", kClblast, level == LogLevel::info ? std::filesystem::path() : named);
      set_log({});
      CHECK(levels == std::vector{level});
      CHECK(entries_in(device, file) == TuningEntries{{"two", kClblast}, {"three", kClblast}});
    }
  }
}

TEST_CASE("a table of a newer version is not replaced, a damaged one is", "[opencl][tuning]") {
  for (const DevicePtr& device : opencl_devices()) {
    const TemporaryFolder folder;
    const Setting setting("CONCORD_TUNING_DIR", folder.path().string());
    const std::filesystem::path file = stored(device, "one", kClblast);
    replace_in(file, "\"version\": 1", "\"version\": 2");
    std::filesystem::permissions(file, perms::owner_read | perms::owner_write);
    const std::string text = content_of(file);
    for (const std::filesystem::path& wanted : {std::filesystem::path(), file}) {
      CHECK_THAT(message_of<IoError>([&] { stored(device, "two", kClblast, wanted); }),
                 contains(file.string()) && contains("its version is 2"));
      CHECK(content_of(file) == text);
    }
    write_file(file, text.substr(0, text.size() / 2));
    std::filesystem::permissions(file, perms::owner_read | perms::owner_write);
    CHECK(stored(device, "two", kClblast) == file);
    CHECK(entries_in(device, file) == TuningEntries{{"two", kClblast}});
  }
}

TEST_CASE("writers of one file at the same time lose no entry of each other", "[opencl][tuning]") {
  constexpr int kEntries = 12;
  const DebugOption off("tuning", "0");  // so that the tables of the device are not read each time
  for (const DevicePtr& device : opencl_devices()) {
    const TemporaryFolder folder;
    const std::filesystem::path file = folder / "table.json";
    std::array<std::future<void>, 2> writers;
    for (std::size_t writer = 0; writer < writers.size(); ++writer) {
      writers[writer] = std::async(std::launch::async, [&, writer] {
        for (int i = 0; i < kEntries; ++i) {
          stored(device, std::to_string(writer) + " " + std::to_string(i), kClblast, file);
        }
      });
    }
    for (std::future<void>& writer : writers) CHECK_NOTHROW(writer.get());
    CHECK(entries_in(device, file).size() == writers.size() * kEntries);
    CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1);  // no lock is left
  }
}

}  // namespace concord::test
