// What the doctor makes of facts: a finding for each thing that is wrong, an entry of docs/troubleshooting.md for each,
// one sentence at the end.
#include <fmt/format.h>

#include <sstream>

#include "concord/cli/doctor/machine.hpp"
#include "concord/cli/doctor/report.hpp"
#include "files.hpp"

using namespace concord;
using namespace concord::cli;
using concord::test::TemporaryFolder;

namespace {

using Weight = Finding::Weight;

DeviceFile file(const std::string& path,
                const Permission& permission = {.ours = true, .of_group = true, .group = "render"}) {
  return {path, permission};
}

DeviceInfo opencl_gpu(const std::string& vendor) {
  DeviceInfo info;
  info.id = "opencl:0";
  info.backend = "opencl";
  info.vendor = vendor;
  info.kind = DeviceKind::gpu;
  return info;
}

Finding finding_of(const DeviceFile& one, const std::vector<DeviceInfo>& listed) {
  const auto findings = findings_of(std::vector{one}, listed);
  REQUIRE(findings.size() == 1);
  return findings[0];
}

void check(const Finding& finding, Weight weight, Trouble trouble, const std::string& words) {
  CHECK(finding.weight == weight);
  CHECK(finding.trouble == trouble);
  CHECK_THAT(finding.text, test::contains(words));
}

/// Of a machine where nothing is wrong but what the test changes.
MachineFacts sound() {
  return {
      .memory = std::uint64_t{16} << 30, .cache = "/home/me/.cache", .cache_error = {}, .onednn = {{"2.6.3", "2.6.3"}}};
}

}  // namespace

TEST_CASE("each trouble that the doctor knows has its entry in docs/troubleshooting.md", "[cli]") {
  const std::filesystem::path page = test::folder_of_tests().parent_path() / "docs/troubleshooting.md";
  const std::string text = test::content_of(page);
  REQUIRE_FALSE(text.empty());
  std::size_t place = 1;
  for (const TroubleWords& words : all_troubles()) {
    CHECK(static_cast<std::size_t>(words.trouble) == place++);
    CHECK(&words_of(words.trouble) == &words);
    CHECK_THAT(text, test::contains(fmt::format("\n### {}\n", words.title)));
  }
}

TEST_CASE("the doctor finds the device files of GPUs", "[cli]") {
  const TemporaryFolder root;
  CHECK(device_files(root.path()).empty());
  std::filesystem::create_directories(root / "dev/dri");
  for (const char* const name : {"nvidia3", "nvidia0", "nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-modeset",
                                 "kfd", "null", "dri/renderD128", "dri/card0"}) {
    test::write_file(root / ("dev/" + std::string(name)), "");
  }
  std::vector<std::string> names;
  for (const DeviceFile& one : device_files(root.path())) {
    names.push_back(one.path.lexically_relative(root / "dev").string());
    CHECK(one.permission.ours);
  }
  CHECK(names == std::vector<std::string>{"dri/renderD128", "kfd", "nvidia-uvm", "nvidia0", "nvidia3", "nvidiactl"});
}

TEST_CASE("a device file is told that is not the user's to use", "[cli]") {
  const std::vector<DeviceInfo> listed{opencl_gpu("NVIDIA Corporation")};
  const Permission of_group{.ours = false, .of_group = true, .group = "video"},
      of_nobody{.ours = false, .of_group = false, .group = "root"};
  for (const char* const path : {"/dev/nvidia0", "/dev/nvidiactl", "/dev/dri/renderD128", "/dev/kfd"}) {
    check(finding_of(file(path, of_group), listed), Weight::warning, Trouble::device_file_closed,
          fmt::format("you may not use {}: sudo usermod -aG video ", path));
    const Finding closed = finding_of(file(path, of_nobody), listed);
    check(closed, Weight::warning, Trouble::device_file_closed, "its group root may not use it either");
    CHECK_THAT(closed.text, !test::contains("usermod"));
  }
}

TEST_CASE("a device file is told that no OpenCL device stands for", "[cli]") {
  const auto missing = [](const std::string& path, const std::vector<DeviceInfo>& listed, const std::string& hint) {
    check(finding_of(file(path), listed), Weight::warning, Trouble::device_file_without_device,
          path + " exists, but no OpenCL device belongs to it: install " + hint);
  };
  const auto used = [](const std::string& path, const std::vector<DeviceInfo>& listed) {
    check(finding_of(file(path), listed), Weight::fine, Trouble::none, path + " can be used");
  };
  const DeviceInfo nvidia = opencl_gpu("NVIDIA Corporation"), amd = opencl_gpu("Advanced Micro Devices, Inc.");
  DeviceInfo on_cpu = opencl_gpu("AuthenticAMD"), onednn = nvidia;
  on_cpu.kind = DeviceKind::cpu;
  onednn.backend = "cpu";
  missing("/dev/nvidia0", {}, "nvidia-opencl-icd");
  missing("/dev/nvidia0", {amd, onednn}, "nvidia-opencl-icd");
  missing("/dev/kfd", {nvidia, on_cpu}, "mesa-opencl-icd");
  missing("/dev/dri/renderD128", {on_cpu}, "intel-opencl-icd");
  used("/dev/nvidia0", {amd, nvidia});
  used("/dev/kfd", {amd});
  used("/dev/dri/renderD128", {amd});
  used("/dev/nvidiactl", {});  // of no one GPU
}

