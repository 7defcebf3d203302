// Choosing a plan, reading its pieces, and putting them together.
#include "concord/weights/load.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "concord/core/check.hpp"
#include "concord/core/log.hpp"
#include "concord/core/text.hpp"
#include "concord/core/utf8.hpp"
#include "concord/io/element.hpp"
#include "concord/weights/file.hpp"
#include "concord/weights/plan.hpp"

namespace concord::weights {
namespace {

constexpr const char* kCheckpoint = "concord.checkpoint";

Tensor transposed(const Tensor& tensor, const std::vector<std::int64_t>& axes) {
  std::vector<std::int64_t> dims, strides;
  const std::vector<std::int64_t> stored = tensor.shape().strides();
  for (const std::int64_t axis : axes) {
    dims.push_back(tensor.shape()[axis]);
    strides.push_back(stored[static_cast<std::size_t>(axis)]);
  }
  Tensor result(tensor.dtype(), Shape(dims));
  const std::size_t width = size_of(tensor.dtype());
  const auto from = tensor.bytes();
  const auto to = result.bytes();
  std::vector<std::int64_t> index(dims.size(), 0);
  std::int64_t at = 0;
  for (std::size_t i = 0; i < to.size(); i += width) {
    std::memcpy(to.data() + i, from.data() + static_cast<std::size_t>(at) * width, width);
    for (std::size_t axis = dims.size(); axis-- > 0;) {
      at += strides[axis];
      if (++index[axis] < dims[axis]) break;
      at -= strides[axis] * dims[axis];
      index[axis] = 0;
    }
  }
  return result;
}

/// Reads the tensors of a file as a plan says; one that is split is read once for its parts.
class PieceReader {
 public:
  explicit PieceReader(File& file) : file_(file) {}

  Tensor read(const std::vector<Piece>& pieces, const TensorSpec& spec) {
    if (pieces.size() == 1 && pieces[0].splits == 0) {
      return laid_out(pieces[0], spec.dtype).reshaped(spec.shape);
    }
    Tensor result = Tensor::unset(spec);
    std::size_t at = 0;
    for (const Piece& piece : pieces) {
      const Tensor& source = laid_out(piece, spec.dtype);
      const std::size_t parts = std::max<std::size_t>(piece.splits, 1), bytes = source.bytes().size() / parts;
      std::ranges::copy(source.bytes().subspan(piece.split * bytes, bytes),
                        result.bytes().begin() + static_cast<std::ptrdiff_t>(at));
      at += bytes;
    }
    return result;
  }

 private:
  const Tensor& laid_out(const Piece& piece, DType type) {
    if (held_name_ != piece.source || held_.dtype() != type) {
      held_ = file_.read_as(piece.source, type);
      if (!piece.axes.empty()) held_ = transposed(held_, piece.axes);
      if (piece.add != 0) {
        for (float& value : held_.values<float>()) value += piece.add;
      }
      held_name_ = piece.source;
    }
    return held_;
  }

  File& file_;
  std::string held_name_;
  Tensor held_;
};

void note_cast(Report& report, const File& file, const std::string& source, DType type) {
  const std::string& stored = file.tensors().at(source).dtype;
  if (lower(stored) != name_of(type)) report.cast.push_back(fmt::format("{}: {} → {}", source, stored, name_of(type)));
}

void check_tied(File& file, const Plan& plan, const io::TensorMap& tensors, const std::filesystem::path& path) {
  for (const auto& [source, like] : plan.tied) {
    const Tensor& network = tensors.at(like);
    const Tensor tied = file.read_as(source, network.dtype());
    CONCORD_CHECK(std::ranges::equal(tied.bytes(), network.bytes()), FormatError,
                  "{}: {} differs from {}; in our network they are one tensor", printable(path.string()), source, like);
  }
}

}  // namespace

Loaded load(const std::filesystem::path& path, const std::map<std::string, TensorSpec>& wanted,
            const io::LoadOptions& options) {
  File file(path);
  Plan plan = best_plan(file.tensors(), wanted, options);
  if (file.metadata().contains(kCheckpoint)) plan.differences.unexpected.clear();
  const std::string closest = plan.renamed.empty() ? "" : fmt::format(" (by the name map '{}')", plan.map);
  const io::LoadReport refused = plan.differences.refused_by(options);
  CONCORD_CHECK(refused.is_empty(), FormatError, "{}: weights of another network{}: {}", printable(path.string()),
                closest, refused.str());
  CONCORD_CHECK(!plan.pieces.empty() || wanted.empty(), FormatError,
                "{}: weights of another network{}: {}; no tensor matches", printable(path.string()), closest,
                plan.differences.str());
  Loaded loaded;
  loaded.report = {.format = file.format(),
                   .map = plan.map,
                   .notes = file.notes(),
                   .renamed = std::move(plan.renamed),
                   .ignored = std::move(plan.ignored),
                   .differences = std::move(plan.differences)};
  PieceReader reader(file);
  for (const auto& [name, pieces] : plan.pieces) {
    const TensorSpec& spec = wanted.at(name);
    for (const Piece& piece : pieces) note_cast(loaded.report, file, piece.source, spec.dtype);
    loaded.tensors.emplace(name, reader.read(pieces, spec));
  }
  check_tied(file, plan, loaded.tensors, path);
  return loaded;
}

io::TensorMap load_reported(const std::filesystem::path& path, const std::map<std::string, TensorSpec>& wanted,
                            const io::LoadOptions& options) {
  Loaded loaded = load(path, wanted, options);
  const Report& report = loaded.report;
  if (log_enabled(LogLevel::debug)) log(LogLevel::debug, fmt::format("{}: {}", printable(path.string()), report.str()));
  if (!report.differences.is_empty()) {
    log(LogLevel::warning, fmt::format("{}: {} of {} tensors of the network were loaded: {}", printable(path.string()),
                                       loaded.tensors.size(), wanted.size(), report.differences.str()));
  }
  return std::move(loaded.tensors);
}

std::map<std::string, TensorSpec> wanted_of(const Graph& network) {
  std::map<std::string, TensorSpec> wanted;
  for (const VariablePtr& variable : network.variables()) {
    const bool is_weight = variable->role == VariableRole::parameter || variable->role == VariableRole::own;
    if (is_weight) wanted.emplace(variable->name, variable->spec);
  }
  return wanted;
}

std::string Report::str() const {
  std::string text = map.empty() ? format + "\n" : fmt::format("{}, {}\n", format, map);
  const auto add = [&](const std::vector<std::string>& lines, std::string_view kind) {
    for (const std::string& line : lines) text += fmt::format("{}{}\n", kind, line);
  };
  add(notes, "");
  add(renamed, "renamed: ");
  add(cast, "cast: ");
  add(ignored, "ignored: ");
  add(differences.missing, "missing: ");
  add(differences.unexpected, "extra: ");
  add(differences.misshaped, "another shape: ");
  return text;
}

}  // namespace concord::weights
