// The protocol: the client writes "set NAME SIZE\n" and the text, and the server answers "new\n" or "old\n"; or the
// client writes "get NAME MILLISECONDS\n", and the server answers "SIZE\n" and the text, "0\n" after that time. With
// "will NAME SIZE\n" and a text, which is answered by "new\n", that text is set when the connection ends.
#include "concord/collective/store.hpp"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <condition_variable>
#include <istream>
#include <list>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "concord/collective/group.hpp"
#include "concord/core/check.hpp"
#include "concord/core/version.hpp"

namespace concord::collective {
namespace {

using boost::asio::ip::tcp;

constexpr std::size_t kLongestText = std::size_t{1} << 20;

constexpr const char* kGreeting = "concord";  // a name that each server has a text for

/// Reads exactly so many bytes. Returns false if the other end has hung up.
bool read_text(std::istream& stream, std::size_t size, std::string& text) {
  if (size > kLongestText) return false;
  text.resize(size);
  return bool(stream.read(text.data(), static_cast<std::streamsize>(size)));
}

/// Lets the system end the connection when the other machine does not answer for the time: it asks by itself.
void end_when_silent(tcp::socket& socket, std::chrono::duration<double> time) {
  const int seconds = static_cast<int>(std::clamp(time.count(), 2.0, 3600.0));
  const int first = seconds / 2, each = std::max(1, first / 3), milliseconds = seconds * 1000;
  const auto set = [&](int level, int name, int value) {
    ::setsockopt(socket.native_handle(), level, name, &value, sizeof value);
  };
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, first);
  set(IPPROTO_TCP, TCP_KEEPINTVL, each);
  set(IPPROTO_TCP, TCP_KEEPCNT, first / each);
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, milliseconds);  // where an answer is on its way
}

}  // namespace

struct StoreServer::State {
  explicit State(const tcp::endpoint& place)
      : patience(deadline_seconds()), acceptor(context), texts{{kGreeting, std::string(kVersion)}} {
    boost::system::error_code error;
    acceptor.open(place.protocol());
    acceptor.set_option(tcp::acceptor::reuse_address(true));
    acceptor.bind(place, error);
    if (!error) acceptor.listen(boost::asio::socket_base::max_listen_connections, error);
    CONCORD_CHECK(!error, IoError, "port {} cannot be opened for the processes of a training: {}", place.port(),
                  error.message());
    accept();
    listener = std::thread([this] { context.run(); });
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    context.stop();
    listener.join();
    {
      const std::lock_guard lock(mutex);
      is_closing = true;
      boost::system::error_code ignored;
      for (tcp::iostream& client : clients) client.socket().shutdown(tcp::socket::shutdown_both, ignored);
    }
    changed.notify_all();
    for (std::thread& thread : threads) thread.join();
  }

  void accept() {
    acceptor.async_accept([this](const boost::system::error_code& error, tcp::socket socket) {
      if (error) return;
      const std::lock_guard lock(mutex);
      socket.set_option(tcp::no_delay(true));
      end_when_silent(socket, patience);
      tcp::iostream& client = clients.emplace_back(std::move(socket));
      threads.emplace_back([this, &client] { serve(client); });
      accept();
    });
  }

  void serve(tcp::iostream& client) {
    std::vector<std::pair<std::string, std::string>> wills;
    answer(client, wills);
    const std::lock_guard lock(mutex);
    for (auto& [name, text] : wills) texts.emplace(std::move(name), std::move(text));
    changed.notify_all();
  }

  /// Until the client hangs up.
  void answer(tcp::iostream& client, std::vector<std::pair<std::string, std::string>>& wills) {
    std::string verb, name, text;
    std::size_t number = 0;
    while (client >> verb >> name >> number && client.get() == '\n') {
      if (verb == "set") {
        if (!read_text(client, number, text)) return;
        const std::lock_guard lock(mutex);
        client << (texts.emplace(name, text).second ? "new\n" : "old\n") << std::flush;
        changed.notify_all();
      } else if (verb == "will") {
        if (!read_text(client, number, text)) return;
        wills.emplace_back(name, text);
        client << "new\n" << std::flush;
      } else if (verb == "get") {
        std::unique_lock lock(mutex);
        changed.wait_for(lock, std::chrono::milliseconds(number), [&] { return is_closing || texts.contains(name); });
        const std::string found = texts.contains(name) ? texts[name] : std::string();
        lock.unlock();
        client << found.size() << '\n' << found << std::flush;
      } else {
        return;
      }
    }
  }

