// The protocol: the client writes "set NAME SIZE\n" and the text, and the server answers "new\n" or "old\n"; or the
// client writes "get NAME MILLISECONDS\n", and the server answers "SIZE\n" and the text, "0\n" after that time. With
// "will NAME SIZE\n" and a text, which is answered by "new\n", that text is set when the connection ends, also while a
// `get` waits.
#include "concord/collective/store.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/streambuf.hpp>
#include <boost/asio/write.hpp>
#include <istream>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "concord/collective/group.hpp"
#include "concord/collective/interfaces.hpp"
#include "concord/collective/running_time.hpp"
#include "concord/core/check.hpp"
#include "concord/core/version.hpp"

namespace concord::collective {
namespace {

using boost::asio::ip::tcp;

constexpr std::size_t kLongestText = std::size_t{1} << 20;

constexpr int kAskLook = 50;  // milliseconds between looks for an answer

constexpr const char* kGreeting = "concord";  // a name that each server has a text for

/// Reads exactly so many bytes. Returns false if the other end has hung up.
bool read_text(std::istream& stream, std::size_t size, std::string& text) {
  if (size > kLongestText) return false;
  text.resize(size);
  return bool(stream.read(text.data(), static_cast<std::streamsize>(size)));
}

/// A child process, which this one may start, must not keep the connection open.
void keep_from_children(int socket) { ::fcntl(socket, F_SETFD, FD_CLOEXEC); }

}  // namespace

/// The texts of a server, and its clients, all in one thread. It always reads from every client, so it notices at once
/// that a connection is lost.
struct StoreServer::State {
  explicit State(const tcp::endpoint& place)
      : patience(deadline_seconds()), texts{{kGreeting, std::string(kVersion)}}, acceptor(context) {
    boost::system::error_code error;
    acceptor.open(place.protocol());
    keep_from_children(acceptor.native_handle());
    acceptor.set_option(tcp::acceptor::reuse_address(true));
    acceptor.bind(place, error);
    if (!error) acceptor.listen(boost::asio::socket_base::max_listen_connections, error);
    CONCORD_CHECK(!error, IoError, "port {} cannot be opened for the processes of a training: {}", place.port(),
                  error.message());
    port = acceptor.local_endpoint().port();
    accept();
    thread = std::thread([this] { context.run(); });
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    context.stop();
    thread.join();
  }

  void accept() {
    acceptor.async_accept([this](const boost::system::error_code& error, tcp::socket socket) {
      if (error == boost::asio::error::operation_aborted) return;
      if (error) return accept_later();
      boost::system::error_code ignored;  // it may have hung up already
      socket.set_option(tcp::no_delay(true), ignored);
      keep_from_children(socket.native_handle());
      end_when_silent(socket.native_handle(), patience);
      std::make_shared<Client>(*this, std::move(socket))->read_command();
      accept();
    });
  }

  /// The system may have no more files or memory for now.
  void accept_later() {
    constexpr std::chrono::milliseconds kPause{50};
    pause.expires_after(kPause);
    pause.async_wait([this](const boost::system::error_code& error) {
      if (!error) accept();
    });
  }

  /// Returns whether the text is new. `answer_waiting` then tells those that wait for it.
  bool enter(const std::string& name, const std::string& text) {
    const std::lock_guard lock(mutex);
    return texts.emplace(name, text).second;
  }
  void answer_waiting(const std::string& name) {
    const auto [first, last] = waiting.equal_range(name);
    std::vector<std::shared_ptr<Client>> clients;
    for (auto one = first; one != last; ++one) clients.push_back(one->second);
    waiting.erase(first, last);
    for (const std::shared_ptr<Client>& client : clients) client->answer_get(texts.at(name));
  }

  /// A connection. Lives as long as something is expected of it.
  class Client : public std::enable_shared_from_this<Client> {
   public:
    Client(State& state, tcp::socket socket)
        : state_(state), socket_(std::move(socket)), timer_(state.context), input_(2 * kLongestText) {}

    void read_command() {
      boost::asio::async_read_until(socket_, input_, '\n',
                                    [self = shared_from_this()](const boost::system::error_code& error, std::size_t) {
                                      if (error || !self->obey()) self->hang_up();
                                    });
    }

    void answer_get(const std::string& text) {
      awaited_.reset();
      timer_.cancel();
      write(fmt::format("{}\n{}", text.size(), text));
    }

