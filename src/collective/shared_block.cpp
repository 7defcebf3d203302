// Waiting is by futex on the counters, with looks at the processes of the other ranks.
#include "concord/collective/shared_block.hpp"

#include <fmt/format.h>
#include <linux/futex.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <string>
#include <utility>

#include "concord/collective/running_time.hpp"
#include "concord/core/check.hpp"

namespace concord::collective {
namespace {

constexpr int kSpins = 2000;                    // looks before a rank sleeps: some microseconds
constexpr std::chrono::milliseconds kLook{50};  // between looks at the processes of other ranks
constexpr std::size_t kAlign = 4096;

std::size_t aligned(std::size_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }

/// Sleeps until the counter is no longer `seen`, or for the time of a look.
void sleep_on(const Counter& counter, std::uint32_t seen) {
  const timespec patience{0, std::chrono::nanoseconds(kLook).count()};
  ::syscall(SYS_futex, reinterpret_cast<const std::uint32_t*>(&counter), FUTEX_WAIT, seen, &patience, nullptr, 0);
}

}  // namespace

void wake(Counter& counter) {
  ::syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&counter), FUTEX_WAKE, INT32_MAX, nullptr, nullptr, 0);
}

SharedBlock::Plan::Plan(int size) : ranks(static_cast<std::size_t>(size)) {
  seats = sizeof(Head);
  channels = seats + ranks * sizeof(Seat);
  slots = aligned(channels + ranks * ranks * sizeof(Channel));
  pieces = slots + ranks * 2 * kSlot;
  end = pieces + ranks * ranks * 2 * kPiece;
}

std::size_t SharedBlock::bytes(int size) { return Plan(size).end; }

SharedBlock::SharedBlock(std::shared_ptr<SharedMemory> memory, int rank, int size,
                         std::chrono::duration<double> deadline)
    : rank_(rank), size_(size), plan_(size), memory_(std::move(memory)), deadline_(deadline) {
  CONCORD_CHECK(memory_->bytes().size() == plan_.end, ArgumentError,
                "a group of {} ranks needs {} bytes of shared memory, got {}", size, plan_.end,
                memory_->bytes().size());
  seat(rank).process.store(::getpid());
}

SharedBlock::~SharedBlock() {
  seat(rank_).left.store(1);
  wake(seat(rank_).turn);
}

std::byte* SharedBlock::slot(int rank, std::uint32_t turn) const {
  return at<std::byte>(plan_.slots + (static_cast<std::size_t>(rank) * 2 + turn % 2) * kSlot);
}

std::byte* SharedBlock::piece(int from, int to, std::uint32_t number) const {
  return at<std::byte>(plan_.pieces + (pair(from, to) * 2 + number % 2) * kPiece);
}

void SharedBlock::wait_for(const Counter& counter, std::uint32_t target, int other) const {
  for (int i = 0; i < kSpins; ++i) {
    if (has_reached(counter.load(std::memory_order_acquire), target)) return;
  }
  RunningTime waited;
  for (;;) {
    const std::uint32_t seen = counter.load(std::memory_order_acquire);
    if (has_reached(seen, target)) return;
    if (waited.look() > deadline_) lose(other, Loss::silent);
    look_at(other);
    sleep_on(counter, seen);
  }
}

void SharedBlock::look_for_lost() const {
  for (int other = 0; other < size_; ++other) {
    if (other != rank_) look_at(other);
  }
}

bool SharedBlock::has_ended(int rank) const {
  const pid_t process = seat(rank).process.load();
  return process != 0 && ::kill(process, 0) != 0 && errno == ESRCH;
}

void SharedBlock::look_at(int other) const {
  if (head().lost.load() != 0) report();
  if (seat(other).left.load() != 0) lose(other, Loss::left);
  if (has_ended(other)) lose(other, Loss::ended);
}

void SharedBlock::mark_lost(int other, Loss loss) const {
  std::uint64_t nobody = 0;
  const auto reason = static_cast<std::uint64_t>(loss);
  if (!head().lost.compare_exchange_strong(nobody, reason << 32U | static_cast<std::uint32_t>(other + 1))) return;
  for (int rank = 0; rank < size_; ++rank) wake(seat(rank).turn);
}

void SharedBlock::lose(int other, Loss loss) const {
  mark_lost(other, loss);
  report();
}

void SharedBlock::report() const {
  const int lost = lost_rank();
  const pid_t process = seat(lost).process.load();
  switch (static_cast<Loss>(head().lost.load() >> 32U)) {
    case Loss::ended: throw RankLost(fmt::format("rank {} (process {}) has ended", lost, process));
    case Loss::left: throw RankLost(fmt::format("rank {} (process {}) has left the training", lost, process));
    case Loss::given_up: throw RankLost(fmt::format("rank {} (process {}) goes on without a rank", lost, process));
    default:
      throw RankLost(fmt::format("rank {} (process {}) did not answer for {:g} s; CONCORD_DEADLINE sets this time",
                                 lost, process, deadline_.count()));
  }
}

bool SharedBlock::have_all_answered() const {
  for (int rank = 0; rank < size_; ++rank) {
    const bool is_lost = rank == lost_rank() || seat(rank).left.load() != 0 || has_ended(rank);
    if (seat(rank).goes_on.load() == 0 && !is_lost) return false;
  }
  return true;
}

std::shared_ptr<SharedMemory> SharedBlock::decide() const {
  std::int32_t places = 0;
  for (int rank = 0; rank < size_; ++rank) {
    if (seat(rank).goes_on.load() != 0 && !has_ended(rank)) seat(rank).place.store(++places);
  }
  std::shared_ptr<SharedMemory> memory;
  if (places > 1) {
    memory = std::make_shared<SharedMemory>(bytes(places));
    const std::string path = memory->path().string();
    path.copy(head().path.data(), head().path.size() - 1);
  }
  head().survivors = places;
  head().decided.store(1, std::memory_order_release);
  wake(head().decided);
  return memory;
}

SharedBlock::Survivors SharedBlock::go_on() const {
  seat(rank_).goes_on.store(1);
  mark_lost(rank_, Loss::given_up);  // those that wait for this rank go on too
  RunningTime waited;
  std::shared_ptr<SharedMemory> memory;
  while (head().decided.load(std::memory_order_acquire) == 0) {
    const auto passed = waited.look();
    // Twice the time: a rank that decided and died before it was done.
    CONCORD_CHECK(passed <= 2 * deadline_, RankLost, "the ranks that are left did not agree on who goes on for {:g} s",
                  2 * deadline_.count());
    std::uint32_t nobody = 0;
    const bool may_decide = have_all_answered() || passed > deadline_;
    if (may_decide && head().deciding.compare_exchange_strong(nobody, 1)) {
      memory = decide();
    } else {
      sleep_on(head().decided, 0);
    }
  }
  const std::int32_t place = seat(rank_).place.load();
  CONCORD_CHECK(place > 0, RankLost, "the other ranks have gone on without rank {}, which did not answer for {:g} s",
                rank_, deadline_.count());
  if (!memory && head().survivors > 1) {
    memory = std::make_shared<SharedMemory>(head().path.data(), bytes(head().survivors));
  }
  return {memory, place - 1, head().survivors};
}

}  // namespace concord::collective
