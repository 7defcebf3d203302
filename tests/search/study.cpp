// The study of a search: several workers, and the journal after a kill.
#include "concord/search/study.hpp"

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <csignal>
#include <fstream>
#include <map>
#include <thread>

#include "concord/core/text.hpp"
#include "files.hpp"

namespace concord::test {
namespace {

using search::Job;
using search::Journal;
using search::SchedulerKind;
using search::SchedulerOptions;
using search::Space;
using search::Study;
using search::Trial;

const search::Identity kIdentity{{"network", "mlp"}, {"space", "x=[0,1.0]"}};

Space space() { return Space::parse("x=[0,1.0] y={1,2,3}"); }

double loss_of(const Job& job) {
  const double x = number_in_text<double>(job.settings.at(0).value).value();
  return 1 + std::abs(x - 0.3) + 1 / static_cast<double>(job.epochs);
}

/// Trains a job as a command would; x above 0.9 fails.
void train(Study& study, const Job& job) {
  if (number_in_text<double>(job.settings.at(0).value).value() > 0.9) {
    study.fail(job, "x is too large");
    return;
  }
  const search::EpochPoint point{job.epochs, 2, loss_of(job), 0.5};
  study.note_epoch(job, point);
  study.reach(job, {point, point.loss, 0.25});
}

void search_all(Study& study, std::size_t workers) {
  search::run_workers(study, workers, [&](std::size_t worker) {
    while (const auto job = study.take(fmt::format("device {}", worker))) train(study, *job);
  });
}

/// What a search has found, without the devices.
std::string summary(const Study& study) {
  std::string text;
  for (const Trial& trial : study.trials()) {
    text += fmt::format("{} {} {} {} {}", trial.number, trial.settings.at(0).value, name_of(trial.status), trial.epochs,
                        trial.reason);
    for (const auto& [epoch, point] : trial.curve) text += fmt::format(" {}:{}:{}", epoch, point.loss, *point.accuracy);
    if (trial.best) text += fmt::format(" best {}", trial.best->score);
    text += '\n';
  }
  return text;
}

std::unique_ptr<search::Scheduler> scheduler_of(SchedulerKind kind, std::int64_t trials = 20) {
  return search::make_scheduler(space(), {.kind = kind, .trials = trials, .seed = 5, .epochs = 9});
}

}  // namespace

TEST_CASE("one worker and three find the same trials", "[search]") {
  for (const SchedulerKind kind : {SchedulerKind::random, SchedulerKind::asha}) {
    std::map<std::size_t, std::string> settings;
    for (const std::size_t workers : {1U, 3U}) {
      Study study(scheduler_of(kind), nullptr);
      search_all(study, workers);
      CHECK(study.is_done());
      CHECK(study.trials().size() == 20);
      for (const Trial& trial : study.trials()) {
        CHECK(trial.status != Trial::Status::running);
        settings[workers] += trial.settings.at(0).value + ' ' + trial.settings.at(1).value + '\n';
      }
    }
    CHECK(settings[1] == settings[3]);
  }
}

TEST_CASE("workers work at the same time, and wait for promotions", "[search]") {
  Study study(search::make_scheduler(space(), {.kind = SchedulerKind::asha, .trials = 2, .epochs = 2, .eta = 2}),
              nullptr);
  const Job first = study.take("a").value(), second = study.take("b").value();
  std::optional<Job> third;
  std::thread waiting([&] { third = study.take("a"); });
  study.reach(first, {{1, 1, 1}, 1, 0});
  study.reach(second, {{1, 1, 2}, 2, 0});
  waiting.join();
  REQUIRE(third);
  CHECK((third->trial == first.trial && third->epochs == 2));
  study.reach(*third, {{2, 1, 1}, 1, 0});
  CHECK_FALSE(study.take("a"));
  CHECK(study.is_done());
  CHECK(study.ranking().at(0)->number == first.trial);
  CHECK(study.trials()[1].status == Trial::Status::paused);
}

TEST_CASE("an exception of a worker ends the search and arrives", "[search]") {
  Study study(scheduler_of(SchedulerKind::random), nullptr);
  const auto work = [&](std::size_t worker) {
    while (const auto job = study.take("device")) {
      if (job->trial == 4) throw IoError(fmt::format("the disk is full at worker {}", worker >= 2 ? "?" : "n"));
      train(study, *job);
    }
  };
  CHECK(contains(message_of<IoError>([&] { search::run_workers(study, 2, work); }), "the disk is full"));
  CHECK_FALSE(study.is_done());
}

TEST_CASE("the best result is kept before it counts", "[search]") {
  Study study(scheduler_of(SchedulerKind::random, 3), nullptr);
  int kept = 0;
  for (const double score : {3.0, 5.0, 1.0}) {
    study.reach(study.take("device").value(), {{9, 1, score}, score, 0}, [&] { ++kept; });
  }
  CHECK(kept == 2);
  CHECK(study.ranking().at(0)->number == 2);
}

TEST_CASE("a search that is killed after any line of its journal ends as if it were not", "[search]") {
  for (const SchedulerKind kind : {SchedulerKind::random, SchedulerKind::asha, SchedulerKind::tpe}) {
    const TemporaryFolder folder;
    const auto file = folder / "journal.jsonl";
    std::string whole, result;
    {
      Journal journal(file, kIdentity);
      Study study(scheduler_of(kind), &journal);
      search_all(study, 1);
      result = summary(study);
    }
    whole = content_of(file);
    CHECK(contains(whole, "\"event\":\"failed\""));
    for (std::size_t cut = 0; cut <= whole.size(); cut += 37) {  // mostly in the middle of a line
      write_file(file, whole.substr(0, cut));
      Journal journal(file, kIdentity);
      Study study(scheduler_of(kind), &journal);
      search_all(study, 1);
      INFO("cut at byte " << cut);
      REQUIRE(summary(study) == result);
    }
    // The file that was continued is whole again.
    write_file(file, whole.substr(0, whole.size() / 2));
    for (int run = 0; run < 2; ++run) {
      Journal journal(file, kIdentity);
      Study study(scheduler_of(kind), &journal);
      CHECK(study.trials().size() < (run == 0 ? 20 : 21));
      search_all(study, 1);
      CHECK(summary(study) == result);
    }
  }
}

TEST_CASE("more trials continue a finished search", "[search]") {
  const TemporaryFolder folder;
  for (const std::int64_t trials : {10, 20}) {
    Journal journal(folder / "j", kIdentity);
    Study study(scheduler_of(SchedulerKind::asha, trials), &journal);
    const std::size_t before = study.trials().size();
    CHECK(before == (trials == 10 ? 0 : 10));
    search_all(study, 1);
    CHECK(std::ssize(study.trials()) == trials);
  }
  Journal journal(folder / "j", kIdentity);
  CHECK(contains(message_of<ArgumentError>([&] { Study(scheduler_of(SchedulerKind::asha, 10), &journal); }),
                 "more trials than this search"));
}

TEST_CASE("a journal of another search is refused by what differs", "[search]") {
  const TemporaryFolder folder;
  const auto file = folder / "j";
  { const Journal journal(file, kIdentity); }
  const auto other = message_of<ArgumentError>([&] {
    const Journal journal(file, {{"network", "mlp"}, {"space", "x=[0,2.0]"}});
  });
  CHECK(contains(other, "its space is 'x=[0,1.0]', that of this one is 'x=[0,2.0]'"));
  const auto in_use = message_of<IoError>([&] {
    const Journal one(file, kIdentity);
    const Journal two(file, kIdentity);
  });
  CHECK(contains(in_use, "another search is writing to it"));
}

TEST_CASE("a damaged journal is refused with its line", "[search]") {
  const TemporaryFolder folder;
  const auto file = folder / "j";
  {
    Journal journal(file, kIdentity);
    Study study(scheduler_of(SchedulerKind::random), &journal);
    search_all(study, 1);
  }
  std::string text = content_of(file);
  const std::string header = text.substr(0, text.find('\n') + 1);
  const auto refusal = [&](const std::string& content) {
    write_file(file, content);
    return message_of<FormatError>([&] {
      Journal journal(file, kIdentity);
      Study(scheduler_of(SchedulerKind::random), &journal);
    });
  };
  CHECK(contains(refusal(header + "nonsense\n" + text.substr(header.size())), "line 2"));
  CHECK(contains(refusal("{\"event\":\"search\"}\n"), "version"));
  CHECK(contains(refusal("{\"event\":\"epoch\",\"version\":1}\n"), "is not the journal of a search"));
  CHECK(contains(refusal("{\"event\":\"search\",\"version\":2}\n"), "version 2"));
  CHECK(contains(refusal(header + "{\"event\":\"dance\",\"trial\":0}\n"), "is not running"));
  CHECK(contains(refusal(header + "{\"event\":\"started\",\"trial\":3,\"rung\":0,\"device\":\"cpu\"}\n"),
                 "does not follow"));
  const std::size_t settings = text.find("\"settings\":{\"x\":\"");
  REQUIRE(settings != std::string::npos);
  std::string changed = text;
  changed.insert(settings + std::string("\"settings\":{\"x\":\"").size(), "9");
  CHECK(contains(refusal(changed), "trial 0 has the settings"));
}

TEST_CASE("a journal without room keeps its whole lines, and takes no others", "[search]") {
  const TemporaryFolder folder;
  const auto file = folder / "j";
  std::string before;
  {
    Journal journal(file, kIdentity);
    journal.append({{"event", "epoch"}, {"trial", 0}});
    before = content_of(file);
    rlimit old{};
    REQUIRE(getrlimit(RLIMIT_FSIZE, &old) == 0);
    auto* const handler = std::signal(SIGXFSZ, SIG_IGN);
    rlimit small = old;
    small.rlim_cur = before.size() + 10;
    REQUIRE(setrlimit(RLIMIT_FSIZE, &small) == 0);
    const std::string full = message_of<IoError>([&] { journal.append({{"event", "epoch"}, {"trial", 1}}); });
    setrlimit(RLIMIT_FSIZE, &old);
    std::signal(SIGXFSZ, handler);
    CHECK(contains(full, "cannot be written"));
    CHECK(contains(message_of<IoError>([&] { journal.append({{"event", "x"}}); }), "takes no line"));
  }
  CHECK(content_of(file) == before);
  CHECK(Journal(file, kIdentity).events().size() == 1);
}

TEST_CASE("a worker without a thread ends the search and arrives", "[search]") {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  WARN("skipped: sanitizers need more memory than the limit of this test");
#else
  const pid_t child = ::fork();  // the limit is its own
  if (child == 0) {
    constexpr std::size_t kMore = std::size_t{64} << 20U, kWorkers = 1000;  // whose stacks are megabytes each
    std::size_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    rlimit limit{};
    getrlimit(RLIMIT_AS, &limit);
    limit.rlim_cur = pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)) + kMore;
    setrlimit(RLIMIT_AS, &limit);
    Study study(scheduler_of(SchedulerKind::random), nullptr);
    try {
      search_all(study, kWorkers);
    } catch (const std::exception&) {
      ::_exit(study.is_stopped() ? 0 : 2);
    }
    ::_exit(3);
  }
  REQUIRE(child > 0);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 0));
#endif
}

TEST_CASE("a hundred empty trials take less than a second with their journal", "[search]") {
  const TemporaryFolder folder;
  for (const SchedulerKind kind : {SchedulerKind::random, SchedulerKind::asha, SchedulerKind::tpe}) {
    const auto start = std::chrono::steady_clock::now();
    Journal journal(folder / fmt::format("{}", static_cast<int>(kind)), kIdentity);
    Study study(scheduler_of(kind, 100), &journal);
    search_all(study, 2);
    CHECK(study.trials().size() == 100);
    CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(1));
  }
}

}  // namespace concord::test