   private:
    /// Returns false if the client does not keep to the protocol.
    [[nodiscard]] bool obey() {
      std::istream stream(&input_);
      std::string verb, name;
      std::size_t number = 0;
      if (awaited_ || !(stream >> verb >> name >> number) || stream.get() != '\n') return false;
      if (verb == "get") {
        get(name, std::chrono::milliseconds(std::min<std::size_t>(number, std::size_t{1} << 40U)));
        read_command();
        return true;
      }
      if ((verb != "set" && verb != "will") || number > kLongestText) return false;
      const std::size_t missing = number - std::min(number, input_.size());
      boost::asio::async_read(socket_, input_, boost::asio::transfer_exactly(missing),
                              [self = shared_from_this(), is_will = verb == "will", name, number](
                                  const boost::system::error_code& error, std::size_t) {
                                if (error) return self->hang_up();
                                std::string text;
                                std::istream rest(&self->input_);
                                static_cast<void>(read_text(rest, number, text));
                                self->enter(is_will, name, text);
                                self->read_command();
                              });
      return true;
    }

    void enter(bool is_will, const std::string& name, const std::string& text) {
      if (is_will) wills_.emplace_back(name, text);
      const bool is_new = is_will || state_.enter(name, text);
      write(is_new ? "new\n" : "old\n");
      if (!is_will && is_new) state_.answer_waiting(name);
    }

    void get(const std::string& name, std::chrono::milliseconds patience) {
      const auto found = state_.texts.find(name);
      if (found != state_.texts.end()) return answer_get(found->second);
      if (patience.count() == 0) return answer_get({});
      awaited_ = name;
      state_.waiting.emplace(name, shared_from_this());
      timer_.expires_after(patience);
      timer_.async_wait([self = shared_from_this()](const boost::system::error_code& error) {
        const bool is_of_another = self->timer_.expiry() > std::chrono::steady_clock::now();
        if (error || !self->awaited_ || is_of_another) return;
        self->wait_no_more();
        self->answer_get({});
      });
    }

    void wait_no_more() {
      if (!awaited_) return;
      std::erase_if(state_.waiting, [this](const auto& one) { return one.second.get() == this; });
      awaited_.reset();
      timer_.cancel();
    }

    void write(std::string text) {
      const auto kept = std::make_shared<std::string>(std::move(text));
      boost::asio::async_write(socket_, boost::asio::buffer(*kept),
                               [self = shared_from_this(), kept](const boost::system::error_code&, std::size_t) {});
    }

    void hang_up() {
      const std::shared_ptr<Client> self = shared_from_this();
      wait_no_more();
      boost::system::error_code ignored;
      socket_.close(ignored);
      for (const auto& [name, text] : std::exchange(wills_, {})) {
        if (state_.enter(name, text)) state_.answer_waiting(name);
      }
    }

    State& state_;
    tcp::socket socket_;
    boost::asio::steady_timer timer_;
    boost::asio::streambuf input_;
    std::optional<std::string> awaited_;  // the name of a `get` under way
    std::vector<std::pair<std::string, std::string>> wills_;
  };

  std::chrono::duration<double> patience;
  std::uint16_t port = 0;
  mutable std::mutex mutex;  // of `texts`, which only the thread changes
  std::map<std::string, std::string> texts;
  boost::asio::io_context context;  // its end destroys the clients
  tcp::acceptor acceptor;
  boost::asio::steady_timer pause{context};                     // before it accepts again
  std::multimap<std::string, std::shared_ptr<Client>> waiting;  // by the name that they wait for
  std::thread thread;
};

StoreServer::StoreServer(const std::string& address, std::uint16_t port)
    : state_(std::make_unique<State>(tcp::endpoint(boost::asio::ip::make_address(address), port))) {}
StoreServer::~StoreServer() = default;

std::optional<std::string> StoreServer::find(const std::string& name) const {
  const std::lock_guard lock(state_->mutex);
  const auto found = state_->texts.find(name);
  return found == state_->texts.end() ? std::nullopt : std::optional(found->second);
}

std::uint16_t StoreServer::port() const { return state_->port; }

struct Store::Connection {
  std::string host;
  std::uint16_t port;
  std::chrono::duration<double> deadline;
  tcp::iostream stream;

