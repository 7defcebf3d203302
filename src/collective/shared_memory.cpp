// Each rank has a seat with a counter of turns and two slots for data, which it fills in alternating turns. A rank that
// has written turn t + 1 knows that all ranks have read its slot of turn t - 1, because they read before they go on.
// Waiting is by futex on the counters, with looks at the processes of the other ranks.
#include "concord/collective/shared_memory.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/futex.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <ctime>

#include "concord/core/check.hpp"
#include "concord/core/parallel.hpp"

namespace concord::collective {
namespace {

using Clock = std::chrono::steady_clock;
using Counter = std::atomic<std::uint32_t>;
static_assert(Counter::is_always_lock_free && sizeof(Counter) == 4);

constexpr std::size_t kSlot = std::size_t{32} << 20;    // bytes of a rank in one turn
constexpr std::size_t kChannel = std::size_t{1} << 20;  // bytes on their way from one rank to another
constexpr int kSpins = 2000;                            // looks before a rank sleeps: some microseconds
constexpr std::chrono::milliseconds kLook{50};          // between looks at the processes of other ranks

/// Why a group has ended.
enum class Loss : std::uint32_t { none, ended, left, silent };

struct alignas(64) Seat {
  Counter turn;                // turns written
  std::atomic<pid_t> process;  // 0: not here yet
  std::atomic<std::uint32_t> left;
};

struct alignas(64) Channel {
  Counter sent, received;  // pieces
};

struct alignas(64) Head {
  std::atomic<std::uint32_t> loss;  // a Loss; the first rank that is lost ends the group for all
  std::atomic<std::int32_t> lost;   // its rank
};

constexpr std::size_t kAlign = 4096;
constexpr std::size_t aligned(std::size_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }

/// Where everything lies in the block.
struct Plan {
  explicit Plan(int size) : ranks(static_cast<std::size_t>(size)) {
    seats = sizeof(Head);
    channels = seats + ranks * sizeof(Seat);
    slots = aligned(channels + ranks * ranks * sizeof(Channel));
    pieces = slots + ranks * 2 * kSlot;
    end = pieces + ranks * ranks * kChannel;
  }
  std::size_t ranks, seats, channels, slots, pieces, end;
};

void wake(Counter& counter) {
  ::syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&counter), FUTEX_WAKE, INT32_MAX, nullptr, nullptr, 0);
}

/// Sleeps until the counter is no longer `seen`, or for the time of a look.
void sleep_on(const Counter& counter, std::uint32_t seen) {
  const timespec patience{0, std::chrono::nanoseconds(kLook).count()};
  ::syscall(SYS_futex, reinterpret_cast<const std::uint32_t*>(&counter), FUTEX_WAIT, seen, &patience, nullptr, 0);
}

/// Counters wrap around.
bool has_reached(std::uint32_t counter, std::uint32_t target) {
  return static_cast<std::int32_t>(counter - target) >= 0;
}

class SharedGroup final : public Group {
 public:
  SharedGroup(std::shared_ptr<SharedMemory> memory, int rank, int size, std::chrono::duration<double> deadline)
      : Group(rank, size), plan_(size), memory_(std::move(memory)), deadline_(deadline) {
    CONCORD_CHECK(memory_->bytes().size() == plan_.end, ArgumentError,
                  "a group of {} ranks needs {} bytes of shared memory, got {}", size, plan_.end,
                  memory_->bytes().size());
    seat(rank).process.store(::getpid());
  }
  SharedGroup(const SharedGroup&) = delete;
  SharedGroup& operator=(const SharedGroup&) = delete;
  ~SharedGroup() override {
    seat(rank()).left.store(1);
    wake(seat(rank()).turn);
  }

  [[nodiscard]] std::string transport() const override { return "host"; }

  void reduce_scatter(std::span<float> values, std::span<const float> start) override {
    CONCORD_CHECK(start.empty() || start.size() == values.size(), ArgumentError,
                  "a sum of {} numbers cannot start from {}", values.size(), start.size());
    const std::size_t each = part_of(values.size(), size(), 0).size();
    const std::size_t segment = kSlot / plan_.ranks / sizeof(float);
    for (std::size_t done = 0; done < each; done += segment) {
      const auto piece = [&](int of) {
        const Part part = part_of(values.size(), size(), of);
        return Part{std::min(part.begin + done, part.end), std::min(part.begin + done + segment, part.end)};
      };
      for (int to = 0; to < size(); ++to) {
        const Part part = piece(to);
        const float* const from = values.data() + part.begin;
        float* const place = floats(rank()) + static_cast<std::size_t>(to) * segment;
        for_blocks(part.size(), [&](std::size_t, std::size_t first, std::size_t count) {
          std::copy_n(from + first, count, place + first);
        });
      }
      take_turn();
      const Part part = piece(rank());
      float* const sums = values.data() + part.begin;
      for_blocks(part.size(), [&](std::size_t, std::size_t first, std::size_t count) {
        if (start.empty()) {
          std::fill_n(sums + first, count, 0.0F);
        } else {
          std::copy_n(start.data() + part.begin + first, count, sums + first);
        }
        for (int from = 0; from < size(); ++from) {
          const float* const terms = floats_of_turn(from) + static_cast<std::size_t>(rank()) * segment;
          for (std::size_t i = first; i < first + count; ++i) sums[i] += terms[i];
        }
      });
    }
  }

