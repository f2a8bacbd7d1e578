#include "job/complete.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "job/messages.hpp"

namespace trigon {
namespace {

// Lengths of a short chat: no source claims a typical one, so it is always listed.
constexpr std::int64_t kInputTokens = 1024;
constexpr std::int64_t kOutputTokens = 256;
// Llama 2 (arXiv:2307.09288, section 2.2): sequences of 4,096 and 4M tokens a step.
constexpr std::int64_t kTrainSequence = 4096;
constexpr std::int64_t kTrainBatchTokens = 4194304;
// Hoffmann et al. 2022 (arXiv:2203.15556): about 20 tokens a parameter at the optimum.
constexpr double kTokensPerParameter = 20;
// Stanford Alpaca: 52,002 examples, three epochs. QLoRA (arXiv:2305.14314, table 9): batch 16.
constexpr double kTuneSamples = 52002, kTuneEpochs = 3;
// What BERT and T5 were trained on (arXiv:1810.04805, arXiv:1910.10683): sequences of 512, where
// the model sets no limit of its own.
constexpr std::int64_t kEncoderTokens = 512;
constexpr std::int64_t kTuneSequence = 2048, kTuneBatch = 16, kTuneRank = 16;

// Goyal et al. 2017 (arXiv:1706.02677): ImageNet-1k's 1,281,167 training images, 90 epochs,
// minibatches of 256.
constexpr double kImages = 1281167, kImageEpochs = 90;
constexpr std::int64_t kImageBatch = 256;

constexpr double kMostCount = 1e18;
constexpr std::int64_t kMostTokens = std::int64_t{1} << 40;
constexpr std::int64_t kMostBatch = std::int64_t{1} << 31;
constexpr std::int64_t kMostRank = 65536;

class Completion {
 public:
  Completion(const JobRequest& request, const Model& model) : r_(request), model_(model) {
    if (const Stack* s = language_stack(model)) {
      limit_ = s->max_context;
      // What reads the input: an encoder, where there is one.
      if (!s->generates)
        reader_ = s;
      else
        reader_ = source_stack(model);
      generates_ = s->generates;
    } else {
      items_ = model.item.has_value();
    }
  }

  Result<CompleteJob> run() {
    check_limits();
    if (items_) no_tokens();
    switch (r_.kind) {
      case JobKind::serve:
        serve();
        break;
      case JobKind::batch:
        batch();
        break;
      case JobKind::train:
        train();
        break;
      case JobKind::finetune:
        finetune();
        break;
    }
    if (error_) return tl::unexpected(*error_);
    std::visit([&](auto& j) { j.item = model_.item; }, job_);
    // An encoder's request is a sequence.
    if (!generates_)
      std::visit(
          [&](auto& j) {
            if constexpr (requires { j.input_tokens; })
              j.item = Item{WorkUnit::sequence, {j.input_tokens}};
          },
          job_);
    return CompleteJob{std::move(job_), std::move(assumptions_)};
  }

 private:
  void refuse(Message what, const char* where, std::optional<Message> hint = std::nullopt) {
    if (!error_) error_ = Error{ErrorCode::bad_argument, std::move(what), where, std::move(hint)};
  }
  void assume(const char* input, Message what) { assumptions_.push_back({input, std::move(what)}); }
  void range(double v, double low, double high, const char* where) {
    if (!(v >= low && v <= high))
      refuse(message(BaseMessage::number_out_of_range, v, low, high), where);
  }
  void range(const std::optional<std::int64_t>& v, std::int64_t low, std::int64_t high,
             const char* where) {
    if (v && (*v < low || *v > high))
      refuse(message(BaseMessage::number_out_of_range, *v, low, high), where);
  }
  void range(const std::optional<double>& v, double low, double high, const char* where) {
    if (v) range(*v, low, high, where);
  }
  template <class T>
  void absent(const std::optional<T>& v, const char* flag, const char* task) {
    if (v) refuse(message(JobMessage::not_for_task, flag, task), flag);
  }

