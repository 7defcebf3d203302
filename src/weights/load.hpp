// Loading weights of other programs into a network: the file's format, the names and layouts of its tensors and their
// types are found out. Trainer::load and the command use it.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "concord/core/export.hpp"
#include "concord/graph/graph.hpp"
#include "concord/io/checkpoint.hpp"

namespace CONCORD_PUBLIC concord {
namespace weights {

/// What was done with the tensors of a file.
struct Report {
  std::string format;                     // "PyTorch (zip)"
  std::string map;                        // the name map that was taken: "timm: vision transformer"
  std::vector<std::string> notes = {};    // what was unwrapped and left out of a checkpoint
  std::vector<std::string> renamed = {};  // "blocks.0.norm1.weight → encoder.layers.encoder_layer_0.ln_1.weight"
  std::vector<std::string> cast = {};     // "fc.weight: F16 → f32"
  std::vector<std::string> ignored = {};  // tensors of the file that no network of ours has
  io::LoadReport differences = {};        // what is missing, unexpected and of another shape, as far as permitted
  /// One line for each entry: "renamed: …".
  [[nodiscard]] std::string str() const;
};

struct Loaded {
  io::TensorMap tensors;  // under the names of the network
  Report report;
};

/// Reads the tensors `wanted` of a network from a file of any format that weights::File reads, or from a checkpoint,
/// whose other tensors are left out. Names are taken as they are, or by the name map of share/concord/names that fills
/// every tensor of the network exactly once: prefixes are stripped, tensors renamed, transposed, split and joined.
/// Left out are PyTorch's "num_batches_tracked", which only a batch norm without momentum needs, and auxiliary
/// classifiers if the network is built without them and the file has everything else. Throws FormatError if no map
/// does, with the closest map and all that does not fit; `options` permit differences.
[[nodiscard]] Loaded load(const std::filesystem::path& path, const std::map<std::string, TensorSpec>& wanted,
                          const io::LoadOptions& options = {});

/// As `load`. The log has the report: differences as a warning, the rest at level debug.
[[nodiscard]] io::TensorMap load_reported(const std::filesystem::path& path,
                                          const std::map<std::string, TensorSpec>& wanted,
                                          const io::LoadOptions& options);

/// The parameters and running statistics of a traced network, for `load`.
[[nodiscard]] std::map<std::string, TensorSpec> wanted_of(const Graph& network);

}  // namespace weights
}  // namespace concord
