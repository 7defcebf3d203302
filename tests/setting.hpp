// An environment variable that a test sets.
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

}  // namespace concord::test
