// In the store: "node0", "node1", … what each machine brings, in the order of arrival; "end" why the training ended
// before its time; "failed3" a rank that has failed where others may go on; "done0", … whose ranks have ended, enough
// of them without a failure; "left0", … who does not need the store any more, or is lost.
#include "concord/collective/rendezvous.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <tuple>

#include "concord/collective/gloo.hpp"
#include "concord/collective/group.hpp"
#include "concord/collective/interfaces.hpp"
#include "concord/collective/survivors.hpp"
#include "concord/collective/world.hpp"
#include "concord/core/check.hpp"
#include "concord/core/json.hpp"
#include "concord/core/version.hpp"

namespace concord::collective {
namespace {

using MeetingClock = std::chrono::steady_clock;

/// How long a machine tries to tell the others why it ends: the one with the store may be lost.
constexpr std::chrono::duration<double> kLastWordsOfMachine{2};
constexpr std::chrono::milliseconds kNow{0}, kTick{200};  // kTick: between looks at signals

struct Node {
  std::string version, host, address, nodes;
  int ranks = 0, least = 0, arrival = 0;
  bool serves = false;
};

nlohmann::json json_of(const Node& node) {
  return {{"version", node.version}, {"host", node.host},   {"address", node.address}, {"machines", node.nodes},
          {"ranks", node.ranks},     {"least", node.least}, {"serves", node.serves}};
}

Node node_of(const std::string& text, int arrival) {
  const nlohmann::json json = parse_json(text, fmt::format("what machine {} says about itself", arrival));
  CONCORD_CHECK(json.is_object(), ArgumentError, "machine {} does not run Concord", arrival);
  return {json.value("version", ""),
          json.value("host", ""),
          json.value("address", ""),
          json.value("machines", ""),
          json.value("ranks", 0),
          json.value("least", 0),
          arrival,
          json.value("serves", false)};
}

std::string place_of(const Machines& machines) { return fmt::format("{}:{}", machines.host, machines.port); }
/// As --nodes has it.
std::string text_of(const Machines& machines) {
  return machines.fewest > 0 ? fmt::format("{}:{}", machines.fewest, machines.count) : std::to_string(machines.count);
}

/// Whether so many are enough at the deadline.
bool may_start_with(const Machines& machines, int come) { return machines.fewest > 0 && come >= machines.fewest; }

std::string text_of(const Rendezvous::End& end) { return end.by_interrupt ? "interrupt" : "failure " + end.failure; }
Rendezvous::End end_of(const std::string& text) {
  if (text == "interrupt") return {.by_interrupt = true, .failure = {}};
  return {.by_interrupt = false, .failure = text.substr(text.find(' ') + 1)};
}

/// If the host is this machine: its store, unless another launcher of this machine serves it already.
std::unique_ptr<StoreServer> serve(const Machines& machines) {
  const std::string own = own_address_of(machines.host);
  if (own.empty()) return nullptr;
  // The name of a machine often stands for its loopback address on itself.
  const bool is_meant_local = machines.host == "localhost" || is_loopback(machines.host);
  const std::string address = is_loopback(own) && !is_meant_local ? "0.0.0.0" : own;
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

Machines machines_at(const std::string& place, int count, int fewest) {
  const std::size_t colon = place.rfind(':');
  Machines machines{count, place.substr(0, colon), 0, fewest};
  if (machines.host.starts_with('[') && machines.host.ends_with(']'))
    machines.host = machines.host.substr(1, machines.host.size() - 2);
  int port = 0;
  const char* const end = place.data() + place.size();
  const char* const begin = colon == std::string::npos ? end : place.data() + colon + 1;
  const auto [stop, error] = std::from_chars(begin, end, port);
  CONCORD_CHECK(!machines.host.empty() && error == std::errc{} && stop == end && port > 0 && port < 65536,
                ArgumentError, "\"{}\" is no place for machines to meet; it must be HOST:PORT, such as node0:29400",
                place);
  machines.port = static_cast<std::uint16_t>(port);
  return machines;
}

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
  if (!store_ || is_store_lost_) return;
  try {
    if (!server_)
      store_->set_deadline(std::min(std::chrono::duration<double>(deadline_seconds()), kLastWordsOfMachine));
    static_cast<void>(store_->set(fmt::format("left{}", place_), "1"));
    if (!server_) return;
    const MeetingClock::time_point end = MeetingClock::now() + std::chrono::seconds(5);
    for (int other = 0; other < machines_.count; ++other) {
      const auto rest = std::chrono::duration_cast<std::chrono::milliseconds>(end - MeetingClock::now());
      static_cast<void>(store_->get(fmt::format("left{}", other), std::max(rest, std::chrono::milliseconds(0))));
    }
  } catch (const Error&) {  // nobody is left to tell
  }
}

bool Rendezvous::arrive(const std::function<bool()>& is_interrupted) {
  const std::chrono::duration<double> deadline(deadline_seconds());
  const auto end = MeetingClock::now() + deadline;
  while (!store_) {
    if (is_interrupted()) return false;
    try {
      store_ = std::make_unique<Store>(machines_.host, machines_.port, std::chrono::seconds(0));
    } catch (const RankLost& error) {
      const std::string text = error.what();
      CONCORD_CHECK(MeetingClock::now() < end, RankLost,
                    "{}, where the machines of the training meet, cannot be reached for {:g} s: {}. {} must run this "
                    "command too, and let others reach the port",
                    place_of(machines_), deadline.count(), text.substr(text.rfind(": ") + 2), machines_.host);
      std::this_thread::sleep_for(kTick);
    }
  }
  store_ = std::make_unique<Store>(machines_.host, machines_.port, deadline);
  return true;
}

std::optional<int> Rendezvous::start_with(int come, bool is_late) {
  const bool may_start = come == machines_.count || (is_late && may_start_with(machines_, come));
  if (machines_.fewest == 0) return may_start ? std::optional(come) : std::nullopt;
  if (may_start) static_cast<void>(store_->set("start", std::to_string(come)));
  const std::string text = store_->get("start", kNow);
  if (text.empty()) return std::nullopt;
  int count = 0;
  std::from_chars(text.data(), text.data() + text.size(), count);
  CONCORD_CHECK(place_ < count, NotSupported, "the training at {} has started with {} of {} machines, without this one",
                place_of(machines_), count, machines_.count);
  return count;
}

bool Rendezvous::gather(int ranks, const std::function<bool()>& is_interrupted) {
  const std::chrono::duration<double> deadline(deadline_seconds());
  const auto end = MeetingClock::now() + deadline;
  const std::string where = place_of(machines_);
  if (!arrive(is_interrupted)) return false;
  const Node own{std::string(kVersion), host_name(), store_->own_address(), text_of(machines_), ranks, least_, 0,
                 server_ != nullptr};
  while (place_ < machines_.count && !store_->set(fmt::format("node{}", place_), json_of(own).dump())) ++place_;
  CONCORD_CHECK(place_ < machines_.count, NotSupported,
                "{} machines have come to {} already, which is all that --nodes says", machines_.count, where);
  std::vector<Node> nodes;
  for (;;) {
    const auto number = static_cast<int>(nodes.size());
    const std::optional<int> count = start_with(number, MeetingClock::now() > end);
    if (count && *count <= number) {
      nodes.resize(static_cast<std::size_t>(*count));
      break;
    }
    const std::string text = store_->get(fmt::format("node{}", number), kTick);
    if (is_interrupted()) return false;
    if (text.empty()) {
      const std::string ended = store_->get("end", std::chrono::milliseconds(0));
      CONCORD_CHECK(ended.empty(), RankLost, "another machine has ended the training: {}", end_of(ended).failure);
      CONCORD_CHECK(MeetingClock::now() < end || may_start_with(machines_, number), RankLost,
                    "{} of {} machines came to {} within {:g} s", number, text_of(machines_), where, deadline.count());
      continue;
    }
    nodes.push_back(node_of(text, number));
    const Node& other = nodes.back();
    std::string mismatch;
    if (other.version != kVersion) {
      mismatch = fmt::format("{} has version {} of Concord, and {} has version {}; all machines need the same",
                             own.host, kVersion, other.host, other.version);
    } else if (other.nodes != own.nodes) {
      mismatch = fmt::format("{} was started with --nodes {}, and {} with --nodes {}", own.host, own.nodes, other.host,
                             other.nodes);
    } else if (other.least != least_) {
      mismatch = fmt::format("{} was started with --min-ranks {}, and {} with {}; 0 is without it", own.host, least_,
                             other.host, other.least);
    }
    if (mismatch.empty()) continue;
    static_cast<void>(store_->set("end", text_of({.by_interrupt = false, .failure = mismatch})));
    throw NotSupported(mismatch);
  }
  std::ranges::sort(nodes, {}, [](const Node& node) {
    return std::tuple(!node.serves, node.host, node.address.size(), node.address, node.arrival);
  });
  server_done_ = fmt::format("done{}", nodes[0].arrival);
  for (const Node& node : nodes) {
    if (node.arrival == place_) first_rank_ = ranks_;
    ranges_.push_back({node.arrival, ranks_, node.ranks});
    ranks_ += node.ranks;
  }
  machines_.count = static_cast<int>(nodes.size());
  if (machines_.fewest > 0 && least_ == 0) {
    std::ranges::sort(nodes, {}, &Node::ranks);
    for (int i = 0; i < machines_.fewest; ++i) least_ += nodes[static_cast<std::size_t>(i)].ranks;
  }
  store_->leave_behind(fmt::format("left{}", place_), "1");
  return true;
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
    is_store_lost_ = true;
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
    int number = 0;
    std::from_chars(rank.data(), rank.data() + rank.size(), number);
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
      if (has(fmt::format("left{}", range.place)) && !has(fmt::format("done{}", range.place))) continue;
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
  const auto end = MeetingClock::now() + std::chrono::duration<double>(deadline_seconds());
  try {
    static_cast<void>(store_->set(fmt::format("done{}", place_), "1"));
    for (int other = 0; other < machines_.count && !told() && !is_interrupted();) {
      if (least_ == 0 && MeetingClock::now() > end) return;
      const bool is_done = !store_->get(fmt::format("done{}", other), kTick).empty();
      if (is_done || has(fmt::format("left{}", other))) ++other;
    }
  } catch (const RankLost&) {  // the watcher says so
  }
}

}  // namespace concord::collective
