#include "base/byte_count.hpp"

#include <cstdio>
#include <cstdlib>

namespace trigon {

void broken_invariant(const char* what, std::int64_t a, std::int64_t b) {
  std::fprintf(stderr, "trigon: broken invariant: %s (operands %lld and %lld)\n", what,
               static_cast<long long>(a), static_cast<long long>(b));
  std::abort();
}

}  // namespace trigon
