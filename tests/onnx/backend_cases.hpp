// The cases of ONNX's operators in Debian's libonnx-testdata: which count, and whether Concord is right.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "concord_test.hpp"

namespace concord::test {

struct BackendCase {
  std::string name;
  std::filesystem::path folder;
  bool is_first = false;  // the first case, by name, that has one of its operators
};

/// The cases with inputs and outputs of float, int32, int64 and bool alone, and without sequences, optional values,
/// strings, quantised operators and control flow: 896 of the 1,072 of version 1.12.
[[nodiscard]] std::vector<BackendCase> backend_cases();

/// An empty text if all outputs of all data sets have the recorded type, shape and values: |a − b| <= 1e-7 + 1e-3·|b|,
/// the rule of ONNX's own runner. Otherwise what is wrong.
[[nodiscard]] std::string fault_of(const BackendCase& one, const DevicePtr& device);

/// The names in a file of the folder of this test, with the reason of each.
[[nodiscard]] std::map<std::string, std::string> listed_cases(const std::string& file);

}  // namespace concord::test