  void check_limits() {
    auto limit = [&](const std::optional<LatencyLimit>& l, const char* where) {
      if (!l) return;
      if (!(l->percentile > 0 && l->percentile <= 100))
        refuse(message(JobMessage::percentile_range, l->percentile), where);
      range(l->at_most.in_base(), 1e-9, 1e9, where);
    };
    limit(r_.limits.ttft, "--ttft");
    limit(r_.limits.tpot, "--tpot");
    limit(r_.limits.e2e, "--e2e");
    if (r_.deadline) range(r_.deadline->in_base(), 1e-3, 1e12, "--deadline");
    range(r_.input_tokens, 1, kMostTokens, "--input-tokens");
    range(r_.output_tokens, 1, kMostTokens, "--output-tokens");
    range(r_.context, 2, kMostTokens, "--context");
    range(r_.sequence, 1, kMostTokens, "--sequence");
    range(r_.global_batch, 1, kMostBatch, "--global-batch");
    range(r_.rank, 1, kMostRank, "--rank");
    range(r_.requests, 1, kMostCount, "--requests");
    range(r_.tokens, 1, kMostCount, "--tokens");
    range(r_.samples, 1, kMostCount, "--samples");
    range(r_.epochs, 1e-6, 1e9, "--epochs");
    range(r_.concurrency, 1, 1e9, "--concurrency");
    if (r_.rate) range(r_.rate->in_base(), 1e-9, 1e9, "--rate");
  }

  // Whole items have no tokens to count.
  void no_tokens() {
    auto refuse_flag = [&](bool given, const char* flag) {
      if (given) refuse(message(JobMessage::not_for_items, flag, model_.id), flag);
    };
    refuse_flag(r_.input_tokens.has_value(), "--input-tokens");
    refuse_flag(r_.output_tokens.has_value(), "--output-tokens");
    refuse_flag(r_.context.has_value(), "--context");
    refuse_flag(r_.sequence.has_value(), "--sequence");
    refuse_flag(r_.tokens.has_value(), "--tokens");
    refuse_flag(r_.limits.ttft.has_value(), "--ttft");
    refuse_flag(r_.limits.tpot.has_value(), "--tpot");
    const bool adapts = r_.kind == JobKind::finetune && r_.method == TuneMethod::lora;
    if (r_.method == TuneMethod::qlora)
      refuse(message(JobMessage::not_for_items, "--method qlora", model_.id), "--method",
             message(JobMessage::full_or_lora));
    else if (adapts && !has_attention_projections())
      refuse(message(JobMessage::nothing_to_adapt, model_.id), "--method",
             message(JobMessage::full_tuning_only));
    if (!adapts) refuse_flag(r_.rank.has_value(), "--rank");
    if (adapts && r_.targets && !r_.targets->within(kAttentionProjections))
      refuse(message(JobMessage::attention_adapters_only, model_.id), "--adapt");
    refuse_flag(r_.dora.value_or(false), "--dora");
  }

  // Projections of attention in what is trained: where adapters on images' networks stand
  // (diffusers examples/text_to_image/train_text_to_image_lora.py: to_q, to_k, to_v, to_out.0).
  bool has_attention_projections() const {
    for (const Component& c : model_.components) {
      const auto graph = std::get_if<Graph>(&c.body);
      if (!graph || c.training != Component::Training::trained) continue;
      for (AttentionPart p : attention_parts(*graph))
        if (p != AttentionPart::none) return true;
    }
    return false;
  }

  // Items to train on, and of one step: those of ImageNet for images, else what is asked.
  double training_items(double assumed_epochs) {
    const bool image = model_.item->unit == WorkUnit::image;
    if (!r_.samples && !image) {
      refuse(message(BaseMessage::missing_key, "--samples"), "--samples");
      return 1;
    }
    const double samples = r_.samples.value_or(kImages);
    const double epochs = r_.epochs.value_or(r_.samples ? 1 : assumed_epochs);
    if (!r_.samples) assume("--samples", message(JobMessage::images_assumed, kImages));
    if (!r_.epochs) assume("--epochs", message(JobMessage::epochs_assumed, epochs));
    range(samples * epochs, 1, kMostCount, "--samples");
    return samples * epochs;
  }
  std::int64_t items_of_step() {
    if (!r_.global_batch)
      assume("--global-batch", message(JobMessage::items_of_step_assumed, kImageBatch));
    return r_.global_batch.value_or(kImageBatch);
  }

