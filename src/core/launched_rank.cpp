// The environment variables of launchers.
#include "concord/core/launched_rank.hpp"

#include <array>
#include <string>

#include "concord/core/check.hpp"
#include "concord/core/platform.hpp"
#include "concord/core/text.hpp"

namespace concord {
namespace {

struct RankVariables {
  const char *rank, *size, *local_rank;
};
/// In the order in which they are looked for: a program that torchrun starts within a job of Slurm is torchrun's.
constexpr std::array kLaunchers{
    RankVariables{"RANK", "WORLD_SIZE", "LOCAL_RANK"},
    RankVariables{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"},
    RankVariables{"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID"}};

int rank_number(const char* name, const std::string& text, int least, int most) {
  const std::optional<int> number = number_in_text<int>(text);
  CONCORD_CHECK(number && *number >= least && *number <= most, ArgumentError,
                "{} is '{}'; it must be a number from {} to {}", name, text, least, most);
  return *number;
}

}  // namespace

std::optional<LaunchedRank> launched_rank() {
  constexpr int kMostRanks = 4096;
  for (const RankVariables& names : kLaunchers) {
    const std::optional<std::string> size = environment(names.size), rank = environment(names.rank);
    if (!size || !rank) continue;
    LaunchedRank own{.size_variable = names.size};
    own.size = rank_number(names.size, *size, 1, kMostRanks);
    own.rank = rank_number(names.rank, *rank, 0, own.size - 1);
    if (own.size == 1) return std::nullopt;
    const std::optional<std::string> local = environment(names.local_rank);
    own.local_rank = local ? rank_number(names.local_rank, *local, 0, own.size - 1) : own.rank;
    return own;
  }
  return std::nullopt;
}

}  // namespace concord
