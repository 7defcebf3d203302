// Checking waiting files against variables, and handing them over.
#include "concord/train/pending_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "concord/core/log.hpp"
#include "concord/core/platform.hpp"
#include "concord/graph/shard.hpp"
#include "concord/optim/minimize.hpp"
#include "concord/weights/file.hpp"
#include "concord/weights/load.hpp"

namespace concord::train {
namespace {

/// Whether a variable holds what one device has gathered of an update (optim::MinimizeOptions::accumulate).
bool is_gathered(std::string_view name) {
  const std::size_t digits = name.find_last_not_of("0123456789");
  return name == optim::kGathered || name.starts_with(optim::kGatheredWeight) ||
         (name.starts_with("optim.") && name.substr(0, digits + 1).ends_with(".accumulated"));
}

/// Whether the checkpoint lies between two updates. Several ranks gather nothing, and write only such checkpoints.
bool is_between_updates(const io::Checkpoint& checkpoint) {
  const auto gathered = checkpoint.tensors.find(optim::kGathered);
  return gathered == checkpoint.tensors.end() || (gathered->second.spec() == TensorSpec{DType::i32, Shape{}} &&
                                                  gathered->second.values<std::int32_t>()[0] == 0);
}

/// Between updates nothing is gathered, whether a checkpoint says so or not: it may be one of several ranks, or of one
/// device where several continue, or of before losses had weights.
void complete(io::Checkpoint& checkpoint, const Specs& expected, bool all) {
  if (!is_between_updates(checkpoint)) return;
  for (const auto& [name, spec] : expected) {
    if (is_gathered(name)) checkpoint.tensors.try_emplace(name, Tensor(spec.dtype, spec.shape));
  }
  if (!all) return;
  std::erase_if(checkpoint.tensors,
                [&](const auto& tensor) { return is_gathered(tensor.first) && !expected.contains(tensor.first); });
}

void check_tensors_of(const io::Checkpoint& checkpoint, const std::filesystem::path& path, const Specs& expected,
                      bool all) {
  const std::string what = fmt::format("{}: checkpoint of another network, optimizer or moving average", path.string());
  if (all) return io::check_tensors(checkpoint.tensors, expected, what);
  io::TensorMap needed;
  for (const auto& [name, tensor] : checkpoint.tensors) {
    if (expected.contains(name)) needed.emplace(name, tensor);
  }
  io::check_tensors(needed, expected, what);
}

}  // namespace

void PendingFiles::set_weights(const std::filesystem::path& path, const io::LoadOptions& options) {
  static_cast<void>(weights::File(path));
  weights_ = {absolute_path(path), options};  // it is opened again when the network is known
}

void PendingFiles::set_checkpoint(io::Checkpoint checkpoint, const std::filesystem::path& path, const Specs& known) {
  check_tensors_of(checkpoint, path, known, false);
  weights_.reset();
  checkpoint_ = std::move(checkpoint);
  checkpoint_path_ = path;
}

std::optional<std::int32_t> PendingFiles::counter(const std::string& name) const {
  if (!checkpoint_) return std::nullopt;
  return checkpoint_->tensors.at(name).values<std::int32_t>()[0];
}

void PendingFiles::check_checkpoint(const Specs& expected, bool all) {
  if (!checkpoint_) return;
  complete(*checkpoint_, expected, all);
  check_tensors_of(*checkpoint_, checkpoint_path_, expected, all);
}

io::TensorMap PendingFiles::read_weights(const Specs& network, const Specs& before) const {
  if (!weights_) return {};
  if (before.empty()) return weights::load_reported(weights_->path, network, weights_->options);
  const auto is_read = [&](const auto& one) { return before.contains(one.first); };
  if (std::ranges::all_of(network, is_read)) return {};
  io::TensorMap rest = weights::load(weights_->path, network, {.strict = false}).tensors;
  std::erase_if(rest, is_read);
  return rest;
}

void PendingFiles::move_to(Variables& variables, const Specs& names, const Shards& shards) {
  for (const auto& [name, spec] : names) {
    const auto shard = shards.find(name);
    // A stage of a network has its own variables only.
    if (variables.contains(name)) {
      const Tensor& whole = checkpoint_->tensors.at(name);
      variables.write(name, shard == shards.end() ? whole : part_of(whole, shard->second));
    }
    checkpoint_->tensors.erase(name);
  }
}

}  // namespace concord::train
