// The implementation for systems with dlopen and access.
#include "concord/core/access.hpp"

#include <dlfcn.h>
#include <pwd.h>
#include <unistd.h>

namespace concord {

bool may_read_and_write(const std::filesystem::path& path) { return access(path.c_str(), R_OK | W_OK) == 0; }

std::optional<std::string> library_error(const std::string& name) {
  if (dlopen(name.c_str(), RTLD_LAZY | RTLD_LOCAL) != nullptr) return std::nullopt;
  const char* reason = dlerror();
  return reason != nullptr ? reason : "the system gives no reason";
}

SharedLibrary::SharedLibrary(const std::string& name) : handle_(dlopen(name.c_str(), RTLD_LAZY | RTLD_LOCAL)) {}

SharedLibrary::~SharedLibrary() {
  if (handle_ != nullptr) dlclose(handle_);
}

void* SharedLibrary::symbol(const char* name) const { return handle_ != nullptr ? dlsym(handle_, name) : nullptr; }

std::string user_name() {
  const passwd* user = getpwuid(geteuid());
  return user != nullptr ? user->pw_name : std::to_string(geteuid());
}

}  // namespace concord
