// Each connection is a context of Gloo with a device, which has a thread, of its own. The ranks find each other's
// addresses in our store. Waits have a deadline; how a rank was lost, all learn from the store.
#include "concord/collective/gloo.hpp"

#include "concord/collective/messages.hpp"
#include "concord/core/check.hpp"

#ifdef CONCORD_WITH_GLOO
#include <fmt/format.h>
#include <gloo/common/error.h>
#include <gloo/transport/context.h>
#include <gloo/transport/device.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/transport/unbound_buffer.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <utility>
#include <vector>

#include "concord/collective/interfaces.hpp"
#include "concord/collective/survivors.hpp"
#include "concord/collective/wait_limit.hpp"
#include "concord/core/json.hpp"

namespace concord::collective {
namespace {

/// How long the store is asked who was lost first: its machine may be the lost one.
constexpr std::chrono::duration<double> kLastWords{1};
/// How long ranks that could go on try to reach it.
constexpr std::chrono::duration<double> kReturn{10};

/// Holds signals back from this thread, and from those that it starts. Gloo writes to sockets without a guard: where
/// the other end is gone, SIGPIPE would end the process.
class HeldSignals {
 public:
  enum class Which : std::uint8_t { broken_pipe, all };
  explicit HeldSignals(Which which) {
    sigset_t held{};
    ::sigemptyset(&held);
    ::sigaddset(&held, SIGPIPE);
    if (which == Which::all) ::sigfillset(&held);
    ::pthread_sigmask(SIG_BLOCK, &held, &before_);
  }
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;
  ~HeldSignals() {
    if (::sigismember(&before_, SIGPIPE) == 0) {  // one that came was for us
      sigset_t pipe{};
      ::sigemptyset(&pipe);
      ::sigaddset(&pipe, SIGPIPE);
      const timespec now{};
      while (::sigtimedwait(&pipe, nullptr, &now) > 0) {
      }
    }
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }

 private:
  sigset_t before_{};
};

std::string hexadecimal(const std::vector<char>& bytes) {
  std::string text;
  for (const char byte : bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return text;
}

std::vector<char> bytes_of(const std::string& text) {
  const auto value = [](char digit) { return digit <= '9' ? digit - '0' : digit - 'a' + 10; };
  std::vector<char> bytes;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2) {
    bytes.push_back(static_cast<char>(value(text[i]) * 16 + value(text[i + 1])));
  }
  return bytes;
}

class GlooMessages final : public Messages {
 public:
  GlooMessages(std::shared_ptr<Store> store, GlooOptions options)
      : store_(std::move(store)), options_(std::move(options)), names_(static_cast<std::size_t>(options_.size)) {
    store_->leave_behind(left_name(options_.prefix, options_.rank), "1");
    open();
    for (int other = 0; other < options_.size; ++other) {
      if (other != options_.rank) connect(other);
    }
  }
  GlooMessages(const GlooMessages&) = delete;
  GlooMessages& operator=(const GlooMessages&) = delete;
  ~GlooMessages() override {
    const HeldSignals held(HeldSignals::Which::broken_pipe);
    links_.clear();
  }

  std::unique_ptr<Messages> duplicate() override {
    GlooOptions options = options_;
    options.prefix += fmt::format("{}/", duplicates_++);
    return std::make_unique<GlooMessages>(store_->duplicate(options_.deadline), std::move(options));
  }

  PendingPtr send(int to, std::uint64_t number, std::span<const std::byte> bytes) override {
    // What is sent is only read.
    return begin(to, number, {const_cast<std::byte*>(bytes.data()), bytes.size()}, Direction::out);
  }
  PendingPtr receive(int from, std::uint64_t number, std::span<std::byte> bytes) override {
    return begin(from, number, bytes, Direction::in);
  }

