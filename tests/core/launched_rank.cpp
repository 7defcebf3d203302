// What launchers of several processes leave in the environment.
#include "concord/core/launched_rank.hpp"

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "concord_test.hpp"
#include "setting.hpp"

namespace concord::test {
namespace {

using Variables = std::map<std::string, std::string>;

/// Reads these variables, and none that the test itself was started with.
std::optional<LaunchedRank> rank_of(const Variables& variables) {
  std::vector<std::unique_ptr<Setting>> settings;
  for (const char* const name :
       {"RANK", "WORLD_SIZE", "LOCAL_RANK", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
        "OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID"}) {
    const auto found = variables.find(name);
    settings.push_back(std::make_unique<Setting>(name, found == variables.end() ? std::string() : found->second));
  }
  return launched_rank();
}

}  // namespace

TEST_CASE("a rank knows its place by the variables of its launcher", "[core]") {
  CHECK_FALSE(rank_of({}));
  CHECK_FALSE(rank_of({{"RANK", "0"}, {"WORLD_SIZE", "1"}}));
  CHECK_FALSE(rank_of({{"RANK", "0"}}));
  const Variables srun{{"SLURM_PROCID", "5"}, {"SLURM_STEP_NUM_TASKS", "8"}, {"SLURM_LOCALID", "1"}};
  const auto task = rank_of(srun);
  REQUIRE(task);
  CHECK((task->rank == 5 && task->size == 8 && task->local_rank == 1));
  CHECK(std::string(task->size_variable) == "SLURM_STEP_NUM_TASKS");
  // A program that torchrun starts within a task of srun is torchrun's.
  Variables both = srun;
  both.insert({{"RANK", "2"}, {"WORLD_SIZE", "3"}, {"LOCAL_RANK", "0"}});
  const auto torchrun = rank_of(both);
  REQUIRE(torchrun);
  CHECK((torchrun->rank == 2 && torchrun->size == 3 && torchrun->local_rank == 0));
  // Without a local rank, all ranks may be on this machine.
  const auto mpirun = rank_of({{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "2"}});
  REQUIRE(mpirun);
  CHECK(mpirun->local_rank == 1);
  CHECK_THROWS_WITH(rank_of({{"RANK", "2"}, {"WORLD_SIZE", "2"}}), contains("RANK is '2'; it must be a number from 0"));
}

}  // namespace concord::test