  void all_gather(std::span<std::byte> values, std::size_t element) override {
    CONCORD_CHECK(element > 0 && values.size() % element == 0, ArgumentError,
                  "{} bytes are no whole number of elements of {} bytes", values.size(), element);
    const auto part = [&](int of) {
      const Part elements = part_of(values.size() / element, size(), of);
      return values.subspan(elements.begin * element, elements.size() * element);
    };
    const std::size_t each = part(0).size();
    for (std::size_t done = 0; done < each; done += kSlot) {
      const auto piece = [&](int of) {
        const std::span<std::byte> whole = part(of);
        const std::size_t begin = std::min(done, whole.size());
        return whole.subspan(begin, std::min(kSlot, whole.size() - begin));
      };
      std::ranges::copy(piece(rank()), slot(rank(), turn_ + 1));
      take_turn();
      for (int from = 0; from < size(); ++from) {
        if (from == rank()) continue;
        const std::span<std::byte> to = piece(from);
        for_blocks(to.size(), [&](std::size_t, std::size_t first, std::size_t count) {
          std::copy_n(slot(from, turn_) + first, count, to.begin() + static_cast<std::ptrdiff_t>(first));
        });
      }
    }
  }

  void broadcast(std::span<std::byte> bytes, int root) override {
    for (std::size_t done = 0; done < bytes.size(); done += kSlot) {
      const std::span<std::byte> piece = bytes.subspan(done, std::min(kSlot, bytes.size() - done));
      if (rank() == root) std::ranges::copy(piece, slot(root, turn_ + 1));
      take_turn();
      if (rank() != root) std::copy_n(slot(root, turn_), piece.size(), piece.begin());
    }
  }

  void send(std::span<const std::byte> bytes, int to) override {
    Channel& way = channel(rank(), to);
    for (std::size_t done = 0; done < bytes.size(); done += kPiece) {
      const std::span<const std::byte> piece = bytes.subspan(done, std::min(kPiece, bytes.size() - done));
      const std::uint32_t number = way.sent.load(std::memory_order_relaxed);
      wait_for(way.received, number - 1, to);  // of the two places one is free
      std::ranges::copy(piece, piece_of(rank(), to, number));
      way.sent.store(number + 1, std::memory_order_release);
      wake(way.sent);
    }
  }

  void receive(std::span<std::byte> bytes, int from) override {
    Channel& way = channel(from, rank());
    for (std::size_t done = 0; done < bytes.size(); done += kPiece) {
      const std::span<std::byte> piece = bytes.subspan(done, std::min(kPiece, bytes.size() - done));
      const std::uint32_t number = way.received.load(std::memory_order_relaxed);
      wait_for(way.sent, number + 1, from);
      std::copy_n(piece_of(from, rank(), number), piece.size(), piece.begin());
      way.received.store(number + 1, std::memory_order_release);
      wake(way.received);
    }
  }

  void barrier() override { take_turn(); }

 private:
  static constexpr std::size_t kPiece = kChannel / 2;

  [[nodiscard]] std::byte* at(std::size_t place) const { return memory_->bytes().data() + place; }
  [[nodiscard]] Head& head() const { return *reinterpret_cast<Head*>(at(0)); }
  [[nodiscard]] Seat& seat(int rank) const {
    return reinterpret_cast<Seat*>(at(plan_.seats))[static_cast<std::size_t>(rank)];
  }
  [[nodiscard]] std::size_t pair(int from, int to) const {
    return static_cast<std::size_t>(from) * plan_.ranks + static_cast<std::size_t>(to);
  }
  [[nodiscard]] Channel& channel(int from, int to) const {
    return reinterpret_cast<Channel*>(at(plan_.channels))[pair(from, to)];
  }
  [[nodiscard]] std::byte* piece_of(int from, int to, std::uint32_t number) const {
    return at(plan_.pieces + pair(from, to) * kChannel + number % 2 * kPiece);
  }
  [[nodiscard]] std::byte* slot(int rank, std::uint32_t turn) const {
    return at(plan_.slots + (static_cast<std::size_t>(rank) * 2 + turn % 2) * kSlot);
  }
  [[nodiscard]] float* floats(int rank) const { return reinterpret_cast<float*>(slot(rank, turn_ + 1)); }
  [[nodiscard]] const float* floats_of_turn(int rank) const {
    return reinterpret_cast<const float*>(slot(rank, turn_));
  }

