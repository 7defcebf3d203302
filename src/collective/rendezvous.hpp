// Rendezvous: where the launchers of several machines meet, number their ranks, and learn how the others end. Internal
// to the library.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "concord/collective/machines.hpp"
#include "concord/collective/store.hpp"

namespace concord::collective {

/// The launcher of this machine, among those of all machines.
class Rendezvous {
 public:
  /// Meets the launchers of the other machines. If the host is this machine, serves the store. Waits until all machines
  /// have come; at the deadline Machines::fewest are enough. A launcher that has come and ended before the start does
  /// not count. Returns null if `is_interrupted` returns true.
  /// `least`: the training goes on while so many ranks are left, counted over all machines. 0: as many as the fewest
  /// machines bring; all, if Machines::fewest is 0.
  /// Throws RankLost if too few machines come within the deadline; NotSupported if the machines differ in their version
  /// or options, and on a machine that comes after the start; IoError if the port is in use or the host is unknown.
  [[nodiscard]] static std::unique_ptr<Rendezvous> meet(const Machines& machines, int ranks,
                                                        const std::function<bool()>& is_interrupted, int least = 0);
  Rendezvous(const Rendezvous&) = delete;
  Rendezvous& operator=(const Rendezvous&) = delete;
  ~Rendezvous();

  /// The number of the first rank of this machine. Rank 0 is on the machine that serves the store. The other machines
  /// follow in the order of their names and addresses.
  [[nodiscard]] int first_rank() const { return first_rank_; }
  /// Of all machines.
  [[nodiscard]] int ranks() const { return ranks_; }
  /// The training goes on while so many ranks are left. 0: only with all.
  [[nodiscard]] int least() const { return least_; }

  /// Why the training ended before its time.
  struct End {
    bool by_interrupt = false;
    std::string failure;  // "rank 3 (opencl:0 on node-b) ended with exit code 1"
  };
  /// Tells the other machines why this one ends. If another machine was first, returns what that one told; so all
  /// machines name the same reason.
  End tell(const End& end);
  /// What another machine told, or that the store is gone. Nothing while the training goes on.
  [[nodiscard]] std::optional<End> told() const;
  /// For a training that does not go on without a lost rank: the message about the rank that was missed first, if it is
  /// on another machine.
  [[nodiscard]] std::optional<std::string> missed_elsewhere();
  /// Enters that a rank of this machine has failed. Returns how many ranks are left on all machines; 0 if the store is
  /// gone.
  [[nodiscard]] int ranks_without(int rank);
  /// The list of the ranks that go on after the loss number `time` (survivors_name), once they have agreed on it.
  [[nodiscard]] std::optional<std::string> survivors(int time) const;
  /// Call this after the ranks of this machine have ended without a failure. Waits until those of the other machines
  /// have ended too, at most for the deadline or until `is_interrupted`. If they may go on without the ranks of this
  /// machine, waits as long as they run.
  void finish(const std::function<bool()>& is_interrupted);

 private:
  /// A machine of the training, and its ranks.
  struct Range {
    int place = 0, first = 0, ranks = 0;
    std::string id;
  };
  Rendezvous(const Machines& machines, std::unique_ptr<StoreServer> server, int least);
  /// Waits for the start, and numbers the ranks. Returns false if it was interrupted, as `arrive` does.
  [[nodiscard]] bool gather(int ranks, const std::function<bool()>& is_interrupted);
  /// Connects to the store.
  [[nodiscard]] bool arrive(const std::function<bool()>& is_interrupted);
  /// Enters this machine, and sets its place.
  [[nodiscard]] Machine enter(int ranks);
  /// Adds to `come` the machines that have come since. Ends the training if one differs from `own` where it must not.
  void read_arrivals(std::vector<Machine>& come, const Machine& own);
  /// The places of the machines that start, once this is decided. `there`: the places of those that have come.
  [[nodiscard]] std::optional<std::vector<int>> places_of_start(const std::vector<int>& there, bool is_late);
  void number_ranks(std::vector<Machine> machines);
  void watch();
  /// Whether the store has this text now.
  [[nodiscard]] bool has(const std::string& name);

  Machines machines_;
  std::unique_ptr<StoreServer> server_;
  std::unique_ptr<Store> store_;
  int place_ = 0;                 // in the order of arrival
  std::vector<std::string> met_;  // the ids of the others that have come
  int first_rank_ = 0, ranks_ = 0, least_ = 0;
  std::vector<Range> ranges_;
  std::string server_done_;  // the name of its text

  mutable std::mutex mutex_;
  std::optional<End> told_;
  std::vector<std::string> survivors_;
  bool is_over_ = false;
  std::thread watcher_;
};

}  // namespace concord::collective
