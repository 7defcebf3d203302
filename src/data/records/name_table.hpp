// NameTable: many names, one after the other in one block of memory: a million paths, keys. Internal to the module.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace concord::data {

class NameTable {
 public:
  void add(std::string_view name) {
    bytes_ += name;
    ends_.push_back(bytes_.size());
  }
  [[nodiscard]] std::size_t size() const { return ends_.size(); }
  /// Valid until the next `add`.
  [[nodiscard]] std::string_view operator[](std::size_t i) const {
    const std::uint64_t begin = i == 0 ? 0 : ends_[i - 1];
    return std::string_view(bytes_).substr(begin, ends_[i] - begin);
  }

 private:
  std::string bytes_;
  std::vector<std::uint64_t> ends_;
};

}  // namespace concord::data
