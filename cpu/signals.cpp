// The signal masks of threads that compute.
#include "signals.hpp"

#include <pthread.h>

#include <array>

namespace concord::cpu {
namespace {

/// What the instructions of a thread raise.
constexpr std::array kOwn{SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT};

thread_local bool are_blocked = false;

void block(sigset_t* before) {
  sigset_t all;
  sigfillset(&all);
  for (const int own : kOwn) sigdelset(&all, own);
  pthread_sigmask(SIG_BLOCK, &all, before);
  are_blocked = true;
}

}  // namespace

SignalsBlocked::SignalsBlocked() : is_outermost_(!are_blocked) {
  if (is_outermost_) block(&before_);
}

SignalsBlocked::~SignalsBlocked() {
  if (!is_outermost_) return;
  are_blocked = false;
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

void block_signals_of_thread() {
  if (!are_blocked) block(nullptr);
}

}  // namespace concord::cpu
