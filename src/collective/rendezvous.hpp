// Rendezvous: where the launchers of several machines meet, number their ranks, and learn how the others end. Internal
// to the library.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "concord/collective/store.hpp"

namespace concord::collective {

/// The machines of one training.
struct Machines {
  int count = 1;
  std::string host;  // the machine that serves the store
  std::uint16_t port = 0;
  int fewest = 0;  // so many start at the deadline, if `count` have not come; 0: all or none
};

/// Reads "HOST:PORT". Throws ArgumentError.
[[nodiscard]] Machines machines_at(const std::string& place, int count, int fewest = 0);

/// One launcher among those of all machines.
class Rendezvous {
 public:
  /// Serves the store if the host is this machine, and waits for the other machines. Null if `is_interrupted` says so.
  /// `least`: of all ranks, with so many the training goes on when others are lost; 0: with as many as the fewest
  /// machines may bring, if Machines::fewest is set, else with all only. Throws RankLost if they do not come within the
  /// deadline, NotSupported for machines that do not fit together and one that comes too late, and IoError for a port
  /// that is in use and a host that does not exist.
  [[nodiscard]] static std::unique_ptr<Rendezvous> meet(const Machines& machines, int ranks,
                                                        const std::function<bool()>& is_interrupted, int least = 0);
  Rendezvous(const Rendezvous&) = delete;
  Rendezvous& operator=(const Rendezvous&) = delete;
  ~Rendezvous();

  /// The machine with the store has the first ranks; the others follow in the order of their names and addresses.
  [[nodiscard]] int first_rank() const { return first_rank_; }
  [[nodiscard]] int ranks() const { return ranks_; }  // of all machines
  [[nodiscard]] int least() const { return least_; }

  /// What ended the training before its time.
  struct End {
    bool by_interrupt = false;
    std::string failure;  // "rank 3 (opencl:0 on node-b) ended with exit code 1"
  };
  /// Tells the other machines. Returns what all machines name: the first end that one of them told.
  End tell(const End& end);
  /// What another machine has told, if any, or that the store is gone.
  [[nodiscard]] std::optional<End> told() const;
  /// What the ranks say of one of another machine that they missed first, in a training that does not go on without it.
  [[nodiscard]] std::optional<std::string> missed_elsewhere();
  /// A rank of this machine has failed. Returns how many are left on all machines; 0 if the store is gone.
  [[nodiscard]] int ranks_without(int rank);
  /// What the ranks have told of who goes on (survivors_name), if they have.
  [[nodiscard]] std::optional<std::string> survivors(int time) const;
  /// After the ranks of this machine have ended without a failure: waits for those of the others, until the deadline or
  /// `is_interrupted`; where they may go on without this machine's, as long as they run.
  void finish(const std::function<bool()>& is_interrupted);

 private:
  /// A machine of the training, and its ranks.
  struct Range {
    int place = 0, first = 0, ranks = 0;
  };
  Rendezvous(const Machines& machines, std::unique_ptr<StoreServer> server, int least);
  /// Returns false if it was interrupted, as the others.
  [[nodiscard]] bool gather(int ranks, const std::function<bool()>& is_interrupted);
  /// Connects to the store.
  [[nodiscard]] bool arrive(const std::function<bool()>& is_interrupted);
  /// After `come` machines have come: the number of machines that start, if it is decided.
  [[nodiscard]] std::optional<int> start_with(int come, bool is_late);
  void watch();
  /// Whether the store has this text now.
  [[nodiscard]] bool has(const std::string& name);

  Machines machines_;
  std::unique_ptr<StoreServer> server_;
  std::unique_ptr<Store> store_;
  int place_ = 0;  // in the order of arrival
  int first_rank_ = 0, ranks_ = 0, least_ = 0;
  std::vector<Range> ranges_;
  std::string server_done_;  // the name of its text

  mutable std::mutex mutex_;
  std::optional<End> told_;
  std::vector<std::string> survivors_;
  bool is_over_ = false;
  bool is_store_lost_ = false;  // of the watcher until its end
  std::thread watcher_;
};

}  // namespace concord::collective