  /// Says that this rank has written its slot of the next turn, and waits until all have.
  void take_turn() {
    ++turn_;
    seat(rank()).turn.store(turn_, std::memory_order_release);
    wake(seat(rank()).turn);
    for (int other = 0; other < size(); ++other) wait_for(seat(other).turn, turn_, other);
  }

  void wait_for(const Counter& counter, std::uint32_t target, int other) const {
    for (int i = 0; i < kSpins; ++i) {
      if (has_reached(counter.load(std::memory_order_acquire), target)) return;
    }
    const Clock::time_point begin = Clock::now();
    for (;;) {
      const std::uint32_t seen = counter.load(std::memory_order_acquire);
      if (has_reached(seen, target)) return;
      if (Clock::now() - begin > deadline_) lose(other, Loss::silent);
      look_at(other);
      sleep_on(counter, seen);
    }
  }

  /// Throws if the group has ended or this rank has.
  void look_at(int other) const {
    if (head().loss.load() != static_cast<std::uint32_t>(Loss::none)) report();
    const pid_t process = seat(other).process.load();
    if (seat(other).left.load() != 0) lose(other, Loss::left);
    if (process != 0 && ::kill(process, 0) != 0 && errno == ESRCH) lose(other, Loss::ended);
  }

  [[noreturn]] void lose(int other, Loss loss) const {
    std::uint32_t none = static_cast<std::uint32_t>(Loss::none);
    std::int32_t nobody = 0;  // ranks count from 1 here
    if (head().lost.compare_exchange_strong(nobody, other + 1)) {
      head().loss.compare_exchange_strong(none, static_cast<std::uint32_t>(loss));
      for (int rank = 0; rank < size(); ++rank) wake(seat(rank).turn);
    }
    report();
  }

  [[noreturn]] void report() const {
    while (head().loss.load() == static_cast<std::uint32_t>(Loss::none)) ::usleep(100);
    const int lost = head().lost.load() - 1;
    const pid_t process = seat(lost).process.load();
    switch (static_cast<Loss>(head().loss.load())) {
      case Loss::ended: throw RankLost(fmt::format("rank {} (process {}) has ended", lost, process));
      case Loss::left: throw RankLost(fmt::format("rank {} (process {}) has left the training", lost, process));
      default:
        throw RankLost(fmt::format("rank {} (process {}) did not answer for {:g} s; CONCORD_DEADLINE sets this time",
                                   lost, process, deadline_.count()));
    }
  }

  const Plan plan_;
  const std::shared_ptr<SharedMemory> memory_;
  const std::chrono::duration<double> deadline_;
  std::uint32_t turn_ = 0;
};

}  // namespace

SharedMemory::SharedMemory(std::size_t bytes) {
  file_ = ::memfd_create("concord-group", MFD_CLOEXEC);
  if (file_ < 0 || ::ftruncate(file_, static_cast<off_t>(bytes)) != 0) {
    const int error = errno;
    if (file_ >= 0) ::close(file_);
    throw OutOfMemory(fmt::format("no memory to share between the processes of a training: {}", std::strerror(error)));
  }
  map(bytes);
}

SharedMemory::SharedMemory(const std::filesystem::path& path, std::size_t bytes) {
  file_ = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  CONCORD_CHECK(file_ >= 0, IoError,
                "the shared memory of rank 0, {}, cannot be opened: {}. The ranks of one machine must run as the same "
                "user and in the same container",
                path.string(), std::strerror(errno));
  struct stat status {};
  const bool fits = ::fstat(file_, &status) == 0 && static_cast<std::size_t>(status.st_size) == bytes;
  if (!fits) {
    ::close(file_);
    throw IoError(fmt::format("{} is not the shared memory of a group of this size", path.string()));
  }
  map(bytes);
}

void SharedMemory::map(std::size_t bytes) {
  void* const place = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
  if (place == MAP_FAILED) {
    const int error = errno;
    ::close(file_);
    throw OutOfMemory(fmt::format("{} MiB of shared memory cannot be mapped: {}", bytes >> 20, std::strerror(error)));
  }
  bytes_ = {static_cast<std::byte*>(place), bytes};
}

SharedMemory::~SharedMemory() {
  ::munmap(bytes_.data(), bytes_.size());
  ::close(file_);
}

std::filesystem::path SharedMemory::path() const { return fmt::format("/proc/{}/fd/{}", ::getpid(), file_); }

std::size_t shared_bytes(int size) { return Plan(size).end; }

GroupPtr make_shared_group(std::shared_ptr<SharedMemory> memory, int rank, int size,
                           std::chrono::duration<double> deadline) {
  return std::make_shared<SharedGroup>(std::move(memory), rank, size, deadline);
}

std::vector<GroupPtr> make_groups_of_threads(int size, std::chrono::duration<double> deadline) {
  const auto memory = std::make_shared<SharedMemory>(shared_bytes(size));
  std::vector<GroupPtr> groups;
  for (int rank = 0; rank < size; ++rank) groups.push_back(make_shared_group(memory, rank, size, deadline));
  return groups;
}

}  // namespace concord::collective
