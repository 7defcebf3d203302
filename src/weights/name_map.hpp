// NameMap: how the tensors of another program become those of our networks: names, transposes, parts. The maps are
// data, share/concord/names/*.json. Internal to the room.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "concord/core/tensor.hpp"

namespace concord::weights {

/// A rule of a map. Each rule is applied to each name that matches, in the order of the map, so later rules see the
/// names of earlier ones.
struct NameRule {
  std::string from = {};                // pattern (core/name_pattern.hpp)
  std::vector<std::string> to = {};     // several: the tensor is split into so many along its first dimension
  std::vector<std::int64_t> axes = {};  // a transposition, for tensors of this rank alone; empty: none
  bool reshape = false;                 // to the shape that the network wants
  float add = 0;                        // to every number
  bool wanted = false;                  // only where the network has the result
  bool depthwise = false;               // (in, n, …) to (in·n, 1, …), only where the network has the result so
  std::size_t part = 0, parts = 0;      // above 0: this part of a concatenation along the first dimension
};

struct NameMap {
  std::string name = {};
  std::vector<std::string> strip = {};  // prefixes that may be there, in any order and number
  std::vector<NameRule> rules = {};
  std::vector<std::string> ignore = {};  // patterns of tensors that our networks do not have, after the rules
  /// The first has the values of the second, where both are there.
  std::vector<std::pair<std::string, std::string>> tied = {};
};

/// Reads a map. Throws FormatError with the file and the field.
[[nodiscard]] NameMap read_name_map(const std::filesystem::path& path);

/// Names as they are, then without prefixes, then by each map that was installed with the library. Each has the
/// prefixes and the ignored tensors of common.json too. Without an installation: names as they are.
[[nodiscard]] std::vector<NameMap> name_maps();

/// How a tensor of the network is made of one or several of a file.
struct Piece {
  std::string source = {};
  std::size_t split = 0, splits = 0;    // above 0: this part of the source, along its first dimension
  std::vector<std::int64_t> axes = {};  // the transposition before that
  bool reshape = false;
  float add = 0;
  std::size_t part = 0, parts = 0;
};

/// The names that a map gives to a tensor of this shape, each with its piece. Without rules that match, its own name.
/// `wanted` are the tensors of the network.
[[nodiscard]] std::vector<std::pair<std::string, Piece>> mapped(const NameMap& map, const std::string& name,
                                                                const Shape& shape,
                                                                const std::map<std::string, TensorSpec>& wanted);

}  // namespace concord::weights
