#pragma once
// What is asked, as values only: the job, its limits and its objective.

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/message.hpp"
#include "base/quantity.hpp"
#include "job/adapter_targets.hpp"
#include "model/item.hpp"

namespace trigon {

// "p95 of TTFT at most 1 s". `percentile` is 0..100; 50 is the median.
struct LatencyLimit {
  Seconds at_most{};
  double percentile = 95;
};

struct ServeLimits {
  std::optional<LatencyLimit> ttft;  // time to first token
  std::optional<LatencyLimit> tpot;  // time per output token after the first
  std::optional<LatencyLimit> e2e;   // whole request
};

// Models that do whole items (images, utterances; `Model::item`) have no token counts: their
// lengths are 0, a request is one item, and training counts items as sequences of one token.

// Open-loop requests at a rate, or a closed loop that keeps `concurrency` in flight. One of them
// is set.
struct Serve {
  std::optional<PerSecond> rate;
  std::optional<double> concurrency;
  std::int64_t input_tokens = 0, output_tokens = 0;
  ServeLimits limits;
  std::optional<Item> item;  // what one request or sample is; absent: tokens
};

// Offline inference: all work is there at once, only throughput counts.
struct Batch {
  std::optional<double> requests;  // how many; absent: steady throughput is the question
  std::int64_t input_tokens = 0, output_tokens = 0;
  std::optional<Seconds> deadline;
  std::optional<Item> item;  // what one request or sample is; absent: tokens
};

struct Train {
  double tokens = 0;
  std::int64_t sequence = 0;
  std::int64_t source = 0;        // tokens that an encoder reads for each sequence; 0: as many
  std::int64_t global_batch = 0;  // sequences per optimizer step
  std::optional<Seconds> deadline;
  std::optional<Item> item;  // what one request or sample is; absent: tokens
};

enum class TuneMethod : std::uint8_t { full, lora, qlora };

// What an adapter keeps of the matrix it stands on until the backward pass, and what trains.
struct AdapterForm {
  bool input = true;      // a copy of the input, which it multiplies by matrices of its own (LoRA)
  bool delta = false;     // the change of the weight as a whole matrix (LoHa, LoKr, FourierFT)
  bool output = false;    // the matrix' output, which it scales (IA3)
  double parameters = 0;  // that train; 0: rank x (in + out) over the targets
  bool ends = false;      // embedding and head train whole as copies (peft's modules_to_save)
};

struct FineTune {
  TuneMethod method = TuneMethod::lora;
  double tokens = 0;
  std::int64_t sequence = 0;
  std::int64_t source = 0;
  std::int64_t global_batch = 0;
  std::int64_t rank = 0;  // of the adapters
  AdapterTargets targets = kAllLinears;
  bool dora = false;  // a magnitude for each output of an adapted matrix (arXiv:2402.09353)
  AdapterForm form;
  std::optional<Seconds> deadline;
  std::optional<Item> item;  // what one request or sample is; absent: tokens
};

using Job = std::variant<Serve, Batch, Train, FineTune>;
inline const std::optional<Item>& item_of(const Job& job) {
  return std::visit([](const auto& j) -> const std::optional<Item>& { return j.item; }, job);
}

inline bool trains(const Job& job) {
  return std::holds_alternative<Train>(job) || std::holds_alternative<FineTune>(job);
}

// Tokens that the encoder of an encoder-decoder reads for a training sequence.
inline std::int64_t training_source(const Job& job) {
  auto of = [](const auto& j) { return j.source > 0 ? j.source : j.sequence; };
  if (auto t = std::get_if<Train>(&job)) return of(*t);
  if (auto f = std::get_if<FineTune>(&job)) return of(*f);
  return 0;
}

// What the user wrote; absent members are filled by `complete`.
enum class JobKind : std::uint8_t { serve, batch, train, finetune };
struct JobRequest {
  JobKind kind = JobKind::serve;
  std::optional<PerSecond> rate;
  std::optional<double> concurrency;
  std::optional<std::int64_t> input_tokens, output_tokens;
  std::optional<std::int64_t> context;  // input + output, for `fit`
  ServeLimits limits;
  std::optional<double> requests;
  std::optional<double> tokens;
  std::optional<double> epochs, samples;
  std::optional<std::int64_t> sequence, global_batch, rank;
  std::optional<TuneMethod> method;
  std::optional<AdapterTargets> targets;
  std::optional<bool> dora;
  std::optional<AdapterForm> form;
  std::optional<Seconds> deadline;
};

// One thing that was assumed: which input, the value, and why.
struct Assumption {
  std::string input;  // "--isl", "plan.engine", a column name
  Message what;
};

struct CompleteJob {
  Job job;
  std::vector<Assumption> assumptions;
};

}  // namespace trigon
