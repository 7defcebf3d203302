// A block without a name, that other processes open by the descriptor of the one that made it.
#include "concord/collective/shared_memory.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "concord/core/check.hpp"

namespace concord::collective {

SharedMemory::SharedMemory(std::size_t bytes) {
  file_ = OpenFile(::memfd_create("concord-group", MFD_CLOEXEC));
  CONCORD_CHECK(file_.is_open() && ::ftruncate(file_.get(), static_cast<off_t>(bytes)) == 0, OutOfMemory,
                "no memory to share between the processes of a training: {}", std::strerror(errno));
  map(bytes);
}

SharedMemory::SharedMemory(const std::filesystem::path& path, std::size_t bytes) {
  file_ = OpenFile(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  CONCORD_CHECK(file_.is_open(), IoError,
                "the shared memory of rank 0, {}, cannot be opened: {}. The ranks of one machine must run as the same "
                "user and in the same container",
                path.string(), std::strerror(errno));
  struct stat status {};
  CONCORD_CHECK(::fstat(file_.get(), &status) == 0 && static_cast<std::size_t>(status.st_size) == bytes, IoError,
                "{} is not the shared memory of a group of this size", path.string());
  map(bytes);
}

void SharedMemory::map(std::size_t bytes) {
  void* const place = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_.get(), 0);
  CONCORD_CHECK(place != MAP_FAILED, OutOfMemory, "{} MiB of shared memory cannot be mapped: {}", bytes >> 20,
                std::strerror(errno));
  bytes_ = {static_cast<std::byte*>(place), bytes};
}

SharedMemory::~SharedMemory() { ::munmap(bytes_.data(), bytes_.size()); }

std::filesystem::path SharedMemory::path() const { return fmt::format("/proc/{}/fd/{}", ::getpid(), file_.get()); }

}  // namespace concord::collective
