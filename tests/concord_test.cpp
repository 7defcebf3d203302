// The test program's main function and its list of devices.
#define CATCH_CONFIG_RUNNER
#include "concord_test.hpp"

#include <iostream>
#include <mutex>
#include <optional>
#include <sstream>

#include "concord/core/platform.hpp"
#include "locale.hpp"

namespace concord::test {
namespace {

std::vector<std::string> wanted_devices() {
  std::vector<std::string> selectors;
  if (const auto list = environment("CONCORD_TEST_DEVICES")) {
    std::istringstream stream(*list);
    for (std::string selector; std::getline(stream, selector, ',');) selectors.push_back(selector);
  } else {
    for (const DeviceInfo& info : Device::list()) selectors.push_back(info.id);
  }
  return selectors;
}

std::vector<DevicePtr> open_devices() {
  std::vector<DevicePtr> opened;
  for (const std::string& selector : wanted_devices()) {
    try {
      opened.push_back(Device::open(selector));
      const DeviceInfo& info = opened.back()->info();
      std::cerr << "testing on " << info.id << ": " << info.name << " (" << info.platform << ")\n";
    } catch (const DeviceError& error) {
      if (environment("CONCORD_TEST_DEVICES")) throw;  // asked for by name: its absence is a failure
      std::cerr << "skipped: device '" << selector << "': " << error.what() << "\n";
    }
  }
  for (const std::string backend : {"onednn", "opencl"}) {
    const auto is_of_backend = [&](const DevicePtr& device) { return device->info().backend == backend; };
    if (std::ranges::none_of(opened, is_of_backend)) std::cerr << "skipped: tests on " << backend << ": no device\n";
  }
  if (opened.empty()) throw DeviceError("there is no device to test on");
  return opened;
}

std::vector<DevicePtr>& opened_devices() {
  static std::vector<DevicePtr> opened;
  return opened;
}

std::vector<std::shared_ptr<const Program>>& kept_programs() {
  static std::vector<std::shared_ptr<const Program>> kept;
  return kept;
}

}  // namespace

std::filesystem::path folder_of_tests() { return environment("CONCORD_TEST_DIR").value_or(CONCORD_TEST_DIR); }

void keep(std::shared_ptr<const Program> program) { kept_programs().push_back(std::move(program)); }

const std::vector<DevicePtr>& devices() {
  static std::once_flag opened;  // ranks may ask in several threads
  std::call_once(opened, [] { opened_devices() = open_devices(); });
  return opened_devices();
}

}  // namespace concord::test

int main(int argc, char** argv) {
  std::optional<concord::test::ProcessLocale> locale;  // CTest runs the core of the tests under one with a comma
  if (const auto name = concord::environment("CONCORD_TEST_LOCALE")) locale.emplace(*name);
  const int result = Catch::Session().run(argc, argv);
  // Before the end of the process: drivers unload in an order of their own.
  concord::test::kept_programs().clear();
  concord::test::opened_devices().clear();
  return result;
}
