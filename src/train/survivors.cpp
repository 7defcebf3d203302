// The ranks that are left differ by one update at most: some had the sums of all when a rank was lost, others had not.
#include "concord/train/survivors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "concord/collective/gathered.hpp"
#include "concord/core/check.hpp"
#include "concord/core/log.hpp"
#include "concord/optim/minimize.hpp"

namespace concord::train {
namespace {

/// How far a rank is.
struct Done {
  std::int64_t step, epoch;
  friend auto operator<=>(const Done&, const Done&) = default;
};

void broadcast(collective::Group& group, int root, Place& at) {
  std::array<std::int64_t, 8> numbers{
      at.epoch,       at.step,  at.updates, at.position,
      at.first_epoch, at.batch, at.samples, static_cast<std::int64_t>(at.losses.size())};
  group.broadcast(std::as_writable_bytes(std::span(numbers)), root);
  std::vector<double> losses = at.losses;
  losses.resize(static_cast<std::size_t>(numbers[7]));
  group.broadcast(std::as_writable_bytes(std::span(losses)), root);
  at.epoch = numbers[0];
  at.step = numbers[1];
  at.updates = numbers[2];
  at.position = numbers[3];
  at.first_epoch = numbers[4];
  at.batch = numbers[5];
  at.samples = numbers[6];
  at.losses = std::move(losses);
}

/// Gives all ranks the place and the variables of the one that has done most.
void adopt_latest(TrainerState& state) {
  collective::Group& group = *state.ranks.group();
  const std::vector<Done> done = collective::gathered(group, Done{state.at.step, state.at.epoch});
  const auto most = std::ranges::max_element(done);
  if (*most == *std::ranges::min_element(done)) return;
  const auto root = static_cast<int>(most - done.begin());
  Place at = state.at;
  broadcast(group, root, at);
  io::TensorMap tensors = state.weights.persistent();
  for (auto& [name, tensor] : tensors) group.broadcast(tensor.bytes(), root);
  BestEpoch::Score score = state.best ? state.best->score() : BestEpoch::Score();
  group.broadcast(std::as_writable_bytes(std::span(&score, 1)), root);
  // Nothing is taken over before everything is here.
  for (const auto& [name, tensor] : tensors) state.weights.variables()->write(name, tensor);
  state.at = std::move(at);
  if (state.best) state.best->follow(score, state.weights);
}

/// The ranks that are left, if they are enough.
collective::GroupPtr left_of(const TrainerState& state, const RankLost& lost, const std::filesystem::path& checkpoint) {
  const int before = state.ranks.size();
  try {
    collective::GroupPtr group = collective::survivors_of(state.ranks.group());
    const int size = group ? group->size() : 1;
    CONCORD_CHECK(size >= least_ranks(state.options), RankLost,
                  "{}; of {} devices {} are left, and the training needs {}", lost.what(), before, size,
                  least_ranks(state.options));
    return group;
  } catch (const RankLost& error) {
    if (checkpoint.empty() || state.at.epoch == state.at.first_epoch) throw;
    throw RankLost(fmt::format("{}; the last checkpoint is {}", error.what(), checkpoint.string()));
  }
}

}  // namespace

void check_survivors(const TrainerState& state) {
  const collective::GroupPtr& group = state.ranks.group();
  if (!group || least_ranks(state.options) == 0) return;
  CONCORD_CHECK(!state.is_divided(), NotSupported,
                "a network that is divided among devices cannot go on without one of them; leave --min-ranks, a range "
                "of --nodes and "
                "TrainerOptions::min_ranks out");
  CONCORD_CHECK(group->has_survivors(), NotSupported,
                "ranks that exchange by {} cannot go on when one is lost; leave --min-ranks and "
                "TrainerOptions::min_ranks out",
                group->transport());
}

void go_on_with_survivors(TrainerState& state, const RankLost& lost, const std::filesystem::path& checkpoint) {
  const int before = state.ranks.size();
  const std::vector<double> shares = state.ranks.shares();
  const double own_share = shares.empty() ? 0 : shares[static_cast<std::size_t>(state.ranks.rank())];
  int size = 0;
  for (bool are_equal = false; !are_equal;) {
    state.programs.clear();  // with the groups of sums within a step: ranks that wait there for this one go on too
    const collective::GroupPtr group = left_of(state, lost, checkpoint);
    size = group ? group->size() : 1;
    state.options.group = group;
    state.ranks = Ranks(group, state.at.accumulate);
    try {
      if (group && !shares.empty()) state.ranks.set_shares(collective::gathered(*group, own_share));
      if (group) adopt_latest(state);
      are_equal = true;
    } catch (const RankLost&) {  // one more, meanwhile
    }
  }
  state.recipe.rank = state.ranks.rank();
  state.recipe.minimize.ranks = size;
  state.recipe.minimize.accumulate = state.ranks.most_of_update();
  Variables& variables = *state.weights.variables();
  // Sums without a rank were not finite.
  if (variables.contains(optim::kOk)) variables.write(optim::kOk, Tensor::of<float>(Shape{}, std::vector<float>{1}));
  if (state.ranks.rank() > 0) return;
  log(LogLevel::warning, fmt::format("{}; the training goes on after step {} with {} of {} devices", lost.what(),
                                     state.at.step, size, before));
}

}  // namespace concord::train
