// What the system lets this process use: device files and shared libraries. For `concord doctor` and energy counters.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>

namespace concord {

/// Who may read and write an existing file or device.
struct Permission {
  bool ours = false;      // this process
  bool of_group = false;  // members of its group, which is not root's
  std::string group;      // its number where it has no name
};
[[nodiscard]] Permission permission_of(const std::filesystem::path& path);

/// Why a shared library does not load, in the words of the system; nothing when it does. It stays loaded.
[[nodiscard]] std::optional<std::string> library_error(const std::string& name);

/// A shared library that is loaded when it is needed, for as long as this lives; one that does not load has no
/// function.
class SharedLibrary {
 public:
  explicit SharedLibrary(const std::string& name);
  SharedLibrary(SharedLibrary&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  SharedLibrary& operator=(SharedLibrary&&) = delete;
  ~SharedLibrary();
  /// Whether it has a function of this name; if so, where. The type is the caller's word.
  template <class Result, class... Arguments>
  [[nodiscard]] bool find(const char* name, Result (*&function)(Arguments...)) const {
    function = reinterpret_cast<Result (*)(Arguments...)>(symbol(name));
    return function != nullptr;
  }

 private:
  [[nodiscard]] void* symbol(const char* name) const;
  void* handle_;
};

/// The user this process runs as; its number where it has no name.
[[nodiscard]] std::string user_name();

}  // namespace concord