  /// Sends a command and waits for the answer to begin: until the deadline, and some seconds more in which the server
  /// may answer that there is nothing. The stream's own time would also pass while this process is stopped.
  void ask(const std::string& command) {
    constexpr std::chrono::seconds kMore{5}, kWhole{10};
    const std::chrono::duration<double> limit = deadline + std::min<std::chrono::duration<double>>(deadline, kMore);
    stream.expires_after(kWhole);
    stream << command << std::flush;
    RunningTime waited;
    pollfd ready{stream.socket().native_handle(), POLLIN, 0};
    bool is_late = false;
    while (stream && !is_late && stream.rdbuf()->in_avail() <= 0 && ::poll(&ready, 1, kAskLook) <= 0) {
      is_late = waited.look() > limit;
    }
    stream.expires_after(is_late ? std::chrono::seconds(0) : kWhole);
  }
  void require_answer() {
    CONCORD_CHECK(stream, RankLost, "the store at {}:{}, where the processes of the training meet, has hung up: {}",
                  host, port, stream.error().message());
  }
  /// Returns whether the text is new.
  bool enter(const char* verb, const std::string& name, const std::string& text) {
    ask(fmt::format("{} {} {}\n{}", verb, name, text.size(), text));
    std::string answer;
    std::getline(stream, answer);
    require_answer();
    return answer == "new";
  }
};

Store::Store(std::string host, std::uint16_t port, std::chrono::duration<double> deadline)
    : connection_(new Connection{std::move(host), port, deadline, {}}) {  // not every compiler can move a stream
  constexpr std::chrono::milliseconds kPause{50};
  constexpr std::chrono::seconds kTry{5}, kAnswer{10};  // a machine that is not up yet answers nothing
  RunningTime waited(kTry + kPause);
  tcp::iostream& stream = connection_->stream;
  for (;;) {
    stream.clear();
    const auto left = std::chrono::duration_cast<std::chrono::nanoseconds>(deadline - waited.look());
    stream.expires_after(deadline.count() > 0 ? std::clamp<std::chrono::nanoseconds>(left, kPause, kTry) : kTry);
    stream.connect(connection_->host, std::to_string(port));
    boost::system::error_code error = stream.error();
    if (stream) {
      static_cast<void>(stream.socket().remote_endpoint(error));
      if (!error) break;
      error = boost::asio::error::timed_out;  // Boost takes a connection that is late for a good one
    }
    CONCORD_CHECK(error != boost::asio::error::host_not_found, IoError,
                  "there is no machine \"{}\", where the processes of the training meet: {}", connection_->host,
                  error.message());
    CONCORD_CHECK(waited.look() < deadline, RankLost,
                  "{}:{}, where the processes of the training meet, cannot be reached for {:g} s: {}",
                  connection_->host, port, deadline.count(), error.message());
    std::this_thread::sleep_for(kPause);
  }
  stream.socket().set_option(tcp::no_delay(true));
  keep_from_children(stream.socket().native_handle());
  stream.expires_after(kAnswer);
  stream << "get " << kGreeting << " 0\n" << std::flush;
  std::size_t size = 0;
  std::string version;
  stream >> size;
  CONCORD_CHECK(stream && stream.get() == '\n' && read_text(stream, size, version), IoError,
                "{}:{}, where the processes of the training meet, belongs to another program", connection_->host, port);
}

Store::~Store() = default;

void Store::set_deadline(std::chrono::duration<double> deadline) { connection_->deadline = deadline; }

std::string Store::own_address() const { return connection_->stream.socket().local_endpoint().address().to_string(); }

std::shared_ptr<Store> Store::duplicate(std::chrono::duration<double> deadline) const {
  return std::make_shared<Store>(connection_->host, connection_->port, deadline);
}

bool Store::set(const std::string& name, const std::string& text) { return connection_->enter("set", name, text); }

void Store::leave_behind(const std::string& name, const std::string& text) {
  static_cast<void>(connection_->enter("will", name, text));
}

std::string Store::get(const std::string& name) {
  constexpr std::chrono::milliseconds kNone{0}, kOnce{200};  // the server's time passes while all are stopped, too
  RunningTime waited;
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(connection_->deadline - waited.look());
    std::string text = get(name, std::clamp(left, kNone, kOnce));
    if (!text.empty() || left <= kNone) return text;
  }
}

std::string Store::get(const std::string& name, std::chrono::milliseconds patience) {
  connection_->ask(fmt::format("get {} {}\n", name, patience.count()));
  std::size_t size = 0;
  connection_->stream >> size;
  std::string text;
  const bool is_whole = connection_->stream.get() == '\n' && read_text(connection_->stream, size, text);
  if (!is_whole) connection_->stream.setstate(std::ios::failbit);
  connection_->require_answer();
  return text;
}

}  // namespace concord::collective
