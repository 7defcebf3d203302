// Store: short texts by name, by which the processes of a training find each other before they have a group. One
// process serves the store over TCP; all of them, on any machine, are its clients. Internal to the library.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace concord::collective {

/// Serves a store until its destruction. A client whose machine does not answer for the deadline (deadline_seconds) is
/// lost, as one that has ended.
class StoreServer {
 public:
  /// Listens on an address of this machine, as numbers, at this port, or at a free port if it is 0. Throws IoError if
  /// the port is in use.
  StoreServer(const std::string& address, std::uint16_t port);
  StoreServer(const StoreServer&) = delete;
  StoreServer& operator=(const StoreServer&) = delete;
  ~StoreServer();
  [[nodiscard]] std::uint16_t port() const;
  /// The text of this name, if there is one.
  [[nodiscard]] std::optional<std::string> find(const std::string& name) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// A connection to a store.
class Store {
 public:
  /// Tries until the server answers or the deadline passes. Throws RankLost after it, and IoError for a host that does
  /// not exist and if another program than Concord answers.
  Store(std::string host, std::uint16_t port, std::chrono::duration<double> deadline);
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;
  ~Store();

  /// Enters a text. Returns false if the name has one already, which then stays.
  [[nodiscard]] bool set(const std::string& name, const std::string& text);
  /// Waits until the name has a text. Returns an empty string if it has none when the deadline passes.
  [[nodiscard]] std::string get(const std::string& name);
  /// The same for a time that is shorter than the deadline; 0: the text that is there now.
  [[nodiscard]] std::string get(const std::string& name, std::chrono::milliseconds patience);

  /// Enters a text when this connection ends, however it does; if the name has none by then.
  void leave_behind(const std::string& name, const std::string& text);

  /// Another connection to the same server, also for another thread. Throws as the constructor.
  [[nodiscard]] std::shared_ptr<Store> duplicate(std::chrono::duration<double> deadline) const;

  /// From now on: how long each operation waits. For the last words of a training whose network may be gone.
  void set_deadline(std::chrono::duration<double> deadline);

  /// The address, as numbers, by which this machine reaches the store.
  [[nodiscard]] std::string own_address() const;

 private:
  struct Connection;
  std::unique_ptr<Connection> connection_;
};

}  // namespace concord::collective
