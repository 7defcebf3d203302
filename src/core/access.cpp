// The implementation for systems with dlopen and access.
#include "concord/core/access.hpp"

#include <dlfcn.h>
#include <grp.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

namespace concord {

Permission permission_of(const std::filesystem::path& path) {
  Permission permission;
  permission.ours = access(path.c_str(), R_OK | W_OK) == 0;
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return permission;
  constexpr mode_t kBoth = S_IRGRP | S_IWGRP;
  permission.of_group = status.st_gid != 0 && (status.st_mode & kBoth) == kBoth;
  const group* const named = getgrgid(status.st_gid);
  permission.group = named != nullptr ? named->gr_name : std::to_string(status.st_gid);
  return permission;
}

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
