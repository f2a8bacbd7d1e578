#pragma once
// Ctrl-C: ends the program at once, or, where something can say what it has so far, asks it to. A
// second one ends it all the same.

#include <atomic>

namespace trigon {

void listen_for_interrupts();

// While it lives, the first Ctrl-C sets the flag instead of ending the program.
class SoftStop {
 public:
  SoftStop();
  ~SoftStop();
  SoftStop(const SoftStop&) = delete;
  SoftStop& operator=(const SoftStop&) = delete;
  const std::atomic<bool>* flag() const;
};

}  // namespace trigon
