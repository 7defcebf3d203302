// Checking waiting files against variables, and handing them over.
#include "concord/train/pending_files.hpp"

#include <fmt/format.h>

#include <utility>

#include "concord/core/log.hpp"
#include "concord/core/platform.hpp"
#include "concord/optim/minimize.hpp"
#include "concord/weights/file.hpp"
#include "concord/weights/load.hpp"

namespace concord::train {
namespace {

/// Checkpoints of before losses had weights do not say what gathered batches weighed. Between updates that is nothing;
/// within one it is not known, and the tensor is missing.
void complete(io::Checkpoint& checkpoint, const Specs& expected) {
  const auto gathered = checkpoint.tensors.find(optim::kGathered);
  if (gathered == checkpoint.tensors.end() || !expected.contains(optim::kGatheredWeight)) return;
  if (gathered->second.spec() != TensorSpec{DType::i32, Shape{}} || gathered->second.values<std::int32_t>()[0] != 0)
    return;
  checkpoint.tensors.try_emplace(optim::kGatheredWeight, Tensor::of<float>(Shape{}, std::vector<float>{0}));
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
  complete(*checkpoint_, expected);
  check_tensors_of(*checkpoint_, checkpoint_path_, expected, all);
}

io::TensorMap PendingFiles::read_weights(const Specs& network) const {
  return weights_ ? weights::load_reported(weights_->path, network, weights_->options) : io::TensorMap();
}

void PendingFiles::move_to(Variables& variables, const Specs& names) {
  for (const auto& [name, spec] : names) {
    variables.write(name, checkpoint_->tensors.at(name));
    checkpoint_->tensors.erase(name);
  }
}

}  // namespace concord::train
