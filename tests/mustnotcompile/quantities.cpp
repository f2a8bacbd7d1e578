// Quantities of unlike dimension do not mix, and no bare number becomes a quantity.

#include "base/byte_count.hpp"
#include "base/quantity.hpp"
#include "base/result.hpp"

using namespace trigon;

BytesPerSecond fine() {
  Bytes size = gigabytes(80) + gibibytes(1);
  Seconds time = milliseconds(5) * 2.0;
  double ratio = size / gigabytes(1);
  return ratio * (size / time);
}

#if MISTAKE == 1  // error: (no match for|invalid operands).*
auto sum = gigabytes(1) + seconds(1);
#endif
#if MISTAKE == 2  // error: (conversion from|no viable conversion)
Bytes size = 80e9;
#endif
#if MISTAKE == 3  // error: (no match for|no viable overloaded)
void assign(Bytes& b) { b = 80e9; }
#endif
#if MISTAKE == 4  // error: (could not convert|cannot convert|conversion from|no viable conversion)
Bytes product() { return gigabytes(1) * gigabytes(1); }
#endif
#if MISTAKE == 5  // error: (cannot convert|no viable conversion)
double value = gigabytes(1);
#endif
#if MISTAKE == 6  // error: (no match for|invalid operands)
bool less = gigabytes(1) < seconds(1);
#endif
#if MISTAKE == 7  // error: (conversion from|no viable conversion)
BytesPerSecond inverted = seconds(1) / gigabytes(1);
#endif
#if MISTAKE == 8  // error: (conversion from|no viable conversion)
Tokens count = flops(1);
#endif
#if MISTAKE == 9  // error: (conversion from|no viable conversion)
ByteCount exact = gigabytes(1);
#endif
#if MISTAKE == 10  // error: (conversion from|no viable conversion)
ByteCount implicit = 1024;
#endif
#if MISTAKE == 11  // error: (no match for|invalid operands)
auto mixed = ByteCount(1) + gigabytes(1);
#endif
#if MISTAKE == 12  // error: (no match for|invalid operands)
auto half = ByteCount(1) / 2;
#endif
#if MISTAKE == 13  // error: (conversion from|no viable conversion|could not convert)
Result<Bytes> result = 3.0;
#endif