  GroupPtr survivors() override {
    {
      const HeldSignals held(HeldSignals::Which::broken_pipe);
      links_.clear();  // those that wait for this rank learn that it goes on
    }
    GlooOptions next = options_;
    std::string failure;
    std::vector<std::shared_ptr<Store>> tried;             // the end of a connection would say that this rank has left
    for (int tries = options_.size; tries > 0; --tries) {  // a rank may be lost while they connect
      const std::shared_ptr<Store> store = store_of_survivors();
      store->set_deadline(options_.deadline);
      tried.push_back(store);
      const std::vector<int> ranks = agree_on_survivors(*store, next.prefix, next.rank, next.size, options_.deadline);
      next.rank = static_cast<int>(std::ranges::find(ranks, next.rank) - ranks.begin());
      next.size = static_cast<int>(ranks.size());
      next.prefix += "next/";
      if (next.size == 1) return nullptr;
      try {
        return make_gloo_group(store, next);
      } catch (const RankLost& error) {
        failure = error.what();
      }
    }
    throw RankLost(fmt::format("the ranks that are left do not connect: {}", failure));
  }

 private:
  enum class Direction : std::uint8_t { in, out };

  struct Link {
    std::shared_ptr<gloo::transport::Device> device;
    std::shared_ptr<gloo::transport::Context> context;
  };

  class GlooPending final : public Pending {
   public:
    GlooPending(const GlooMessages& all, std::unique_ptr<gloo::transport::UnboundBuffer> buffer, int other,
                Direction direction)
        : all_(all), buffer_(std::move(buffer)), other_(other), direction_(direction) {}
    void wait() override {
      constexpr std::chrono::hours kEver{24 * 365};  // the limit is ours
      const bool is_out = direction_ == Direction::out;
      all_.guarded(other_, [&] {
        return all_.limit_->is_exceeded(
            [&] { is_out ? buffer_->waitSend(nullptr, kEver) : buffer_->waitRecv(nullptr, kEver); },
            [&] { is_out ? buffer_->abortWaitSend() : buffer_->abortWaitRecv(); });
      });
    }
    [[nodiscard]] gloo::transport::UnboundBuffer& buffer() { return *buffer_; }

   private:
    const GlooMessages& all_;
    std::unique_ptr<gloo::transport::UnboundBuffer> buffer_;
    int other_;
    Direction direction_;
  };

  /// Listens for the other ranks, and enters the addresses.
  void open() {
    const HeldSignals held(HeldSignals::Which::all);
    limit_ = std::make_unique<WaitLimit>(options_.deadline);
    gloo::transport::tcp::attr place(options_.address.c_str());
    const auto patience = std::chrono::ceil<std::chrono::milliseconds>(options_.deadline);
    try {
      for (int i = 0; i < options_.connections; ++i) {
        Link link{gloo::transport::tcp::CreateDevice(place), nullptr};
        link.context = link.device->createContext(options_.rank, options_.size);
        link.context->setTimeout(patience);
        for (int other = 0; other < options_.size; ++other) {
          if (other != options_.rank) static_cast<void>(link.context->createPair(other));
        }
        links_.push_back(std::move(link));
      }
    } catch (const gloo::Exception& error) {
      throw IoError(
          fmt::format("rank {} cannot open connections at {}: {}", options_.rank, options_.address, error.what()));
    }
    for (int other = 0; other < options_.size; ++other) {
      if (other == options_.rank) continue;
      nlohmann::json own{{"process", ::getpid()}, {"host", host_name()}, {"address", options_.address}};
      for (const Link& link : links_) {
        own["links"].push_back(hexadecimal(link.context->getPair(other)->address().bytes()));
      }
      static_cast<void>(store_->set(entry(options_.rank, other), own.dump()));
    }
  }

  void connect(int other) {
    const std::string text = store_->get(entry(other, options_.rank));
    CONCORD_CHECK(!text.empty(), RankLost, "rank {} did not connect within {:g} s", other, options_.deadline.count());
    const nlohmann::json theirs = parse_json(text, fmt::format("the addresses of rank {}", other));
    const std::string address = theirs.value("address", "");
    names_[static_cast<std::size_t>(other)] =
        fmt::format("rank {} (process {} on {})", other, theirs.value("process", 0), theirs.value("host", ""));
    const nlohmann::json& links = theirs.at("links");
    CONCORD_CHECK(links.size() == links_.size(), ArgumentError,
                  "rank {} has {} connections to each rank, and rank {} has {}; CONCORD_CONNECTIONS must be the same",
                  options_.rank, links_.size(), other, links.size());
    const HeldSignals held(HeldSignals::Which::broken_pipe);
    for (std::size_t i = 0; i < links_.size(); ++i) {
      try {
        links_[i].context->getPair(other)->connect(bytes_of(links[i].get<std::string>()));
      } catch (const gloo::Exception& error) {
        lose(other, fmt::format("cannot be reached at {} from {} (CONCORD_INTERFACE chooses another interface): {}",
                                address, options_.address, error.what()));
      }
    }
  }

