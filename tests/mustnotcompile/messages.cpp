// A message id is a room's own enumerator; sentences and unlike arguments are refused.

#include "base/messages.hpp"
#include "base/result.hpp"

using namespace trigon;

Message fine() { return message(BaseMessage::bad_number, "x", 3, gigabytes(1)); }

enum class NoRoom { something };

#if MISTAKE == 1  // error: .*message_id
Message unknown() { return message(NoRoom::something); }
#endif
#if MISTAKE == 2  // error: .*(to_arg|no matching function)
struct Thing {};
Message thing() { return message(BaseMessage::bad_number, Thing{}); }
#endif
#if MISTAKE == 3  // error: (could not convert|no matching function|no viable conversion)
tl::unexpected<Error> sentence() { return fail(ErrorCode::malformed, "it went wrong"); }
#endif
