// Layers that are divided among the devices of a training, each of which has a part of their weights. The trainer makes
// a DividedLayers around a network; layers ask which part of them belongs to this device.
#pragma once

#include <optional>

#include "concord/core/export.hpp"
#include "concord/graph/graph.hpp"
#include "concord/graph/values.hpp"

namespace CONCORD_PUBLIC concord {
namespace nn {

/// What the devices of a training have parts of.
/// - tensor: the blocks of transformers (Shoeybi et al., "Megatron-LM", 2019). Each device has some of the heads of an
///   attention and some of the columns between the two linear layers behind it, and two sums a block join the results:
///   layers of nn/attention.hpp and nn/transformer.hpp, and pairs of Linear::column_parallel and row_parallel.
/// - hybrid: each Linear has some of its columns on each device, for the whole batch. What comes before the first one,
///   such as convolutions, is whole on each device, for a part of the batch (Krizhevsky, "One weird trick for
///   parallelizing convolutional neural networks", 2014).
enum class Division : std::uint8_t { none, tensor, hybrid };

/// During its lifetime, layers traced in `graph` are divided. Where it ends, they are whole. The graph must outlive it.
class DividedLayers {
 public:
  /// Throws ArgumentError unless 0 <= rank < ranks.
  DividedLayers(Graph& graph, Division division, int rank, int ranks);
  DividedLayers(const DividedLayers&) = delete;
  DividedLayers& operator=(const DividedLayers&) = delete;
  ~DividedLayers();

  /// The samples of a batch that this rank puts through the layers before the first Linear: with Division::hybrid its
  /// share of the rows, else all. A batch of fewer samples than ranks is not divided.
  [[nodiscard]] Values own_samples(const Values& inputs);
  /// The outputs of the network for all samples. Throws ArgumentError if no layer could be divided, or if the network
  /// uses samples before and after they were brought together.
  [[nodiscard]] Values all_samples(const Values& outputs);

 private:
  Graph& graph_;
};

/// How many of the heads of an attention this device has; all, where layers are whole. Throws ArgumentError if the
/// devices cannot have equally many.
[[nodiscard]] std::int64_t own_heads(Graph& graph, std::int64_t heads);

/// During its lifetime, each device draws random numbers of its own. For dropout between column_parallel and
/// row_parallel, where devices have other columns. Does nothing where layers are whole.
class OwnRandomNumbers {
 public:
  explicit OwnRandomNumbers(Graph& graph);
  /// For values that other devices have for other samples. Does nothing if x has all samples.
  explicit OwnRandomNumbers(Value x);

 private:
  std::optional<Scope> scope_;
};

// For layers:
/// Which part of a layer with `outputs` columns this device has with `division`; the whole if layers are not divided
/// so. Notes that a layer is divided.
[[nodiscard]] Shard shard_of_columns(Graph& graph, Division division, std::int64_t outputs, std::int64_t blocks = 1);
/// Brings the samples of all devices together, if x has those of this one only.
[[nodiscard]] Value with_all_samples(Value x);
/// Brings the columns of all devices together: the last dimension.
[[nodiscard]] Value with_all_columns(Value x, const Shard& shard);

}  // namespace nn
}  // namespace concord
