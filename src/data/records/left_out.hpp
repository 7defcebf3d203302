// LeftOut: files and samples that the records do not have, counted for one warning. Internal to the module.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace concord::data {

struct LeftOut {
  std::int64_t count = 0;
  std::string first;  // an example

  void add(std::string_view name) {
    if (count++ == 0) first = name;
  }
  void add(const LeftOut& other) {
    if (count == 0) first = other.first;
    count += other.count;
  }
};

/// Logs "<records>: <count> <what>, such as <first>", unless nothing is left out.
void warn_of(const std::string& records, const LeftOut& files, std::string_view what);

}  // namespace concord::data
