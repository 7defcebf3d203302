// Blocks signals in threads whose stack pointer may not be on their stack.
#pragma once

#include <csignal>

namespace concord::cpu {

/// While it lives, the calling thread takes no signals. Those to the process go to its other threads, or wait.
/// Signals that the thread's own instructions raise (SIGSEGV, SIGFPE and their like) are taken. oneDNN's compiled
/// products use the stack pointer for a buffer of theirs (onednn_faults.hpp): the system would write the frame of a
/// handler below it, over whatever lies there. Within another of the same thread it does nothing.
class SignalsBlocked {
 public:
  SignalsBlocked();
  ~SignalsBlocked();
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  bool is_outermost_;
  sigset_t before_{};
};

/// The same for good: for OpenMP's threads, which compute whenever there is a region. Those that start later have the
/// mask of the thread that starts them, so regions of this backend begin with signals blocked.
void block_signals_of_thread();

}  // namespace concord::cpu