  std::chrono::duration<double> patience;
  boost::asio::io_context context;
  tcp::acceptor acceptor;
  std::thread listener;
  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::string, std::string> texts;
  std::list<tcp::iostream> clients;
  std::list<std::thread> threads;
  bool is_closing = false;
};

StoreServer::StoreServer(Reach reach, std::uint16_t port)
    : state_(std::make_unique<State>(reach == Reach::this_machine
                                         ? tcp::endpoint(boost::asio::ip::address_v4::loopback(), port)
                                         : tcp::endpoint(tcp::v4(), port))) {}
StoreServer::StoreServer(const std::string& address, std::uint16_t port)
    : state_(std::make_unique<State>(tcp::endpoint(boost::asio::ip::make_address(address), port))) {}
StoreServer::~StoreServer() = default;

std::optional<std::string> StoreServer::find(const std::string& name) const {
  const std::lock_guard lock(state_->mutex);
  const auto found = state_->texts.find(name);
  return found == state_->texts.end() ? std::nullopt : std::optional(found->second);
}

std::uint16_t StoreServer::port() const { return state_->acceptor.local_endpoint().port(); }

struct Store::Connection {
  std::string host;
  std::uint16_t port;
  std::chrono::duration<double> deadline;
  tcp::iostream stream;

  /// Until the deadline, and some seconds more in which the server may answer that there is nothing.
  void start_time() {
    const std::chrono::duration<double> more(5);
    stream.expires_after(std::chrono::duration_cast<std::chrono::nanoseconds>(deadline + std::min(deadline, more)));
  }
  void require_answer() {
    CONCORD_CHECK(stream, RankLost, "the store at {}:{}, where the processes of the training meet, has hung up: {}",
                  host, port, stream.error().message());
  }
  /// Returns whether the text is new.
  bool enter(const char* verb, const std::string& name, const std::string& text) {
    start_time();
    std::string answer;
    stream << verb << ' ' << name << ' ' << text.size() << '\n' << text << std::flush;
    stream >> answer;
    require_answer();
    return answer == "new";
  }
};

Store::Store(std::string host, std::uint16_t port, std::chrono::duration<double> deadline)
    : connection_(std::make_unique<Connection>(Connection{std::move(host), port, deadline, {}})) {
  constexpr std::chrono::milliseconds kPause{50};
  constexpr std::chrono::seconds kTry{5}, kAnswer{10};  // a machine that is not up yet answers nothing
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration_cast<std::chrono::nanoseconds>(deadline);
  tcp::iostream& stream = connection_->stream;
  for (;;) {
    stream.clear();
    const std::chrono::nanoseconds left = end - std::chrono::steady_clock::now();
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
    CONCORD_CHECK(std::chrono::steady_clock::now() < end, RankLost,
                  "{}:{}, where the processes of the training meet, cannot be reached for {:g} s: {}",
                  connection_->host, port, deadline.count(), error.message());
    std::this_thread::sleep_for(kPause);
  }
  stream.socket().set_option(tcp::no_delay(true));
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
  return get(name, std::chrono::duration_cast<std::chrono::milliseconds>(connection_->deadline));
}

std::string Store::get(const std::string& name, std::chrono::milliseconds patience) {
  connection_->start_time();
  std::size_t size = 0;
  connection_->stream << "get " << name << ' ' << patience.count() << '\n' << std::flush;
  connection_->stream >> size;
  std::string text;
  const bool is_whole = connection_->stream.get() == '\n' && read_text(connection_->stream, size, text);
  if (!is_whole) connection_->stream.setstate(std::ios::failbit);
  connection_->require_answer();
  return text;
}

}  // namespace concord::collective
