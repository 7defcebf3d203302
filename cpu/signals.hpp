// Signals stay away from threads whose stack pointer is not on their stack.
#pragma once

#include <csignal>

namespace concord::cpu {

/// While it lives, the calling thread takes no signals. Those to the process go to its other threads, or wait.
/// Signals that the thread's own instructions raise (SIGSEGV, SIGFPE and their like) are taken. Some of oneDNN's
/// compiled kernels use the stack pointer for a buffer of theirs (`moves_stack_pointer`): the system would write the
/// frame of a handler below it, over whatever lies there. Within another of the same thread it does nothing.
class SignalsHeld {
 public:
  explicit SignalsHeld(bool is_needed = true);
  ~SignalsHeld();
  SignalsHeld(const SignalsHeld&) = delete;
  SignalsHeld& operator=(const SignalsHeld&) = delete;

 private:
  bool is_outermost_;
  sigset_t before_{};
};

/// The same for good: for OpenMP's threads, which may run such kernels whenever there is a region.
void hold_signals_of_thread();

}  // namespace concord::cpu