TEST_CASE("little memory is told, of the machine and of a device", "[cli]") {
  MachineFacts facts = sound();
  check(findings_of(facts)[0], Weight::fine, Trouble::none, "16.0 GiB of host memory");
  facts.memory = kLittleMemory - 1;
  check(findings_of(facts)[0], Weight::warning, Trouble::little_memory, "is little: use a small --batch");
  facts.memory = 0;
  check(findings_of(facts)[0], Weight::fine, Trouble::none, "is unknown");

  DeviceInfo info = opencl_gpu("NVIDIA Corporation");
  for (const std::uint64_t enough : {std::uint64_t{0}, kLittleMemory}) {
    info.memory = enough;
    REQUIRE(findings_of(info).size() == 1);
    check(findings_of(info)[0], Weight::fine, Trouble::none, "taken: opencl:0");
  }
  info.memory = kLittleMemory / 2;
  REQUIRE(findings_of(info).size() == 2);
  check(findings_of(info)[1], Weight::warning, Trouble::little_memory, "its memory of 512.0 MiB is small");
}

TEST_CASE("a cache that cannot be written is told, and a oneDNN that does not fit", "[cli]") {
  MachineFacts facts = sound();
  check(findings_of(facts)[1], Weight::fine, Trouble::none, "stored in /home/me/.cache");
  check(findings_of(facts)[2], Weight::fine, Trouble::none, "oneDNN 2.6.3, as compiled with");
  facts.cache_error = "Read-only file system";
  check(findings_of(facts)[1], Weight::warning, Trouble::cache_not_kept,
        "cannot be stored in /home/me/.cache: Read-only file system. Each start");
  facts.cache.clear();
  check(findings_of(facts)[1], Weight::warning, Trouble::cache_not_kept, "set CONCORD_CACHE_DIR");
  facts.onednn->loaded = "3.1.0";
  check(findings_of(facts)[2], Weight::warning, Trouble::library_does_not_fit,
        "compiled with oneDNN 2.6.3, but 3.1.0 is loaded");
  facts.onednn.reset();
  check(findings_of(facts)[2], Weight::fine, Trouble::none, "no CPU backend");
}

TEST_CASE("the doctor's verdict is one sentence on one line, whatever was found", "[cli]") {
  const auto is_sentence = [](const std::string& verdict) {
    CHECK(verdict.find('\n') == std::string::npos);
    CHECK(verdict.find(". ") == std::string::npos);
    CHECK(verdict.ends_with("."));
    CHECK(verdict.size() < 200);
  };
  for (const TroubleWords& words : all_troubles()) {
    DoctorReport report(nullptr);
    report.add(warning(Trouble::little_memory, "little"));
    report.add(obstacle(words.trouble, "several. Sentences.\nAnd lines"));
    CHECK_FALSE(report.can_train());
    const std::string first = report.verdict("opencl:0\n(a GPU)");
    CHECK(first ==
          fmt::format("you cannot train on opencl:0 (a GPU): {}; see the obstacle above for more.", words.why));
    is_sentence(first);
    report.add(obstacle(Trouble::failed_check, "another"));
    CHECK(report.verdict("cpu") ==
          fmt::format("you cannot train on cpu: {}; see the obstacles above for more.", words.why));
  }
  DoctorReport sound(nullptr);
  sound.add(fine("well"));
  CHECK(sound.can_train());
  CHECK(sound.verdict("cpu") == "You can train on cpu; nothing is wrong.");
  sound.add(warning(Trouble::cache_not_kept, "several. Sentences"));
  CHECK(sound.can_train());
  is_sentence(sound.verdict("cpu"));
  CHECK(sound.verdict("cpu") == "You can train on cpu; see the warnings above.");
}

TEST_CASE("findings are told as they are found, and kept for JSON", "[cli]") {
  std::ostringstream out;
  DoctorReport report(&out);
  report.begin("devices");
  report.add(fine("one"));
  report.add(obstacle(Trouble::no_device, "none.\nNot one"));
  CHECK(out.str() == "devices\n  fine      one\n  obstacle  none.\n            Not one\n");
  const auto& findings = report.document().at("findings");
  CHECK(findings.size() == 2);
  CHECK_FALSE(findings[0].contains("trouble"));
  CHECK(findings[1].at("section") == "devices");
  CHECK(findings[1].at("weight") == "obstacle");
  CHECK(findings[1].at("trouble") == "No device matches");
  CHECK(findings[1].at("text") == "none.\nNot one");
}
