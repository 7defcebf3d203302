// Environment variables and options of CONCORD_DEBUG that a test sets.
#pragma once

#include <cstdlib>
#include <optional>
#include <string>

#include "concord/core/platform.hpp"

namespace concord::test {

/// An environment variable for as long as this lives.
class Setting {
 public:
  Setting(const char* name, const std::string& value) : name_(name), before_(environment(name)) {
    setenv(name, value.c_str(), 1);
  }
  Setting(const Setting&) = delete;
  Setting& operator=(const Setting&) = delete;
  ~Setting() { before_ ? setenv(name_, before_->c_str(), 1) : unsetenv(name_); }

 private:
  const char* name_;
  std::optional<std::string> before_;
};

/// CONCORD_DEBUG with `options` behind those that are set, whose later values count: "kernels=gpu,gemm=tiled".
inline std::string with_debug(const std::string& options) {
  const auto before = environment("CONCORD_DEBUG");
  return before ? *before + "," + options : options;
}

/// Options of CONCORD_DEBUG for as long as this lives.
class DebugOption {
 public:
  explicit DebugOption(const std::string& options) : setting_("CONCORD_DEBUG", with_debug(options)) {}
  DebugOption(const std::string& key, const std::string& value) : DebugOption(key + "=" + value) {}

 private:
  Setting setting_;
};

}  // namespace concord::test
