// Reading name maps, and applying one to a name.
#include "concord/weights/name_map.hpp"

#include <algorithm>
#include <numeric>

#include "concord/core/check.hpp"
#include "concord/core/json.hpp"
#include "concord/core/name_pattern.hpp"
#include "concord/core/platform.hpp"

namespace concord::weights {
namespace {

using Json = nlohmann::json;
using Texts = std::vector<std::string>;

constexpr const char* kCommon = "common.json";
constexpr const char* kAsNamed = "names as they are";

/// ["from", "to"], or an object with more.
NameRule rule_of(const Json& json, const std::string& subject) {
  NameRule rule;
  const auto check = [&](bool right, std::string_view what) {
    CONCORD_CHECK(right, FormatError, "{}: {}: {}", subject, json.dump(), what);
  };
  if (json.is_array()) {
    check(json.size() == 2, "a rule is [\"from\", \"to\"] or an object");
    rule.from = json[0].get<std::string>();
    rule.to = {json[1].get<std::string>()};
    return rule;
  }
  check(json.is_object(), "a rule is [\"from\", \"to\"] or an object");
  for (const auto& [key, value] : json.items()) {
    if (key == "from") {
      rule.from = value.get<std::string>();
    } else if (key == "to") {
      rule.to = value.is_array() ? value.get<Texts>() : Texts{value.get<std::string>()};
    } else if (key == "axes") {
      rule.axes = value.get<std::vector<std::int64_t>>();
      std::vector<std::int64_t> sorted = rule.axes, counted(rule.axes.size());
      std::ranges::sort(sorted);
      std::iota(counted.begin(), counted.end(), 0);
      check(!sorted.empty() && sorted == counted, "axes are not a permutation");
    } else if (key == "reshape") {
      rule.reshape = value.get<bool>();
    } else if (key == "wanted") {
      rule.wanted = value.get<bool>();
    } else if (key == "depthwise") {
      rule.depthwise = value.get<bool>();
    } else if (key == "add") {
      rule.add = value.get<float>();
    } else if (key == "part") {
      check(value.is_array() && value.size() == 2, "part is not [number, of]");
      rule.part = value[0].get<std::size_t>();
      rule.parts = value[1].get<std::size_t>();
      check(rule.part < rule.parts, "there is no such part");
    } else {
      check(false, fmt::format("there is no field '{}'", key));
    }
  }
  check(!rule.from.empty() && !rule.to.empty(), "'from' or 'to' is missing");
  check(!rule.depthwise || rule.axes.size() > 1, "depthwise without axes");
  check(rule.to.size() == 1 || !(rule.wanted || rule.depthwise), "a condition on several tensors");
  return rule;
}

/// A tensor of a file and the network that it is for.
struct Stored {
  const Shape& shape;
  const std::map<std::string, TensorSpec>& wanted;
};

/// Whether the network has `name`, for a depthwise rule in the shape that the rule gives it.
bool is_wanted(const NameRule& rule, const std::string& name, const Stored& stored) {
  const auto found = stored.wanted.find(name);
  if (found == stored.wanted.end()) return false;
  if (!rule.depthwise) return true;
  std::vector<std::int64_t> dims;
  for (const std::int64_t axis : rule.axes) dims.push_back(stored.shape[axis]);
  dims[0] *= std::exchange(dims[1], 1);
  return std::ranges::equal(found->second.shape.dims(), dims);
}

void add_piece(const NameMap& map, std::size_t first, std::string name, Piece piece, const Stored& stored,
               std::vector<std::pair<std::string, Piece>>& result) {
  for (std::size_t i = first; i < map.rules.size(); ++i) {
    const NameRule& rule = map.rules[i];
    if (!rule.axes.empty() && rule.axes.size() != stored.shape.rank()) continue;
    const auto parts = match_name(rule.from, name);
    if (!parts) continue;
    const bool has_condition = rule.wanted || rule.depthwise;
    if (has_condition && !is_wanted(rule, with_parts(rule.to[0], *parts), stored)) continue;
    if (!rule.axes.empty()) piece.axes = rule.axes;
    piece.reshape = piece.reshape || rule.reshape || rule.depthwise;
    piece.add += rule.add;
    if (rule.parts > 0) {
      piece.part = rule.part;
      piece.parts = rule.parts;
    }
    if (rule.to.size() > 1) {
      piece.splits = rule.to.size();
      for (piece.split = 0; piece.split < piece.splits; ++piece.split) {
        add_piece(map, i + 1, with_parts(rule.to[piece.split], *parts), piece, stored, result);
      }
      return;
    }
    name = with_parts(rule.to[0], *parts);
  }
  result.emplace_back(std::move(name), std::move(piece));
}

}  // namespace

NameMap read_name_map(const std::filesystem::path& path) {
  const std::string subject = path.string();
  return read_json(read_file(path), subject, [&](const Json& json) {
    NameMap map;
    CONCORD_CHECK(json.is_object(), FormatError, "{}: a name map is not an object", subject);
    for (const auto& [key, value] : json.items()) {
      if (key == "name") {
        map.name = value.get<std::string>();
      } else if (key == "strip") {
        map.strip = value.get<Texts>();
      } else if (key == "ignore") {
        map.ignore = value.get<Texts>();
      } else if (key == "tied") {
        map.tied = value.get<std::vector<std::pair<std::string, std::string>>>();
      } else {
        CONCORD_CHECK(key == "rules", FormatError, "{}: a name map has no field '{}'", subject, key);
        for (const Json& rule : value) map.rules.push_back(rule_of(rule, subject));
      }
    }
    CONCORD_CHECK(!map.name.empty(), FormatError, "{}: the name map has no name", subject);
    CONCORD_CHECK(std::ranges::none_of(map.strip, &std::string::empty), FormatError, "{}: an empty prefix", subject);
    return map;
  });
}

std::vector<NameMap> name_maps() {
  const std::filesystem::path shared = shared_data_directory(), folder = shared / "names";
  std::error_code unknown;
  if (shared.empty() || !std::filesystem::is_directory(folder, unknown)) return {NameMap{.name = kAsNamed}};
  const NameMap common = read_name_map(folder / kCommon);
  const std::vector<std::filesystem::path> files = paths_in(folder);
  CONCORD_CHECK(!files.empty(), IoError, "cannot read the folder {}", folder.string());
  // First without any change, since a network may have such prefixes itself.
  std::vector<NameMap> maps{{.name = kAsNamed, .ignore = common.ignore}, common};
  for (const std::filesystem::path& file : files) {
    if (file.extension() != ".json" || file.filename() == kCommon) continue;
    NameMap& map = maps.emplace_back(read_name_map(file));
    map.strip.insert(map.strip.end(), common.strip.begin(), common.strip.end());
    map.ignore.insert(map.ignore.end(), common.ignore.begin(), common.ignore.end());
  }
  return maps;
}

std::vector<std::pair<std::string, Piece>> mapped(const NameMap& map, const std::string& name, const Shape& shape,
                                                  const std::map<std::string, TensorSpec>& wanted) {
  std::string_view rest = name;
  const auto strip_one = [&] {
    const auto prefix =
        std::ranges::find_if(map.strip, [&](const std::string& known) { return rest.starts_with(known); });
    if (prefix == map.strip.end() || rest.size() == prefix->size()) return false;
    rest.remove_prefix(prefix->size());
    return true;
  };
  while (strip_one()) {
  }
  std::vector<std::pair<std::string, Piece>> result;
  Piece piece;
  piece.source = name;
  add_piece(map, 0, std::string(rest), std::move(piece), {shape, wanted}, result);
  return result;
}

}  // namespace concord::weights
