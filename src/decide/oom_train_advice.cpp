#include "decide/oom_train_advice.hpp"

namespace trigon {
namespace {

using C = OomComponent;
using M = DecideMessage;

struct Change {
  const char* text;
  M why;
};

constexpr const char* kSmallerBatch =
    "per_device_train_batch_size=1, gradient_accumulation_steps=N";
constexpr const char* kCheckpoint = "gradient_checkpointing=True";
constexpr const char* kFlash = "attn_implementation=\"flash_attention_2\"";

// Settings of the trainer around torch: transformers' TrainingArguments, DeepSpeed's JSON,
// Megatron's flags, torch's FSDP.
std::vector<Change> training(OomTool tool, C c) {
  const bool megatron = tool == OomTool::megatron, deepspeed = tool == OomTool::deepspeed,
             fsdp = tool == OomTool::fsdp;
  const Change recompute =
      megatron ? Change{"--recompute-granularity full --recompute-method uniform "
                        "--recompute-num-layers 1",
                        M::oom_recompute}
               : Change{kCheckpoint, M::oom_recompute};
  const Change batch = megatron ? Change{"--micro-batch-size 1", M::oom_smaller_batch}
                                : Change{kSmallerBatch, M::oom_smaller_batch};
  const Change states =
      megatron    ? Change{"--use-distributed-optimizer", M::oom_split_optimizer}
      : deepspeed ? Change{"\"zero_optimization\": {\"stage\": 2}", M::oom_split_optimizer}
                  : Change{"fsdp=\"full_shard auto_wrap\"", M::oom_split_states};
  const Change stage3 = megatron ? Change{"--tensor-model-parallel-size 2", M::oom_split}
                        : deepspeed
                            ? Change{"\"zero_optimization\": {\"stage\": 3}", M::oom_split_states}
                            : Change{"fsdp=\"full_shard auto_wrap\"", M::oom_split_states};
  const Change offload =
      deepspeed ? Change{"\"offload_optimizer\": {\"device\": \"cpu\"}", M::oom_offload_optimizer}
                : Change{"optim=\"paged_adamw_8bit\"", M::oom_small_optimizer};
  switch (c) {
    case C::optimizer_state:
      if (megatron) return {states, {"--optimizer-cpu-offload", M::oom_offload_optimizer}, stage3};
      if (deepspeed) return {states, offload, stage3};
      return {{"optim=\"adamw_8bit\"", M::oom_small_optimizer},
              states,
              {"LoraConfig(r=16)", M::oom_adapters}};
    case C::gradients:
      if (deepspeed)
        return {{"\"zero_optimization\": {\"stage\": 2}", M::oom_split_gradients},
                {"\"reduce_bucket_size\": 5e7", M::oom_smaller_bucket},
                recompute,
                batch};
      return {recompute, batch, states};
    case C::gathered_layers:
      if (deepspeed)
        return {{"\"stage3_max_live_parameters\": 1e8", M::oom_fewer_live},
                {"\"stage3_prefetch_bucket_size\": 1e7", M::oom_smaller_bucket},
                recompute,
                batch};
      return {{"fsdp_transformer_layer_cls_to_wrap", M::oom_wrap_layers},
              {"limit_all_gathers=True", M::oom_fewer_live},
              recompute,
              batch};
    case C::weights:
      if (deepspeed)
        return {stage3, {"\"offload_param\": {\"device\": \"cpu\"}", M::oom_offload_weights}};
      if (megatron) return {stage3, {"--pipeline-model-parallel-size 2", M::oom_split}};
      return {{"BitsAndBytesConfig(load_in_4bit=True)", M::oom_fewer_bits}, stage3};
    case C::logits:
      return {
          {megatron ? "--cross-entropy-loss-fusion" : "use_liger_kernel=True", M::oom_fused_loss},
          batch,
          {megatron ? "--seq-length" : "max_length", M::oom_shorter_samples}};
    case C::attention_scores:
      return {{megatron ? "--use-flash-attn" : kFlash, M::oom_no_score_matrix}, recompute, batch};
    case C::collectives:
      return {recompute, batch};
    default:
      if (fsdp || deepspeed) return {recompute, batch, stage3};
      if (megatron) return {recompute, {"--sequence-parallel", M::oom_sequence_parallel}, batch};
      return {recompute, batch, {kFlash, M::oom_no_score_matrix}, offload};
  }
}

// A model that torch runs without training it.
std::vector<Change> inference(C c) {
  const Change bits{"BitsAndBytesConfig(load_in_4bit=True)", M::oom_fewer_bits};
  const Change spread{"device_map=\"auto\"", M::oom_spread_layers};
  const Change no_graph{"with torch.inference_mode():", M::oom_no_saved_activations};
  switch (c) {
    case C::weights:
      return {{"dtype=torch.bfloat16", M::oom_half_weights}, bits, spread};
    case C::kv_cache:
      return {{"cache_implementation=\"quantized\"", M::oom_half_cache},
              {"max_new_tokens", M::oom_shorter},
              no_graph};
    case C::attention_scores:
      return {{kFlash, M::oom_no_score_matrix}, no_graph, spread};
    case C::logits:
      return {{"logits_to_keep=1", M::oom_last_logits}, no_graph};
    default:
      return {no_graph,
              {kFlash, M::oom_no_score_matrix},
              {"batch_size=1", M::oom_smaller_batch_run},
              spread};
  }
}

}  // namespace

std::vector<OomAdvice> train_advice(const OomReport&, const OomEvent& e, OomComponent c) {
  const bool trains = e.training || e.tool == OomTool::deepspeed || e.tool == OomTool::megatron ||
                      e.tool == OomTool::fsdp || c == C::optimizer_state || c == C::gradients ||
                      c == C::gathered_layers;
  std::vector<OomAdvice> out;
  for (const Change& x : trains ? training(e.tool, c) : inference(c))
    out.push_back({x.text, message(x.why)});
  return out;
}

}  // namespace trigon