  /// A connection that is not late, as the one on which last words were spoken may be.
  [[nodiscard]] std::shared_ptr<Store> store_of_survivors() const {
    try {
      return store_->duplicate(std::min(options_.deadline, kReturn));
    } catch (const RankLost& error) {
      throw RankLost(
          fmt::format("{}{}, and no rank goes on without it", lost_.empty() ? "" : lost_ + "; ", error.what()));
    }
  }

  [[nodiscard]] std::string entry(int from, int to) const { return fmt::format("{}{}to{}", options_.prefix, from, to); }

  PendingPtr begin(int other, std::uint64_t number, std::span<std::byte> bytes, Direction direction) {
    if (!lost_.empty()) throw RankLost(lost_);  // at once, by whatever connection
    const Link& link = links_[number % links_.size()];
    // The two directions between two ranks have slots of their own.
    const bool is_upwards = (direction == Direction::out) == (options_.rank < other);
    const std::uint64_t slot = 2 * number + (is_upwards ? 1 : 0);
    auto pending = std::make_unique<GlooPending>(*this, link.context->createUnboundBuffer(bytes.data(), bytes.size()),
                                                 other, direction);
    guarded(other, [&] {
      direction == Direction::out ? pending->buffer().send(other, slot) : pending->buffer().recv(other, slot);
      return false;
    });
    return pending;
  }

  /// `work` returns whether it has taken too long.
  template <typename Work>
  void guarded(int other, const Work& work) const {
    const HeldSignals held(HeldSignals::Which::broken_pipe);
    bool is_late = false;
    try {
      is_late = work();
    } catch (const gloo::Exception&) {
      lose(other, "has left the training, or its connection is broken");
    }
    if (is_late) lose(other, fmt::format("did not answer for {:g} s", options_.deadline.count()));
  }

  /// The first rank that is lost is the one that all name: when it is lost, others leave too.
  [[noreturn]] void lose(int other, const std::string& how) const {
    const std::string entered = lost_name(options_.prefix);
    std::string text = fmt::format("{} {}", names_[static_cast<std::size_t>(other)], how);
    try {
      store_->set_deadline(std::min(options_.deadline, kLastWords));
      if (store_->set(entered, text)) {
        static_cast<void>(store_->set(lost_rank_name(options_.prefix), std::to_string(other)));
      } else {
        text = store_->get(entered, std::chrono::milliseconds(0));
      }
    } catch (const RankLost&) {  // the store is lost too
    }
    lost_ = text;
    throw RankLost(text);
  }

  std::shared_ptr<Store> store_;
  GlooOptions options_;
  std::unique_ptr<WaitLimit> limit_;
  int duplicates_ = 0;
  std::vector<Link> links_;
  mutable std::string lost_;        // what this rank has noticed of a lost one
  std::vector<std::string> names_;  // of the ranks, for messages of errors
};

}  // namespace

bool has_gloo() { return true; }

GroupPtr make_gloo_group(std::shared_ptr<Store> store, const GlooOptions& options) {
  auto messages = std::make_unique<GlooMessages>(std::move(store), options);
  GroupPtr group = make_message_group(std::move(messages), options.rank, options.size, "gloo");
  group->barrier();  // a rank that leaves at once would look lost to those that still connect
  return group;
}

}  // namespace concord::collective

#else

namespace concord::collective {

bool has_gloo() { return false; }

GroupPtr make_gloo_group(std::shared_ptr<Store>, const GlooOptions&) {
  throw NotSupported(
      "this Concord was built without Gloo, which trainings on several machines need: install libgloo-dev and build "
      "again");
}

}  // namespace concord::collective

#endif
