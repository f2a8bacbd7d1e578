#include "interrupt.hpp"

#include <unistd.h>

#include <csignal>

#include "call.hpp"

namespace trigon {
namespace {

// A signal handler may touch these only.
std::atomic<bool> soft{false}, asked{false};
static_assert(std::atomic<bool>::is_always_lock_free);

void interrupted(int) {
  if (!soft || asked.exchange(true)) _exit(exit_interrupted);
}

}  // namespace

void listen_for_interrupts() { std::signal(SIGINT, interrupted); }

SoftStop::SoftStop() { soft = true; }
SoftStop::~SoftStop() { soft = false; }
const std::atomic<bool>* SoftStop::flag() const { return &asked; }

}  // namespace trigon
