// In the store: "node0", "node1", … what each machine brings, in the order of arrival; "start" the places of those that
// start; "end" why the training ended before its time; "failed3" a rank that has failed where others may go on;
// "done0", … whose ranks have ended, enough of them without a failure; "left-ID" who does not need the store any more,
// or is lost.
#include "concord/collective/rendezvous.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <span>
#include <tuple>
#include <utility>

#include "concord/collective/gloo.hpp"
#include "concord/collective/group.hpp"
#include "concord/collective/interfaces.hpp"
#include "concord/collective/running_time.hpp"
#include "concord/collective/survivors.hpp"
#include "concord/collective/world.hpp"
#include "concord/core/check.hpp"
#include "concord/core/json.hpp"
#include "concord/core/text.hpp"
#include "concord/core/version.hpp"

namespace concord::collective {
namespace {

using MeetingClock = std::chrono::steady_clock;

/// How long a machine tries to tell the others why it ends: the one with the store may be lost.
constexpr std::chrono::duration<double> kLastWordsOfMachine{2};
constexpr std::chrono::milliseconds kNow{0}, kTick{200};  // kTick: between looks at signals
/// Between looks at the time at most: a try to reach a machine that is not up; questions to the store.
constexpr std::chrono::seconds kReachTry{6}, kAskRound{2};

/// Of a launcher, unlike that of another, also of one that was started again.
std::string new_id() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}", random(), random());
}
/// It has a text from when the launcher has left.
std::string left_name(const std::string& id) { return "left-" + id; }

std::string text_of(const Rendezvous::End& end) { return end.by_interrupt ? "interrupt" : "failure " + end.failure; }
Rendezvous::End end_of(const std::string& text) {
  if (text == "interrupt") return {.by_interrupt = true, .failure = {}};
  return {.by_interrupt = false, .failure = text.substr(text.find(' ') + 1)};
}

/// If the host is this machine: its store, unless another launcher of this machine serves it already.
std::unique_ptr<StoreServer> serve(const Machines& machines) {
  const std::string address = address_to_serve(machines.host);
  if (address.empty()) return nullptr;
  try {
    return std::make_unique<StoreServer>(address, machines.port);
  } catch (const IoError&) {
    try {
      const Store other(machines.host, machines.port, std::chrono::seconds(0));
      return nullptr;
    } catch (const Error&) {  // the port is of another program
    }
    throw;
  }
}

}  // namespace

std::unique_ptr<Rendezvous> Rendezvous::meet(const Machines& machines, int ranks,
                                             const std::function<bool()>& is_interrupted, int least) {
  std::unique_ptr<Rendezvous> rendezvous(new Rendezvous(machines, serve(machines), least));
  if (!rendezvous->gather(ranks, is_interrupted)) return nullptr;
  rendezvous->watcher_ = std::thread([&one = *rendezvous] { one.watch(); });
  return rendezvous;
}

Rendezvous::Rendezvous(const Machines& machines, std::unique_ptr<StoreServer> server, int least)
    : machines_(machines), server_(std::move(server)), least_(least) {}

Rendezvous::~Rendezvous() {
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  if (watcher_.joinable()) watcher_.join();
  if (!store_ || !server_) return;  // the end of the connection says that this machine has left
  try {
    const MeetingClock::time_point end = MeetingClock::now() + std::chrono::seconds(5);
    for (const std::string& id : met_) {
      const auto rest = std::chrono::duration_cast<std::chrono::milliseconds>(end - MeetingClock::now());
      static_cast<void>(store_->get(left_name(id), std::max(rest, std::chrono::milliseconds(0))));
    }
  } catch (const Error&) {  // nobody is left to tell
  }
}

bool Rendezvous::arrive(const std::function<bool()>& is_interrupted) {
  const std::chrono::duration<double> deadline(deadline_seconds());
  RunningTime waited(kReachTry);
  while (!store_) {
    if (is_interrupted()) return false;
    try {
      store_ = std::make_unique<Store>(machines_.host, machines_.port, std::chrono::seconds(0));
    } catch (const RankLost& error) {
      const std::string text = error.what();
      CONCORD_CHECK(waited.look() < deadline, RankLost,
                    "{}, where the machines of the training meet, cannot be reached for {:g} s: {}. {} must run this "
                    "command too, and let others reach the port",
                    machines_.place(), deadline.count(), text.substr(text.rfind(": ") + 2), machines_.host);
      std::this_thread::sleep_for(kTick);
    }
  }
  store_ = std::make_unique<Store>(machines_.host, machines_.port, deadline);
  return true;
}

