// Exchange: the memory of the variables that the ranks of a training sum, and their summing. Internal to the library.
#pragma once

#include <future>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "concord/collective/group.hpp"
#include "concord/compile/program.hpp"
#include "concord/core/timeline.hpp"
#include "concord/train/background.hpp"
#include "concord/train/step_sums.hpp"

namespace concord::train {

/// The variables of one step's graph (Graph::exchanged). Their sums have the same bits on all ranks and by all
/// transports. $CONCORD_EXCHANGE chooses the transport: auto, peer, host or gloo.
class Exchange {
 public:
  /// Allocates memory, and binds the variables to it: call this before the step is compiled. Gradients that travel
  /// through the host are rounded to `gradients` (Group::all_reduce_rounded), unless that is fp32. If updates are to be
  /// whole, no bucket is late, and `finish` throws RankLost before anything reads sums that lack a rank: it waits for
  /// those on the devices, too.
  Exchange(collective::GroupPtr group, VariablesPtr variables, const Graph& graph,
           Precision gradients = Precision::fp32, bool updates_are_whole = false);
  /// Whether it has the variables of this graph.
  [[nodiscard]] bool fits(const Graph& graph) const;

  /// Sets the sums of the loss that the next ones are added to; in the order of kExchangedCounts.
  void start_counts(std::vector<float> counts);
  [[nodiscard]] std::size_t buckets() const { return buckets_.size(); }
  /// For Program::run of the part before the exchange: after how many launches each bucket is complete, in order.
  [[nodiscard]] std::vector<std::size_t> marks_of(const Program& step) const;
  /// All work that writes the variables of this bucket is enqueued: starts the bucket on its way, beside the work that
  /// is enqueued later. The buckets begin in order.
  void begin(std::size_t bucket);
  /// This rank has no batch in this update: all its numbers are zeros.
  void clear();
  /// Lets work that is enqueued later read the sums of all buckets that are not late. Through the host, waits for them.
  /// Throws RankLost.
  void finish();
  /// The buckets of gradients that are complete last (optim::last_gradients), if they are summed on the devices: their
  /// variables, which CompileOptions::late may name.
  [[nodiscard]] const std::vector<std::vector<std::string>>& late() const { return late_; }
  /// For Program::run of the part after the exchange: before how many launches each late bucket must be there, in
  /// order.
  [[nodiscard]] std::vector<std::size_t> late_marks_of(const Program& update) const;
  /// Lets work that is enqueued later read the sums of this late bucket. After `finish`, in order.
  void finish_late(std::size_t number);
  /// All buckets.
  void finish_all();
  /// Of the all_reduces of the step; null if it has none.
  [[nodiscard]] StepSums* step_sums() { return step_sums_ ? &*step_sums_ : nullptr; }
  /// Waits for the sums on the device. Throws RankLost if a rank was missing there, or is lost meanwhile: `finish` does
  /// not wait for that.
  void require_all_ranks();
  /// A rank is lost: sums on the device end now, and are NaN. Waits for those on the host, which end soon.
  void give_up();
  /// Takes its memory from the variables, which have no values then.
  void unbind();
  /// How the numbers go from rank to rank: "peer" for kernels that read the memory of other devices, else the group's
  /// transport.
  [[nodiscard]] std::string transport() const { return buckets_[0].peer ? "peer" : group_->transport(); }

 private:
  /// A variable in the buffer of a bucket.
  struct Slot {
    std::string name;
    TensorSpec spec;
    std::size_t bucket = 0, offset = 0;  // in bytes
    friend bool operator==(const Slot&, const Slot&) = default;
  };
  /// Variables that are summed at once.
  struct Bucket {
    std::size_t bytes = 0;
    bool is_exact = true;                        // not rounded to `gradients`
    std::unique_ptr<PeerMemory> peer = nullptr;  // null: through the host
    BufferPtr buffer = nullptr;
    StagingPtr staging = nullptr;   // for the host
    EventPtr arrived = nullptr;     // there, or of the sum
    std::future<void> summed = {};  // there
  };
  class Packing;
  [[nodiscard]] std::vector<Slot> slots_of(const Graph& graph) const;
  /// Sets the slots, and buckets and late ones without memory.
  void lay_out(const Graph& graph);
  /// Lays out; the buckets are of memory that the devices share, or false on all ranks if one of them shares none.
  [[nodiscard]] bool connect_peers(const Graph& graph);
  /// Waits for the sums on the device, and looks at the other ranks meanwhile: kernels notice a lost one only at the
  /// deadline. Throws RankLost.
  void wait_for_sums();
  /// Replaces a bucket in the host's memory by the sum of all ranks, once it has arrived there.
  void sum_on_host(std::size_t number);

  collective::GroupPtr group_;
  VariablesPtr variables_;
  Precision gradients_;
  bool updates_are_whole_, has_late_ = false;
  std::vector<Slot> slots_;
  std::vector<Bucket> buckets_;
  std::optional<StepSums> step_sums_;
  std::vector<std::vector<std::string>> late_;
  std::size_t started_ = 0;   // floats at the beginning whose sums start from the last ones: the counts of the loss
  BufferPtr last_counts_;     // on the device
  std::vector<float> start_;  // of the first bucket, on the host: 0 but for the counts
  timeline::Track track_{"exchange"};
  timeline::Label sum_label_ = 0;  // of a sum through the host
  Background sums_;                // the last: it works with the above
};

}  // namespace concord::train
