#pragma once
// The verbs of the program: each reads its part of the call, asks the library, and has `present`
// write the answer.

#include "call.hpp"

namespace trigon {

Result<Output> run_fit(Call& call);
Result<Output> run_estimate(Call& call);
Result<Output> run_recommend(Call& call);
Result<Output> run_plan(Call& call);
Result<Output> run_compare(Call& call);
Result<Output> run_inspect(Call& call);
Result<Output> run_check(Call& call);
Result<Output> run_catalog(Call& call);
Result<Output> run_validate(Call& call);
Result<Output> run_calibrate(Call& call);

// At most this many arguments; the error names the one too many.
Result<void> expect_arguments(const Call& call, std::size_t most);
// The frame of an answer: command and given settings.
Asked asked_of(const Call& call);
// Date and hash of the facts in use.
std::string data_version_of(const Call& call);

}  // namespace trigon