  void within(std::optional<std::int64_t> limit, std::int64_t tokens, const char* where) {
    if (limit && tokens > *limit)
      refuse(message(JobMessage::context_beyond_model, tokens, *limit, model_.id), where,
             message(JobMessage::largest_context, *limit));
  }
  void within_model(std::int64_t tokens, const char* where) {
    const Stack* s = language_stack(model_);
    // Rotary positions can be stretched; learned ones end where their table does.
    if (limit_ && tokens > *limit_ && s && s->generates && !s->positions && !source_stack(model_))
      refuse(
          message(JobMessage::context_beyond_model, tokens, *limit_, model_.id), where,
          message(JobMessage::longer_by_rope, *limit_,
                  "\"rope_scaling\": {\"rope_type\": \"yarn\", \"factor\": " +
                      std::to_string((tokens + *limit_ - 1) / *limit_) +
                      ", \"original_max_position_embeddings\": " + std::to_string(*limit_) + "}"));
    else
      within(limit_, tokens, where);
  }

  // What an encoder reads, whole, and what its decoder writes, if it has one.
  void encoder_lengths(std::int64_t* input, std::int64_t* output) {
    const char* where = r_.input_tokens ? "--input-tokens" : "--context";
    const auto given = r_.input_tokens ? r_.input_tokens : r_.context;
    const auto limit = reader_->max_context;
    if (reader_->fixed_length) {
      *input = *reader_->fixed_length;
      if (given && *given != *input)
        refuse(message(JobMessage::input_is_padded, *input, model_.id), where);
      assume("--input-tokens", message(JobMessage::input_is_padded, *input, model_.id));
    } else if (given) {
      *input = *given;
      within(limit, *input, where);
    } else {
      *input = std::min(limit.value_or(kEncoderTokens), kEncoderTokens);
      assume("--input-tokens", limit == *input ? message(JobMessage::input_is_model_context, *input)
                                               : message(JobMessage::input_assumed, *input));
    }
    if (!generates_) {
      *output = 0;
      absent(r_.output_tokens, "--output-tokens", model_.id.c_str());
      absent(r_.limits.ttft, "--ttft", model_.id.c_str());
      absent(r_.limits.tpot, "--tpot", model_.id.c_str());
      return;
    }
    *output = r_.output_tokens.value_or(
        std::max<std::int64_t>(1, std::min(kOutputTokens, limit_.value_or(kMostTokens) / 2)));
    if (!r_.output_tokens) assume("--output-tokens", message(JobMessage::output_assumed, *output));
    within_model(*output, "--output-tokens");
  }

  // Prompt and answer from whichever of the three lengths are given.
  void lengths(std::int64_t* input, std::int64_t* output) {
    if (error_) return;
    if (reader_) return encoder_lengths(input, output);
    if (r_.context && r_.input_tokens && r_.output_tokens &&
        *r_.input_tokens + *r_.output_tokens != *r_.context)
      return refuse(message(JobMessage::context_contradicts, *r_.input_tokens, *r_.output_tokens,
                            *r_.context),
                    "--context");
    if (r_.context) {
      const std::int64_t context = *r_.context;
      within_model(context, "--context");
      if (r_.input_tokens) {
        *input = *r_.input_tokens;
        *output = context - *input;
      } else if (r_.output_tokens) {
        *output = *r_.output_tokens;
        *input = context - *output;
      } else {
        *output = std::min(kOutputTokens, context / 2);
        *input = context - *output;
        assume("--context", message(JobMessage::context_split, context, *input, *output));
      }
      if (*input < 1 || *output < 1)
        refuse(message(JobMessage::output_fills_context, *input < 1 ? *output : *input, context),
               "--context");
      return;
    }
    // Assumed lengths give way to a short model.
    const std::int64_t room = limit_.value_or(kMostTokens);
    *output = r_.output_tokens.value_or(std::max<std::int64_t>(
        1, std::min({kOutputTokens, room / 2, room - r_.input_tokens.value_or(1)})));
    *input =
        r_.input_tokens.value_or(std::max<std::int64_t>(1, std::min(kInputTokens, room - *output)));
    if (!r_.input_tokens) assume("--input-tokens", message(JobMessage::input_assumed, *input));
    if (!r_.output_tokens) assume("--output-tokens", message(JobMessage::output_assumed, *output));
    within_model(*input + *output, r_.input_tokens ? "--input-tokens" : "--output-tokens");
  }

