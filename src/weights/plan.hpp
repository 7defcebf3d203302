// Plan: which tensors of a file fill which tensors of a network under a name map, and how well that fits. Internal to
// the room.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "concord/io/checkpoint.hpp"
#include "concord/weights/name_map.hpp"

namespace concord::weights {

using Specs = std::map<std::string, TensorSpec>;
using Entries = std::map<std::string, io::TensorEntry>;

struct Plan {
  std::string map;                                        // its name
  std::map<std::string, std::vector<Piece>> pieces;       // of each tensor that is filled, in order
  std::vector<std::pair<std::string, std::string>> tied;  // a source that has to equal a tensor of the network
  std::vector<std::string> renamed, ignored;
  io::LoadReport differences;
};

[[nodiscard]] Plan plan_of(const NameMap& map, const Entries& file, const Specs& wanted);

/// The plan of the map that fits best: the first without differences that `options` refuse, else the one that fills
/// most tensors of the network and leaves out fewest of the file.
[[nodiscard]] Plan best_plan(const Entries& file, const Specs& wanted, const io::LoadOptions& options);

}  // namespace concord::weights
