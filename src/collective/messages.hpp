// A group over messages from rank to rank, whatever carries them. Internal to the library.
#pragma once

#include <memory>
#include <string>

#include "concord/collective/group.hpp"

namespace concord::collective {

/// Carries messages between ranks. The messages from one rank to another have numbers, by which they are received; each
/// is used once, and nearby numbers are used at about the same time. No message is empty.
class Messages {
 public:
  /// A message on its way. Its destruction before the end gives it up: the memory is not touched any more.
  class Pending {
   public:
    Pending() = default;
    Pending(const Pending&) = delete;
    Pending& operator=(const Pending&) = delete;
    virtual ~Pending() = default;
    /// Until its memory is free for use. Throws RankLost, also after the deadline.
    virtual void wait() = 0;
  };
  using PendingPtr = std::unique_ptr<Pending>;

  Messages() = default;
  Messages(const Messages&) = delete;
  Messages& operator=(const Messages&) = delete;
  virtual ~Messages() = default;

  /// Other messages between the same ranks, with numbers of their own. All ranks call it.
  [[nodiscard]] virtual std::unique_ptr<Messages> duplicate() = 0;
  /// Begins to send. Ends when the other rank has begun to receive. Throws RankLost.
  [[nodiscard]] virtual PendingPtr send(int to, std::uint64_t number, std::span<const std::byte> bytes) = 0;
  /// Begins to receive a message of this size. Throws RankLost.
  [[nodiscard]] virtual PendingPtr receive(int from, std::uint64_t number, std::span<std::byte> bytes) = 0;
  /// A group of the ranks that still take part, as Group::survivors. The connections end; nothing is on its way.
  [[nodiscard]] virtual GroupPtr survivors() = 0;
};

/// A group whose ranks exchange through `messages`; `transport` is its name.
[[nodiscard]] GroupPtr make_message_group(std::unique_ptr<Messages> messages, int rank, int size,
                                          std::string transport);

}  // namespace concord::collective
