// Limits of containers and services, as Linux describes them in files.
#include "concord/core/control_groups.hpp"

#include <algorithm>

#include "concord_test.hpp"
#include "files.hpp"

namespace concord::test {
namespace {

/// The description of a process in a folder.
struct Described {
  TemporaryFolder folder;
  ControlGroups groups{folder / "mounted", folder / "self"};
  explicit Described(const std::string& self) { write_file(groups.of_process, self); }
  void write(const std::string& path, const std::string& text) const {
    const std::filesystem::path file = groups.mounted / path;
    std::filesystem::create_directories(file.parent_path());
    write_file(file, text);
  }
};

}  // namespace

TEST_CASE("the quota of a container is that of its group or of one above it", "[core]") {
  const Described at("0::/pods/one/main\n");
  CHECK_FALSE(processor_quota(at.groups));
  CHECK_FALSE(memory_limit(at.groups));
  at.write("pods/one/main/cpu.max", "max 100000\n");
  at.write("pods/one/main/memory.max", "max\n");
  CHECK_FALSE(processor_quota(at.groups));
  CHECK_FALSE(memory_limit(at.groups));
  at.write("pods/one/cpu.max", "250000 100000\n");
  at.write("pods/memory.max", "3000000000\n");
  CHECK(processor_quota(at.groups) == 2.5);
  CHECK(memory_limit(at.groups) == 3'000'000'000U);
  at.write("pods/one/main/cpu.max", "50000 100000\n");
  CHECK(processor_quota(at.groups) == 0.5);
  at.write("cpu.max", "20000 100000\n");  // the root of a container's own namespace
  CHECK(processor_quota(at.groups) == 0.2);
}

TEST_CASE("the processors of a quota are rounded up, to those of the affinity", "[core]") {
  const Described at("0::/a:group\n");
  const int all = usable_processors(at.groups);
  CHECK(all >= 1);
  at.write("a:group/cpu.max", "20000 100000\n");
  CHECK(usable_processors(at.groups) == 1);
  at.write("a:group/cpu.max", "150000 100000\n");
  CHECK(usable_processors(at.groups) == std::min(2, all));
  at.write("a:group/cpu.max", "100000000 100000\n");
  CHECK(usable_processors(at.groups) == all);
}

TEST_CASE("control groups of version 1 have a folder for each controller", "[core]") {
  const Described at("4:memory:/docker/a\n3:cpu,cpuacct:/docker/a\n1:name=systemd:/docker/a\n");
  at.write("cpu/cpu.cfs_quota_us", "-1\n");
  at.write("cpu/cpu.cfs_period_us", "100000\n");
  CHECK_FALSE(processor_quota(at.groups));
  at.write("cpu/docker/a/cpu.cfs_quota_us", "400000\n");
  at.write("cpu/docker/a/cpu.cfs_period_us", "100000\n");
  CHECK(processor_quota(at.groups) == 4);
  at.write("cpu,cpuacct/docker/cpu.cfs_quota_us", "300000\n");
  at.write("cpu,cpuacct/docker/cpu.cfs_period_us", "100000\n");
  CHECK(processor_quota(at.groups) == 3);
  at.write("memory/docker/a/memory.limit_in_bytes", "9223372036854771712\n");
  CHECK_FALSE(memory_limit(at.groups));
  at.write("memory/docker/memory.limit_in_bytes", "2000\n");
  CHECK(memory_limit(at.groups) == 2000U);
  at.write("memory/memory.limit_in_bytes", "1000\n");  // all that a container sees of its own group
  CHECK(memory_limit(at.groups) == 1000U);
}

TEST_CASE("without a description of groups, or with a damaged one, the mounted ones count", "[core]") {
  const Described at("damaged\n0:\n");
  at.write("cpu.max", "300000 100000\n");
  at.write("memory/memory.limit_in_bytes", "5000\n");
  CHECK(processor_quota(at.groups) == 3);
  CHECK(memory_limit(at.groups) == 5000U);
  at.write("cpu.max", "many 100000\n");
  CHECK_FALSE(processor_quota(at.groups));
}

}  // namespace concord::test
