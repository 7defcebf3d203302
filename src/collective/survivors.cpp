// In the store: "on0", "on1", … which ranks go on; "left0", … which have left; "survivors" the list that holds. Any
// rank may enter it, and the first one does: the store keeps the first text of a name.
#include "concord/collective/survivors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "concord/collective/running_time.hpp"
#include "concord/core/check.hpp"
#include "concord/core/json.hpp"

namespace concord::collective {
namespace {

constexpr std::chrono::milliseconds kNow{0}, kBetweenLooks{50};

struct Answers {
  std::vector<int> on;  // in the order of the ranks
  bool are_all = true;  // the others have left
};

Answers look(Store& store, const std::string& prefix, int size) {
  Answers answers;
  for (int rank = 0; rank < size; ++rank) {
    const bool has_left = !store.get(left_name(prefix, rank), kNow).empty();
    const bool is_on = !has_left && !store.get(fmt::format("{}on{}", prefix, rank), kNow).empty();
    if (is_on) answers.on.push_back(rank);
    if (!is_on && !has_left) answers.are_all = false;
  }
  return answers;
}

}  // namespace

std::string left_name(const std::string& prefix, int rank) { return fmt::format("{}left{}", prefix, rank); }

std::string lost_name(const std::string& prefix) { return prefix + "lost"; }
std::string lost_rank_name(const std::string& prefix) { return prefix + "lostrank"; }

std::vector<int> agree_on_survivors(Store& store, const std::string& prefix, int rank, int size,
                                    std::chrono::duration<double> deadline) {
  const std::string decision = prefix + "survivors";
  RunningTime waited;
  static_cast<void>(store.set(fmt::format("{}on{}", prefix, rank), "1"));
  std::string text = store.get(decision, kNow);
  while (text.empty()) {
    const Answers answers = look(store, prefix, size);
    const bool may_decide = answers.are_all || waited.look() > deadline;
    if (may_decide) static_cast<void>(store.set(decision, nlohmann::json(answers.on).dump()));
    text = store.get(decision, may_decide ? kNow : kBetweenLooks);
  }
  const auto ranks = parse_json(text, "the ranks that go on").get<std::vector<int>>();
  CONCORD_CHECK(std::ranges::find(ranks, rank) != ranks.end(), RankLost,
                "the other ranks have gone on without rank {}, which did not answer for {:g} s", rank,
                deadline.count());
  return ranks;
}

}  // namespace concord::collective