  void no_training_inputs(const char* task) {
    absent(r_.rank, "--rank", task);
    absent(r_.method, "--method", task);
    absent(r_.targets, "--adapt", task);
    absent(r_.dora, "--dora", task);
    absent(r_.epochs, "--epochs", task);
    absent(r_.samples, "--samples", task);
    absent(r_.global_batch, "--global-batch", task);
  }
  void no_serving_inputs(const char* task) {
    absent(r_.rate, "--rate", task);
    absent(r_.concurrency, "--concurrency", task);
    absent(r_.limits.ttft, "--ttft", task);
    absent(r_.limits.tpot, "--tpot", task);
    absent(r_.limits.e2e, "--e2e", task);
    absent(r_.requests, "--requests", task);
  }

  void serve() {
    no_training_inputs("serve");
    Serve s;
    if (r_.rate && r_.concurrency)
      refuse(message(JobMessage::both_given, "--rate", "--concurrency"), "--concurrency");
    s.rate = r_.rate;
    s.concurrency = r_.concurrency;
    if (!s.rate && !s.concurrency) {
      s.concurrency = 1;
      assume("--concurrency", message(JobMessage::concurrency_assumed));
    }
    if (!items_) lengths(&s.input_tokens, &s.output_tokens);
    s.limits = r_.limits;
    job_ = s;
  }

  void batch() {
    no_training_inputs("batch");
    Batch b;
    b.requests = r_.requests;
    if (!items_) lengths(&b.input_tokens, &b.output_tokens);
    b.deadline = r_.deadline;
    job_ = b;
  }

  std::int64_t sequence(std::int64_t otherwise) {
    if (r_.sequence && r_.context && *r_.sequence != *r_.context)
      refuse(message(JobMessage::both_given, "--sequence", "--context"), "--sequence");
    if (auto given = r_.sequence ? r_.sequence : r_.context) {
      within_model(*given, r_.sequence ? "--sequence" : "--context");
      return *given;
    }
    if (reader_) otherwise = kEncoderTokens;
    if (limit_ && *limit_ <= otherwise) {
      assume("--sequence", message(JobMessage::sequence_is_model_context, *limit_));
      return *limit_;
    }
    assume("--sequence", message(JobMessage::sequence_assumed, otherwise));
    return otherwise;
  }

  // What the encoder of an encoder-decoder reads; 0: as much as is learnt from it.
  std::int64_t training_source() {
    if (!reader_ || !generates_ || !r_.input_tokens) return 0;
    within(reader_->max_context, *r_.input_tokens, "--input-tokens");
    return *r_.input_tokens;
  }

  // Tokens from samples and epochs; absent when neither is given.
  std::optional<double> tokens(std::int64_t length) {
    if (r_.tokens && (r_.samples || r_.epochs))
      refuse(message(JobMessage::both_given, "--tokens", r_.samples ? "--samples" : "--epochs"),
             "--tokens");
    if (r_.tokens) return r_.tokens;
    if (!r_.samples) return std::nullopt;
    const double epochs = r_.epochs.value_or(1);
    if (!r_.epochs) assume("--epochs", message(JobMessage::epochs_assumed, epochs));
    const double total = *r_.samples * epochs * static_cast<double>(length);
    assume("--tokens", message(JobMessage::tokens_from_samples, *r_.samples, length, epochs,
                               trigon::tokens(total)));
    range(total, 1, kMostCount, "--samples");
    return total;
  }