Machine Rendezvous::enter(int ranks) {
  const Machine own{.version = std::string(kVersion),
                    .host = host_name(),
                    .address = store_->own_address(),
                    .machines = machines_.number(),
                    .id = new_id(),
                    .ranks = ranks,
                    .least = least_,
                    .serves_store = server_ != nullptr};
  store_->leave_behind(left_name(own.id), "1");  // first: whoever counts this machine sees it leave
  while (!store_->set(fmt::format("node{}", place_), own.text())) ++place_;
  return own;
}

void Rendezvous::read_arrivals(std::vector<Machine>& come, const Machine& own) {
  for (;;) {
    const auto place = static_cast<int>(come.size());
    const std::string text = store_->get(fmt::format("node{}", place), kNow);
    if (text.empty()) return;
    const Machine& machine = come.emplace_back(Machine::of(text, place));
    if (place != place_) met_.push_back(machine.id);
    const std::string mismatch = own.mismatch(machine);
    if (mismatch.empty()) continue;
    static_cast<void>(store_->set("end", text_of({.by_interrupt = false, .failure = mismatch})));
    throw NotSupported(mismatch);
  }
}

std::optional<std::vector<int>> Rendezvous::places_of_start(const std::vector<int>& there, bool is_late) {
  const int enough = is_late && machines_.fewest > 0 ? machines_.fewest : machines_.count;
  if (std::cmp_greater_equal(there.size(), enough)) {
    const auto some = std::min(there.size(), static_cast<std::size_t>(machines_.count));
    static_cast<void>(store_->set("start", nlohmann::json(std::span(there).first(some)).dump()));
  }
  const std::string text = store_->get("start", kNow);  // the first decision holds
  if (text.empty()) return std::nullopt;
  const auto places = parse_json(text, "the machines that start").get<std::vector<int>>();
  CONCORD_CHECK(std::ranges::find(places, place_) != places.end(), NotSupported,
                "the training at {} has started with {} of {} machines, without this one", machines_.place(),
                places.size(), machines_.count);
  return places;
}

bool Rendezvous::gather(int ranks, const std::function<bool()>& is_interrupted) {
  const std::chrono::duration<double> deadline(deadline_seconds());
  if (!arrive(is_interrupted)) return false;
  // Not before: a machine that waited for the store now waits for the others as long as the first one does.
  RunningTime waited(kAskRound);
  const Machine own = enter(ranks);
  std::vector<Machine> come;
  for (;;) {
    const bool is_late = waited.look() > deadline;
    read_arrivals(come, own);
    std::vector<int> there;
    const bool may_start = is_late || std::cmp_greater_equal(come.size(), machines_.count);
    for (const Machine& machine : come) {
      if (!may_start || !has(left_name(machine.id))) there.push_back(machine.place);
    }
    if (const auto places = places_of_start(there, is_late)) {
      read_arrivals(come, own);
      std::vector<Machine> starting;
      for (const int place : *places) starting.push_back(come.at(static_cast<std::size_t>(place)));
      number_ranks(std::move(starting));
      return true;
    }
    const std::string ended = store_->get("end", kNow);
    CONCORD_CHECK(ended.empty(), RankLost, "another machine has ended the training: {}", end_of(ended).failure);
    CONCORD_CHECK(!is_late, RankLost, "{} of {} machines came to {} within {:g} s", there.size(), machines_.number(),
                  machines_.place(), deadline.count());
    if (is_interrupted()) return false;
    static_cast<void>(store_->get(fmt::format("node{}", come.size()), kTick));
  }
}

