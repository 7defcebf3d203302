// Published files of weights, which are not part of the project: $CONCORD_MODEL_DIR, else ../shared/models beside it.
#pragma once

#include <filesystem>
#include <iostream>
#include <optional>
#include <string>

#include "concord/core/platform.hpp"
#include "concord_test.hpp"

namespace concord::test {

/// The path of a file; nothing if it is not there, which is reported as skipped.
[[nodiscard]] inline std::optional<std::filesystem::path> model_file(const std::string& name) {
  const std::filesystem::path folder =
      environment("CONCORD_MODEL_DIR")
          .value_or((folder_of_tests().parent_path().parent_path() / "shared/models").string());
  if (std::filesystem::exists(folder / name)) return folder / name;
  std::cout << "skipped: there is no " << name << " in " << folder.string() << "\n";
  return std::nullopt;
}

}  // namespace concord::test