  void train() {
    no_serving_inputs("train");
    absent(r_.rank, "--rank", "train");
    absent(r_.method, "--method", "train");
    Train t;
    t.deadline = r_.deadline;
    if (items_) {
      t.sequence = 1;
      t.tokens = training_items(kImageEpochs);
      t.global_batch = items_of_step();
      job_ = t;
      return;
    }
    t.sequence = sequence(kTrainSequence);
    t.source = training_source();
    if (auto given = tokens(t.sequence)) {
      t.tokens = *given;
    } else if (r_.epochs) {
      refuse(message(BaseMessage::missing_key, "--samples"), "--epochs");
    } else {
      t.tokens = kTokensPerParameter * static_cast<double>(count_parameters(model_).total);
      assume("--tokens", message(JobMessage::tokens_chinchilla, trigon::tokens(t.tokens)));
    }
    t.global_batch = r_.global_batch.value_or(
        std::max<std::int64_t>(1, kTrainBatchTokens / std::max<std::int64_t>(t.sequence, 1)));
    if (!r_.global_batch)
      assume("--global-batch", message(JobMessage::global_batch_assumed, t.global_batch));
    job_ = t;
  }

  void finetune() {
    no_serving_inputs("finetune");
    FineTune f;
    f.deadline = r_.deadline;
    if (items_) {
      f.method = r_.method.value_or(TuneMethod::full);
      if (!r_.method) assume("--method", message(JobMessage::full_tuning_only));
      if (f.method == TuneMethod::lora) {
        f.rank = r_.rank.value_or(kTuneRank);
        if (!r_.rank) assume("--rank", message(JobMessage::rank_assumed, f.rank));
        f.targets = r_.targets.value_or(kAttentionProjections);
        if (!r_.targets) assume("--adapt", message(JobMessage::attention_adapted));
      }
      f.sequence = 1;
      f.tokens = training_items(1);
      f.global_batch = items_of_step();
      job_ = f;
      return;
    }
    f.method = r_.method.value_or(TuneMethod::lora);
    if (!r_.method) assume("--method", message(JobMessage::method_assumed));
    f.sequence = sequence(kTuneSequence);
    f.source = training_source();
    if (auto given = tokens(f.sequence)) {
      f.tokens = *given;
    } else {
      const double epochs = r_.epochs.value_or(kTuneEpochs);
      assume("--samples", message(JobMessage::samples_assumed, kTuneSamples));
      if (!r_.epochs) assume("--epochs", message(JobMessage::epochs_assumed, epochs));
      f.tokens = kTuneSamples * epochs * static_cast<double>(f.sequence);
      assume("--tokens", message(JobMessage::tokens_from_samples, kTuneSamples, f.sequence, epochs,
                                 trigon::tokens(f.tokens)));
    }
    f.global_batch = r_.global_batch.value_or(kTuneBatch);
    if (!r_.global_batch)
      assume("--global-batch", message(JobMessage::global_batch_assumed, f.global_batch));
    if (f.method == TuneMethod::full) {
      absent(r_.rank, "--rank", "finetune --method full");
    } else {
      f.rank = r_.rank.value_or(kTuneRank);
      if (!r_.rank) assume("--rank", message(JobMessage::rank_assumed, f.rank));
      f.targets = r_.targets.value_or(kAllLinears);
      f.dora = r_.dora.value_or(false);
      f.form = r_.form.value_or(AdapterForm{});
      if (!r_.targets) assume("--adapt", message(JobMessage::adapters_assumed));
    }
    job_ = f;
  }

  const JobRequest& r_;
  const Model& model_;
  std::optional<std::int64_t> limit_;
  bool items_ = false;             // whole items instead of tokens
  const Stack* reader_ = nullptr;  // an encoder that reads the whole input
  bool generates_ = true;
  Job job_;
  std::vector<Assumption> assumptions_;
  std::optional<Error> error_;
};

}  // namespace

Result<CompleteJob> complete(const JobRequest& request, const Model& model) {
  return Completion(request, model).run();
}

}  // namespace trigon
