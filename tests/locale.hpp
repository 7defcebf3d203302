// Locales that tests run under. What the machine lacks is made of the system's sources, so that no such test is
// skipped.
#pragma once

#include <clocale>
#include <cstdlib>
#include <locale>
#include <optional>
#include <string>

#include "files.hpp"
#include "setting.hpp"

namespace concord::test {

/// A locale of the whole process, of C and of C++, for as long as this lives.
class ProcessLocale {
 public:
  /// `name` is such as "de_DE": its UTF-8 form. Throws Error where there is none and none can be made.
  explicit ProcessLocale(const std::string& name) {
    const std::string whole = name + ".UTF-8";
    if (std::setlocale(LC_ALL, whole.c_str()) == nullptr) make(name, whole);
    std::setlocale(LC_ALL, whole.c_str());
    before_ = std::locale::global(std::locale(whole.c_str()));
  }
  ProcessLocale(const ProcessLocale&) = delete;
  ProcessLocale& operator=(const ProcessLocale&) = delete;
  ~ProcessLocale() {
    std::locale::global(before_);
    std::setlocale(LC_ALL, "C");
  }
  /// Where it lies, for another process: what LOCPATH is to be; empty where the system has it.
  [[nodiscard]] std::string path() const { return folder_ ? folder_->path().string() : ""; }

 private:
  void make(const std::string& name, const std::string& whole) {
    folder_.emplace();
    // localedef warns by its exit code as well: what counts is whether the locale is there.
    const std::string command =
        "localedef -i " + name + " -f UTF-8 " + (*folder_ / whole).string() + " >/dev/null 2>&1";
    [[maybe_unused]] const int result = std::system(command.c_str());
    path_.emplace("LOCPATH", folder_->path().string());
    if (std::setlocale(LC_ALL, whole.c_str()) != nullptr) return;
    throw Error("there is no locale " + whole + " and localedef made none; install the package locales");
  }

  std::optional<TemporaryFolder> folder_;
  std::optional<Setting> path_;
  std::locale before_;
};

}  // namespace concord::test
