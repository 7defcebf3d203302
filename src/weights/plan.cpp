// Trying name maps.
#include "concord/weights/plan.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <set>
#include <tuple>

#include "concord/core/name_pattern.hpp"
#include "concord/core/text.hpp"
#include "concord/io/element.hpp"
#include "concord/io/left_out.hpp"

namespace concord::weights {
namespace {

bool matches_one(const std::vector<std::string>& patterns, std::string_view name) {
  return std::ranges::any_of(patterns,
                             [&](const std::string& pattern) { return match_name(pattern, name).has_value(); });
}

/// The shape that a piece has as it is read; nothing if it cannot be split so.
std::optional<Shape> piece_shape(const Piece& piece, const Shape& stored) {
  std::vector<std::int64_t> dims(stored.dims().begin(), stored.dims().end());
  for (std::size_t i = 0; i < piece.axes.size(); ++i) dims[i] = stored[piece.axes[i]];
  if (piece.splits > 0) {
    if (dims.empty() || dims[0] % static_cast<std::int64_t>(piece.splits) != 0) return std::nullopt;
    dims[0] /= static_cast<std::int64_t>(piece.splits);
  }
  return Shape(dims);
}

/// The shape of a tensor of all its pieces; nothing if they do not belong together.
std::optional<Shape> joined_shape(const std::vector<Piece>& pieces, const Entries& file) {
  std::optional<Shape> joined;
  for (const Piece& piece : pieces) {
    const std::optional<Shape> shape = piece_shape(piece, file.at(piece.source).shape);
    if (!shape || (pieces.size() > 1 && shape->rank() == 0)) return std::nullopt;
    if (!joined) {
      joined = shape;
      continue;
    }
    std::vector<std::int64_t> dims(joined->dims().begin(), joined->dims().end());
    const std::vector<std::int64_t> more(shape->dims().begin(), shape->dims().end());
    if (dims.size() != more.size() || !std::equal(dims.begin() + 1, dims.end(), more.begin() + 1)) return std::nullopt;
    dims[0] += more[0];
    joined = Shape(dims);
  }
  return joined;
}

/// Why the pieces do not make the tensor: "expected f32 [2], got f64 [3]"; empty if they do.
std::string misfit(const std::vector<Piece>& pieces, const TensorSpec& spec, const Entries& file) {
  const auto got = [&](const std::string& what) { return fmt::format("expected {}, got {}", spec.str(), what); };
  std::vector<std::string> stored;
  for (const Piece& piece : pieces) {
    const io::TensorEntry& entry = file.at(piece.source);
    stored.push_back(fmt::format("{} {}", lower(entry.dtype), entry.shape.str()));
  }
  const std::string all = fmt::format("{}", fmt::join(stored, " and "));
  const std::size_t parts = std::max<std::size_t>(pieces[0].parts, 1);
  if (parts == 1 && pieces.size() > 1) return got(fmt::format("it from several tensors, {}", all));
  if (pieces.size() != parts) return got(fmt::format("{} of its {} parts, {}", pieces.size(), parts, all));
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    if (pieces[i].part != i) return got(fmt::format("one of its parts twice, {}", all));
    const std::string& source = pieces[i].source;
    if (!io::is_convertible(*io::find_element(file.at(source).dtype), spec.dtype, source)) return got(all);
  }
  const std::optional<Shape> shape = joined_shape(pieces, file);
  if (!shape) return got(all);
  const bool may_reshape = std::ranges::all_of(pieces, &Piece::reshape);
  const bool fits = *shape == spec.shape || (may_reshape && shape->elements() == spec.shape.elements());
  return fits ? std::string() : got(all);
}

}  // namespace

Plan plan_of(const NameMap& map, const Entries& file, const Specs& wanted) {
  Plan plan;
  plan.map = map.name;
  std::multimap<std::string, std::string> sources;  // of names that the network lacks
  for (const auto& [source, entry] : file) {
    for (auto& [name, piece] : mapped(map, source, entry.shape, wanted)) {
      if (wanted.contains(name)) {
        if (name != source) plan.renamed.push_back(fmt::format("{} → {}", source, name));
        plan.pieces[name].push_back(std::move(piece));
      } else {
        sources.emplace(name, source);
      }
    }
  }
  for (const auto& [name, like] : map.tied) {
    const auto found = sources.find(name);
    if (found == sources.end() || !wanted.contains(like)) continue;
    if (plan.pieces.contains(like)) {
      plan.tied.emplace_back(found->second, like);
      plan.ignored.push_back(fmt::format("{} (the same as {})", found->second, like));
    } else {
      plan.renamed.push_back(fmt::format("{} → {}", found->second, like));
      plan.pieces[like] = {Piece{.source = found->second}};
    }
    sources.erase(found);
  }
  for (const auto& [name, spec] : wanted) {
    const auto found = plan.pieces.find(name);
    if (found == plan.pieces.end()) {
      plan.differences.missing.push_back(name);
      continue;
    }
    std::ranges::sort(found->second, {}, &Piece::part);
    const std::string problem = misfit(found->second, spec, file);
    if (problem.empty()) continue;
    plan.differences.misshaped.push_back(fmt::format("{}: {}", name, problem));
    plan.pieces.erase(found);
  }
  const bool is_whole = plan.pieces.size() == wanted.size();
  for (const auto& [name, source] : sources) {
    const bool is_ignored =
        io::is_batch_counter(name, wanted) || matches_one(map.ignore, name) || (is_whole && io::is_auxiliary(name));
    (is_ignored ? plan.ignored : plan.differences.unexpected).push_back(source);
  }
  return plan;
}

Plan best_plan(const Entries& file, const Specs& wanted, const io::LoadOptions& options) {
  const auto score = [&](const Plan& plan) {
    const bool fits = plan.differences.refused_by(options).is_empty();
    return std::tuple(options.strict && fits, plan.pieces.size(),
                      -static_cast<std::ptrdiff_t>(plan.differences.unexpected.size()));
  };
  std::optional<Plan> best;
  for (const NameMap& map : name_maps()) {
    Plan plan = plan_of(map, file, wanted);
    if (plan.differences.is_empty()) return plan;
    if (!best || score(plan) > score(*best)) best = std::move(plan);
  }
  return std::move(*best);
}

}  // namespace concord::weights
