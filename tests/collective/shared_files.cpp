// Descriptors of files that ranks give each other.
#include "concord/collective/shared_files.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>

#include "collective/rank_threads.hpp"

using namespace concord;
using namespace concord::test;

TEST_CASE("each rank reads the files of the others", "[collective]") {
  constexpr std::size_t kRanks = 3;
  std::array<std::string, kRanks> read;
  const auto errors = on_ranks(kRanks, [&](const collective::GroupPtr& group) {
    const auto rank = static_cast<std::size_t>(group->rank());
    const collective::SharedMemory memory(16);  // a file without a name
    memory.bytes()[0] = static_cast<std::byte>('a' + group->rank());
    const int own = ::open(memory.path().c_str(), O_RDWR);
    const std::vector<int> files = collective::share_files(*group, own);
    for (const int file : files) {
      char letter = '-';
      if (file >= 0) static_cast<void>(::pread(file, &letter, 1, 0));
      read[rank] += letter;
      if (file >= 0) ::close(file);
    }
    ::close(own);
  });
  CHECK(errors == std::vector<std::string>(kRanks));
  CHECK(read[0] == "-bc");
  CHECK(read[1] == "a-c");
  CHECK(read[2] == "ab-");
}
