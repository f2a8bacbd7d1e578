#include "session.hpp"

namespace trigon {

Result<Output> run_inspect(Call& call) {
  return open_session(call, "").map([](const auto&) { return Output{}; });
}

}  // namespace trigon
