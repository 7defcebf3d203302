// The command as a process that srun, torchrun or mpirun has started, by what these leave in its environment.
#include "cli/port.hpp"
#include "cli/process.hpp"
#include "concord/collective/gloo.hpp"
#include "concord/collective/store.hpp"
#include "concord/collective/world.hpp"
#include "concord_test.hpp"

using namespace concord;
using namespace concord::test;

namespace {

Arguments short_training(const Arguments& more) {
  return with({"train", "mlp", "--data", "random,samples=40", "--batch", "10", "--epochs", "1", "--validate", "none"},
              more);
}

/// A task of `srun --nodes 2 --ntasks-per-node 1`.
Environment task_of_srun(const std::string& number) {
  return {{"SLURM_PROCID", number}, {"SLURM_STEP_NUM_TASKS", "2"}, {"SLURM_LOCALID", "0"}, {"CONCORD_DEADLINE", "60"}};
}

}  // namespace

TEST_CASE("srun starts train --nodes on each machine, which launches the ranks", "[cli][collective][nodes]") {
  if (!command_is_there()) return;
  if (cheap_device() != "cpu" || !collective::has_gloo()) {
    WARN("skipped: this build has no Gloo, or no CPU backend");
    return;
  }
  for (const bool has_master : {false, true}) {
    INFO("with MASTER_ADDR: " << has_master);
    const Arguments words = short_training({"--nodes", "2", "--rendezvous", "127.0.0.1:" + free_port(), "--devices",
                                            "cpu", "--exchange", "gloo", "--gradients", "bf16", "-v"});
    const auto variables = [&](const std::string& number) {
      Environment task = task_of_srun(number);
      if (has_master) task.insert({{"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", "9"}});  // where nobody listens
      return task;
    };
    Process first(command_path(), words, variables("0")), second(command_path(), words, variables("1"));
    const Ended a = first.finish(), b = second.finish();
    INFO(a.err << "\n--- the other machine\n" << b.err);
    CHECK(a.code == 0);
    CHECK(b.code == 0);
    // A rank that is not the first is behind the launcher that started it.
    CHECK_THAT(a.err + b.err, contains("parts by gloo") && contains("[rank 1]"));
  }
}

TEST_CASE("a task of srun without --nodes needs the place where the ranks meet", "[cli][collective]") {
  if (!command_is_there()) return;
  const Ended ended = run_command(short_training({"--devices", cheap_device()}), task_of_srun("0"));
  CHECK(ended.code == 2);
  CHECK_THAT(ended.err, contains("MASTER_ADDR is not set, but SLURM_STEP_NUM_TASKS is"));
}

TEST_CASE("the second program of a launch is told why it cannot join", "[cli][collective]") {
  if (!command_is_there()) return;
  // The store of a launch, in which the first program has entered its rank.
  const collective::StoreServer server("127.0.0.1", 0);
  collective::Store store("127.0.0.1", server.port(), std::chrono::seconds(60));
  REQUIRE(store.set(collective::member_name(0), "{}"));
  const Ended ended =
      run_command(short_training({"--device", cheap_device()}), {{"RANK", "0"},
                                                                 {"WORLD_SIZE", "2"},
                                                                 {"LOCAL_RANK", "0"},
                                                                 {"MASTER_ADDR", "127.0.0.1"},
                                                                 {"MASTER_PORT", std::to_string(server.port())},
                                                                 {collective::kStoreVariable, "1"}});
  CHECK(ended.code == 2);
  CHECK_THAT(ended.err, contains("another process of the training has had the rank 0") &&
                            contains("the second program of a launch, which starts one for each rank"));
}
