// The schedule of a training step as an MPI program: what `concord plan` predicts, done by another simulator (SimGrid's
// SMPI, smpirun) or by real processes (mpirun). Each rank computes, that is, lets time pass, and exchanges its buckets
// by messages, all to all or around a ring, beside the backward pass. Rank 0 prints the mean time of a step in
// nanoseconds.
//
//   schedule FILE direct|ring STEPS [MESSAGES]
//
// FILE has lines "backward SECONDS" (its end, from the begin of the step), "rest SECONDS" (update and idle time) and
// "bucket READY BYTES" in the order of the exchange. An exchange has two phases: the parts of each rank go to all, and
// the sums of each rank go to all. With MESSAGES, each rank sends only so many in the first phase, and nothing in the
// second: for numbers of ranks whose whole exchange would take a simulator hours.
#include <mpi.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#ifdef SMPI_SIMULATED
#include <smpi/smpi.h>
#include <unistd.h>
#define CONCORD_SLEEP(seconds) smpi_usleep(static_cast<useconds_t>((seconds)*1e6))
#else
#include <time.h>
#endif

namespace {

struct Bucket {
  double ready;  // seconds from the begin of the step
  double bytes;
};

struct Schedule {
  double backward = 0, rest = 0;
  std::vector<Bucket> buckets;
};

Schedule read_schedule(const char* file) {
  Schedule schedule;
  std::ifstream in(file);
  std::string key;
  double value = 0;
  while (in >> key >> value) {
    if (key == "backward") schedule.backward = value;
    if (key == "rest") schedule.rest = value;
    if (key != "bucket") continue;
    schedule.buckets.push_back({value, 0});
    in >> schedule.buckets.back().bytes;
  }
  if (schedule.buckets.empty()) {
    std::fputs("schedule: the file has no bucket\n", stderr);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  return schedule;
}

/// Lets the time of a computation pass.
void compute_until(double time) {
  const double seconds = time - MPI_Wtime();
  if (seconds <= 0) return;
#ifdef SMPI_SIMULATED
  smpi_execute(seconds);
#else
  timespec left{static_cast<time_t>(seconds), static_cast<long>((seconds - std::floor(seconds)) * 1e9)};
  while (nanosleep(&left, &left) != 0) {
  }
#endif
}

class Ranks {
 public:
  Ranks() {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
  }
  [[nodiscard]] int rank() const { return rank_; }

  void exchange(double bytes, bool is_ring, int messages) {
    const auto part = static_cast<int>(std::ceil(bytes / 4 / size_)) * 4;
    if (static_cast<std::size_t>(part) > sent_.size()) {
      sent_.resize(static_cast<std::size_t>(part));
      received_.resize(static_cast<std::size_t>(part));
    }
    const int count = messages > 0 ? messages : size_ - 1;
    for (int phase = 0; phase < (messages > 0 ? 1 : 2); ++phase) {
      if (is_ring) {
        for (int round = 0; round < count; ++round) swap(part, (rank_ + 1) % size_, (rank_ + size_ - 1) % size_);
      } else {
        all_to_all(part, count);
      }
    }
  }

 private:
  void swap(int part, int to, int from) {
    MPI_Sendrecv(sent_.data(), part, MPI_BYTE, to, 0, received_.data(), part, MPI_BYTE, from, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
  }

  /// To r + 1, r + 2, …; so many messages are on their way that the port never waits for the latency.
  void all_to_all(int part, int count) {
    constexpr int kWindow = 32;
    std::vector<std::array<MPI_Request, 2>> window(kWindow, {MPI_REQUEST_NULL, MPI_REQUEST_NULL});
    for (int order = 1; order <= count; ++order) {
      std::array<MPI_Request, 2>& oldest = window[static_cast<std::size_t>(order % kWindow)];
      MPI_Waitall(2, oldest.data(), MPI_STATUSES_IGNORE);
      MPI_Irecv(received_.data(), part, MPI_BYTE, (rank_ + size_ - order) % size_, 0, MPI_COMM_WORLD, oldest.data());
      MPI_Isend(sent_.data(), part, MPI_BYTE, (rank_ + order) % size_, 0, MPI_COMM_WORLD, &oldest[1]);
    }
    for (std::array<MPI_Request, 2>& rest : window) MPI_Waitall(2, rest.data(), MPI_STATUSES_IGNORE);
  }

  int rank_ = 0, size_ = 1;
  std::vector<char> sent_, received_;  // contents do not matter
};

double step(Ranks& ranks, const Schedule& schedule, bool is_ring, int messages) {
  const double begin = MPI_Wtime();
  for (const Bucket& bucket : schedule.buckets) {
    compute_until(begin + bucket.ready);
    ranks.exchange(bucket.bytes, is_ring, messages);
  }
  compute_until(begin + schedule.backward);
  compute_until(MPI_Wtime() + schedule.rest);
  return MPI_Wtime() - begin;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  if (argc != 4 && argc != 5) {
    std::fputs("usage: schedule FILE direct|ring STEPS [MESSAGES]\n", stderr);
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  const Schedule schedule = read_schedule(argv[1]);
  const bool is_ring = std::strcmp(argv[2], "ring") == 0;
  const int steps = std::atoi(argv[3]), messages = argc == 5 ? std::atoi(argv[4]) : 0;
  Ranks ranks;
  if (steps > 1) step(ranks, schedule, is_ring, messages);  // connections are made
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin = MPI_Wtime();
  for (int i = 0; i < steps; ++i) step(ranks, schedule, is_ring, messages);
  const double seconds = (MPI_Wtime() - begin) / std::max(steps, 1);
  if (ranks.rank() == 0) std::puts(std::to_string(std::llround(seconds * 1e9)).c_str());
  MPI_Finalize();
  return 0;
}