void Rendezvous::number_ranks(std::vector<Machine> machines) {
  std::ranges::sort(machines, {}, [](const Machine& one) {
    return std::tuple(!one.serves_store, one.host, one.address.size(), one.address, one.place);
  });
  server_done_ = fmt::format("done{}", machines[0].place);
  for (const Machine& machine : machines) {
    if (machine.place == place_) first_rank_ = ranks_;
    ranges_.push_back({machine.place, ranks_, machine.ranks, machine.id});
    ranks_ += machine.ranks;
  }
  if (machines_.fewest == 0 || least_ > 0) return;
  std::ranges::sort(machines, {}, &Machine::ranks);
  for (int i = 0; i < machines_.fewest; ++i) least_ += machines[static_cast<std::size_t>(i)].ranks;
}

void Rendezvous::watch() {
  bool is_server_done = false;
  const auto hear = [this](const End& end) {
    const std::lock_guard lock(mutex_);
    told_ = end;
  };
  try {
    Store store(machines_.host, machines_.port, std::chrono::duration<double>(deadline_seconds()));
    for (;;) {
      const std::string end = store.get("end", kTick);
      if (!end.empty()) return hear(end_of(end));
      if (!is_server_done) is_server_done = !store.get(server_done_, kNow).empty();
      std::string survivors;
      if (least_ > 0) survivors = store.get(survivors_name(static_cast<int>(survivors_.size()) + 1), kNow);
      const std::lock_guard lock(mutex_);
      if (!survivors.empty()) survivors_.push_back(survivors);
      if (is_over_) return;
    }
  } catch (const Error&) {
    if (!is_server_done)
      hear({.by_interrupt = false,
            .failure = fmt::format("{}, where the machines meet, has left the training or cannot be reached",
                                   machines_.host)});
  }
}

Rendezvous::End Rendezvous::tell(const End& end) {
  try {
    store_->set_deadline(std::min(std::chrono::duration<double>(deadline_seconds()), kLastWordsOfMachine));
    if (!store_->set("end", text_of(end))) return end_of(store_->get("end", std::chrono::milliseconds(0)));
  } catch (const RankLost&) {  // the machine with the store is lost
  }
  return end;
}

bool Rendezvous::has(const std::string& name) { return !store_->get(name, kNow).empty(); }

std::optional<std::string> Rendezvous::missed_elsewhere() {
  try {
    const std::string rank = store_->get(lost_rank_name(kFirstGroup), kNow);
    if (rank.empty()) return std::nullopt;
    const int number = number_in_text<int>(rank).value_or(0);
    const auto own = std::ranges::find(ranges_, place_, &Range::place);
    if (number >= own->first && number < own->first + own->ranks) return std::nullopt;
    return store_->get(lost_name(kFirstGroup), kNow);
  } catch (const RankLost&) {  // the watcher says so
    return std::nullopt;
  }
}

int Rendezvous::ranks_without(int rank) {
  try {
    store_->set_deadline(std::min(std::chrono::duration<double>(deadline_seconds()), kLastWordsOfMachine));
    static_cast<void>(store_->set(fmt::format("failed{}", rank), "1"));
    int left = 0;
    for (const Range& range : ranges_) {
      if (has(left_name(range.id)) && !has(fmt::format("done{}", range.place))) continue;
      for (int other = range.first; other < range.first + range.ranks; ++other) {
        if (!has(fmt::format("failed{}", other))) ++left;
      }
    }
    return left;
  } catch (const RankLost&) {
    return 0;
  }
}

std::optional<std::string> Rendezvous::survivors(int time) const {
  const std::lock_guard lock(mutex_);
  const auto place = static_cast<std::size_t>(time) - 1;
  return place < survivors_.size() ? std::optional(survivors_[place]) : std::nullopt;
}

std::optional<Rendezvous::End> Rendezvous::told() const {
  const std::lock_guard lock(mutex_);
  return told_;
}

void Rendezvous::finish(const std::function<bool()>& is_interrupted) {
  const std::chrono::duration<double> deadline(deadline_seconds());
  RunningTime waited(kAskRound);
  try {
    static_cast<void>(store_->set(fmt::format("done{}", place_), "1"));
    for (auto other = ranges_.begin(); other != ranges_.end() && !told() && !is_interrupted();) {
      if (least_ == 0 && waited.look() > deadline) return;
      const bool is_done = !store_->get(fmt::format("done{}", other->place), kTick).empty();
      if (is_done || has(left_name(other->id))) ++other;
    }
  } catch (const RankLost&) {  // the watcher says so
  }
}

}  // namespace concord::collective
