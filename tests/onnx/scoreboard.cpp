// The scoreboard: all cases of ONNX's operators that count, on every device. The file not_right.txt lists those that
// are not right, each with its reason; a listed case that is right is as wrong as an unlisted one that is not. On
// OpenCL devices the first case of each operator is tried, with CONCORD_ONNX_CASES=all every one.
#include <algorithm>
#include <iostream>

#include "concord/core/platform.hpp"
#include "onnx/backend_cases.hpp"
#include "onnx/onnx_test.hpp"

using namespace concord;
using namespace concord::test;

TEST_CASE("ONNX's own cases of its operators", "[onnx]") {
  const std::vector<BackendCase> cases = backend_cases();
  if (cases.empty()) {
    WARN("skipped: libonnx-testdata is not installed");
    return;
  }
  CHECK(cases.size() == 896);  // of libonnx-testdata 1.12
  const auto listed = listed_cases("not_right.txt");
  for (const auto& [name, reason] : listed) {
    INFO(name << " is listed, but is no case");
    CHECK(std::ranges::find(cases, name, &BackendCase::name) != cases.end());
  }
  // Building the kernels of all cases takes minutes on an OpenCL device.
  const bool all = environment("CONCORD_ONNX_CASES") == "all";
  for (const DevicePtr& device : devices()) {
    int right = 0, tried = 0;
    for (const BackendCase& one : cases) {
      if (!all && !one.is_first && device->info().backend != "onednn") continue;
      ++tried;
      const std::string fault = fault_of(one, device);
      right += fault.empty() ? 1 : 0;
      INFO(one.name << " on " << device->info().id);
      const auto reason = listed.find(one.name);
      if (reason == listed.end()) {
        CHECK(fault == "");
      } else if (fault.empty()) {
        FAIL_CHECK("it is right; take it from not_right.txt: " << reason->second);
      }
    }
    std::cerr << device->info().id << ": " << right << " right of " << tried << " cases of ONNX's operators; there are "
              << cases.size() << (tried < 896 ? "; CONCORD_ONNX_CASES=all tries them all\n" : "\n");
  }
}
