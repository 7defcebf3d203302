// Where the batches of a fit come from.
#include "concord/train/batches.hpp"

#include <algorithm>
#include <utility>

#include "concord/data/pixel_moves.hpp"
#include "concord/train/checks.hpp"

namespace concord::train {

Batches::Batches(TrainerState& state, const Samples& data, const FitOptions& options, std::string role)
    : state_(state), data_(data), options_(options), role_(std::move(role)), source_(make_source()) {
  state_.resident.keep(source_.id);
}

Source Batches::make_source() {
  if (!options_.augmentation) {
    Source source = state_.resident.training_source_of(data_);
    if (source.changes) {
      draw_changes_ = [transform = *source.changes, seed = state_.at.seed](std::int32_t row, std::uint32_t epoch,
                                                                           std::span<float> numbers) {
        data::draw_changes(transform, {seed, epoch, row}, numbers);
      };
    }
    return source;
  }
  const std::optional<data::PixelMoves> moves = data::PixelMoves::of(options_.augmentation);
  if (!moves) return streamed_source(data_);
  Source source = state_.resident.moved_source_of(data_);
  if (source.changes) {
    draw_changes_ = [moves = *moves, width = source.changes->width](std::int32_t row, std::uint32_t epoch,
                                                                    std::span<float> numbers) {
      moves.draw(width, row, epoch, numbers);
    };
  }
  return source;
}

void Batches::open(const EpochPlan& plan) {
  plan_ = plan;
  if (!are_streamed()) return;
  data::LoaderOptions loader = loader_options(state_.recipe, data_, state_.at.seed);
  loader.threads = options_.loader_threads;
  loader.augmentation = options_.augmentation;
  loader.bad_samples = options_.bad_samples;
  stream_.emplace(state_.device, data_, plan_, std::move(loader));
}

void Batches::begin_epoch(std::vector<std::int32_t> order, std::int64_t done) {
  const std::int64_t epoch = state_.at.epoch;
  if (stream_) {
    const std::int64_t samples = std::min(done * plan_.full.size, plan_.samples);  // the last batch may be smaller
    order.erase(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(samples));
    stream_->start(std::move(order), epoch);
    return;
  }
  Variables& variables = *state_.weights.variables();
  if (source_.changes) {
    write_changes(variables, role_, plan_, *source_.changes, order, static_cast<std::uint32_t>(epoch), draw_changes_);
  }
  write_order(variables, role_, plan_, data_, std::move(order));
}

}  // namespace concord::train
