// The signal masks of threads that compute.
#include "signals.hpp"

#include <pthread.h>

#include <array>

namespace concord::cpu {
namespace {

/// What the instructions of a thread raise.
constexpr std::array kOwn{SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT};

thread_local bool are_held = false;

void hold(sigset_t* before) {
  sigset_t all;
  sigfillset(&all);
  for (const int own : kOwn) sigdelset(&all, own);
  pthread_sigmask(SIG_BLOCK, &all, before);
  are_held = true;
}

}  // namespace

SignalsHeld::SignalsHeld(bool is_needed) : is_outermost_(is_needed && !are_held) {
  if (is_outermost_) hold(&before_);
}

SignalsHeld::~SignalsHeld() {
  if (!is_outermost_) return;
  are_held = false;
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

void hold_signals_of_thread() {
  if (!are_held) hold(nullptr);
}

}  // namespace concord::cpu
