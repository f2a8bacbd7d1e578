#include "engine/oom_frames.hpp"

#include <algorithm>

#include "engine/oom_text.hpp"

namespace trigon {
namespace {

constexpr std::size_t kMostFrames = 200;
constexpr std::int64_t kReach = 400;  // lines between a frame and the error below it

using C = OomComponent;

// A frame that tells what was being allocated. Of several, the strongest counts, then the
// innermost: capturing a graph runs a whole model, and the graph is what asks; a model's forward
// is only the last thing to name. Names are those of the projects' sources.
struct FrameRule {
  std::string_view path;      // part of the file's path; empty: any
  std::string_view function;  // whole name; empty: any
  C component;
  int strength;
};
constexpr FrameRule kRules[] = {
    // Set-up of what is stored.
    {"vllm/", "_allocate_kv_cache_tensors", C::kv_cache, 4},
    {"vllm/", "_allocate_kv_cache", C::kv_cache, 4},
    {"vllm/", "initialize_kv_cache_tensors", C::kv_cache, 4},
    {"vllm/", "initialize_kv_cache", C::kv_cache, 4},
    {"vllm/", "initialize_from_config", C::kv_cache, 3},
    {"vllm/", "initialize_cache", C::kv_cache, 3},
    {"vllm/", "_init_cache_engine", C::kv_cache, 4},
    {"sglang/", "init_memory_pool", C::kv_cache, 3},
    {"sglang/srt/mem_cache/memory_pool", "", C::kv_cache, 4},
    {"tensorrt_llm/", "_create_kv_cache_manager", C::kv_cache, 4},
    {"tensorrt_llm/_torch/pyexecutor/resource_manager", "", C::kv_cache, 4},
    {"transformers/cache_utils", "", C::kv_cache, 4},
    {"vllm/", "load_model", C::weights, 3},
    {"vllm/", "initialize_model", C::weights, 3},
    {"vllm/", "create_weights", C::weights, 3},
    {"sglang/", "load_model", C::weights, 3},
    {"tensorrt_llm/", "load_weights", C::weights, 3},
    {"tensorrt_llm/", "_load_model", C::weights, 3},
    {"text_generation_server/", "get_sharded", C::weights, 3},
    {"transformers/", "from_pretrained", C::weights, 3},
    {"transformers/", "caching_allocator_warmup", C::weights, 3},
    {"diffusers/", "from_pretrained", C::weights, 3},
    {"accelerate/", "set_module_tensor_to_device", C::weights, 3},
    {"torch/nn/modules/module.py", "_apply", C::weights, 3},
    {"torch/nn/modules/module.py", "to", C::weights, 3},
    {"torch/nn/modules/module.py", "cuda", C::weights, 3},
    {"torch/serialization.py", "", C::weights, 3},
    // Graphs.
    {"vllm/", "capture_model", C::graphs, 4},
    {"vllm/", "_capture_cudagraphs", C::graphs, 4},
    {"vllm/", "capture", C::graphs, 4},
    {"cuda_graph_runner", "", C::graphs, 4},
    {"tensorrt_llm/", "_run_cuda_graph_warmup", C::graphs, 4},
    {"torch/cuda/graphs.py", "", C::graphs, 4},
    // Training: states.
    {"torch/optim/", "", C::optimizer_state, 4},
    {"bitsandbytes/optim/", "", C::optimizer_state, 4},
    {"apex/optimizers/", "", C::optimizer_state, 4},
    {"megatron/core/optimizer/", "", C::optimizer_state, 4},
    {"deepspeed/ops/adam/", "", C::optimizer_state, 4},
    {"deepspeed/", "flatten", C::weights, 6},
    {"deepspeed/", "flatten_dense_tensors_aligned", C::weights, 6},
    {"deepspeed/runtime/utils.py", "all_gather_dp_groups", C::collectives, 6},
    {"torch/_utils.py", "_flatten_dense_tensors", C::weights, 6},
    {"deepspeed/", "initialize_optimizer_states", C::optimizer_state, 5},
    {"deepspeed/", "_setup_for_real_optimizer", C::optimizer_state, 5},
    {"deepspeed/", "_create_fp32_partitions", C::optimizer_state, 5},
    {"deepspeed/", "_optimizer_step", C::optimizer_state, 5},
    {"deepspeed/runtime/zero/stage_1_and_2.py", "__init__", C::optimizer_state, 4},
    {"deepspeed/runtime/zero/stage_1_and_2.py", "step", C::optimizer_state, 4},
    {"deepspeed/runtime/zero/stage3.py", "step", C::optimizer_state, 4},
    {"deepspeed/runtime/fp16/", "step", C::optimizer_state, 4},
    {"deepspeed/runtime/bf16_optimizer.py", "", C::optimizer_state, 4},
    // Training: layers put together from their parts.
    {"deepspeed/runtime/zero/partition_parameters.py", "all_gather_coalesced", C::gathered_layers,
     6},
    {"deepspeed/runtime/zero/partition_parameters.py", "_all_gather_dtype", C::gathered_layers, 6},
    {"deepspeed/runtime/zero/partition_parameters.py", "_allgather_params", C::gathered_layers, 6},
    {"deepspeed/runtime/zero/partition_parameters.py", "_allgather_params_coalesced",
     C::gathered_layers, 6},
    {"deepspeed/runtime/zero/partition_parameters.py", "_all_gather", C::gathered_layers, 6},
    {"deepspeed/runtime/zero/partition_parameters.py", "", C::weights, 3},
    {"deepspeed/runtime/zero/partitioned_param_coordinator.py", "", C::gathered_layers, 5},
    {"torch/distributed/fsdp/", "_unshard", C::gathered_layers, 5},
    {"torch/distributed/fsdp/", "unshard", C::gathered_layers, 5},
    {"torch/distributed/fsdp/_flat_param.py", "_alloc_padded_unsharded_flat_param",
     C::gathered_layers, 6},
    {"torch/distributed/fsdp/", "foreach_all_gather", C::gathered_layers, 6},
    {"torch/distributed/fsdp/", "foreach_reduce", C::gradients, 6},
    // Training: gradients and what is computed again for them.
    {"torch/utils/checkpoint.py", "unpack_hook", C::activations, 4},
    {"torch/utils/checkpoint.py", "recompute_fn", C::activations, 4},
    {"torch/utils/checkpoint.py", "backward", C::activations, 4},
    {"deepspeed/runtime/activation_checkpointing/", "backward", C::activations, 4},
    {"megatron/core/tensor_parallel/random.py", "backward", C::activations, 4},
    {"deepspeed/runtime/zero/", "reduce_ipg_grads", C::gradients, 5},
    {"deepspeed/runtime/zero/", "average_tensor", C::gradients, 5},
    {"deepspeed/runtime/zero/", "reduce_independent_p_g_buckets_and_remove_grads", C::gradients, 5},
    {"deepspeed/runtime/zero/", "reduce_partition_and_remove_grads", C::gradients, 5},
    {"deepspeed/runtime/zero/", "reduce_ready_partitions_and_remove_grads", C::gradients, 5},
    {"megatron/core/distributed/param_and_grad_buffer.py", "", C::gradients, 5},
    {"torch/autograd/graph.py", "_engine_run_backward", C::gradients, 3},
    {"torch/autograd/__init__.py", "backward", C::gradients, 3},
    {"torch/nn/parallel/distributed.py", "", C::gradients, 1},
    // Logits.
    {"vllm/", "_dummy_sampler_run", C::logits, 3},
    {"vllm/", "compute_logits", C::logits, 3},
    {"sglang/srt/layers/logits_processor.py", "", C::logits, 3},
    {"logits_processor.py", "", C::logits, 2},
    {"/sampler.py", "", C::logits, 2},
    {"", "cross_entropy", C::logits, 2},
    {"", "vocab_parallel_cross_entropy", C::logits, 2},
    {"", "ForCausalLMLoss", C::logits, 2},
    {"", "compute_language_model_loss", C::logits, 2},
    {"accelerate/utils/operations.py", "convert_to_fp32", C::logits, 2},
    {"", "selective_log_softmax", C::logits, 2},
    {"trl/", "entropy_from_logits", C::logits, 2},
    // Attention that keeps the score matrix.
    {"", "eager_attention_forward", C::attention_scores, 2},
    {"transformers/", "sdpa_attention_forward", C::attention_scores, 2},
    {"", "scaled_dot_product_attention", C::attention_scores, 2},
    // A forward.
    {"vllm/", "profile_run", C::activations, 1},
    {"vllm/", "determine_available_memory", C::activations, 1},
    {"vllm/", "determine_num_available_blocks", C::activations, 1},
    {"vllm/", "execute_model", C::activations, 1},
    {"/modeling_", "", C::activations, 1},
    {"/models/", "forward", C::activations, 1},
    {"torch/nn/modules/", "forward", C::activations, 1},
    {"torch/nn/functional.py", "", C::activations, 1},
    {"megatron/core/", "forward", C::activations, 1},
    {"peft/tuners/", "forward", C::activations, 1},
    {"bitsandbytes/", "", C::activations, 1},
};

// A statement that names what it makes.
C of_source(std::string_view source) {
  if (has(source, "logits") && (has(source, ".float()") || has(source, "loss") ||
                                has(source, "softmax") || has(source, "lm_head")))
    return C::logits;
  if (has(source, "attn_weights") || has(source, "attention_scores") ||
      has(source, "key_states.transpose("))
    return C::attention_scores;
  if (has(source, "optimizer.step(")) return C::optimizer_state;
  return C::unknown;
}

struct ToolRule {
  std::string_view path;
  OomTool tool;
};
// The first that any frame passes.
constexpr ToolRule kTools[] = {{"deepspeed/", OomTool::deepspeed},
                               {"megatron/", OomTool::megatron},
                               {"torch/distributed/fsdp", OomTool::fsdp},
                               {"torch/distributed/_composable/fsdp", OomTool::fsdp},
                               {"sglang/", OomTool::sglang},
                               {"tensorrt_llm/", OomTool::tensorrt_llm},
                               {"vllm/", OomTool::vllm},
                               {"transformers/", OomTool::transformers}};

constexpr std::string_view kTraining[] = {
    "training_step",         "compute_loss",        "_engine_run_backward", "train_step",
    "forward_backward_func", "inner_training_loop", "_inner_training_loop"};

std::string slashes(std::string_view path) {
  std::string out(path);
  std::replace(out.begin(), out.end(), '\\', '/');
  return out;
}

// The last two parts of a path: "worker/gpu_model_runner.py".
std::string brief(std::string_view path) {
  auto end = path.rfind('/');
  if (end == path.npos || end == 0) return std::string(path);
  auto before = path.rfind('/', end - 1);
  return std::string(path.substr(before == path.npos ? 0 : before + 1));
}

}  // namespace

void Traceback::see(std::string_view line, std::int64_t number) {
  if (has(line, "Traceback (most recent call last)")) {
    frames_.clear();
    return;
  }
  auto at = line.find("File \"");
  std::size_t skip = 6;
  if (at == line.npos && (at = line.find("File \\\"")) != line.npos) skip = 7;
  if (at == line.npos) {
    // The statement stands below its frame.
    if (!frames_.empty() && frames_.back().source.empty() && frames_.back().line + 2 >= number)
      frames_.back().source = quotable(line);
    return;
  }
  std::string_view rest = line.substr(at + skip);
  auto end = rest.find("\", line ");
  if (end == rest.npos) end = rest.find("\\\", line ");
  auto in = rest.find(", in ");
  if (end == rest.npos || in == rest.npos || in < end) return;
  TraceFrame f;
  f.line = number;
  f.path = slashes(rest.substr(0, std::min<std::size_t>(end, 400)));
  std::string_view name = rest.substr(in + 5);
  f.function = std::string(name.substr(0, std::min<std::size_t>(name.find_first_of(" \r\n("), 80)));
  frames_.push_back(std::move(f));
  if (frames_.size() > kMostFrames) frames_.pop_front();
}

const std::deque<TraceFrame>& Traceback::frames(std::int64_t number) {
  while (!frames_.empty() && frames_.front().line + kReach < number) frames_.pop_front();
  return frames_;
}

TraceVerdict judge(const std::deque<TraceFrame>& frames) {
  TraceVerdict v;
  int strength = 0;
  const TraceFrame* chosen = nullptr;
  auto consider = [&](const TraceFrame& f, C c, int s) {
    if (s <= strength) return;  // frames come innermost first: equal ones further out lose
    strength = s;
    v.component = c;
    chosen = &f;
  };
  for (auto f = frames.rbegin(); f != frames.rend(); ++f) {
    for (const FrameRule& r : kRules)
      if ((r.path.empty() || has(f->path, r.path)) &&
          (r.function.empty() || f->function == r.function))
        consider(*f, r.component, r.strength);
    if (C c = of_source(f->source); c != C::unknown) consider(*f, c, 2);
    if (std::find(std::begin(kTraining), std::end(kTraining), f->function) != std::end(kTraining) ||
        has(f->path, "torch/optim/") || has(f->path, "deepspeed/runtime/zero/") ||
        has(f->path, "megatron/training/"))
      v.training = true;
  }
  for (const ToolRule& t : kTools) {
    if (std::any_of(frames.begin(), frames.end(),
                    [&](const TraceFrame& f) { return has(f.path, t.path); })) {
      v.tool = t.tool;
      break;
    }
  }
  if (chosen)
    v.evidence = {chosen->line,
                  message(EngineMessage::oom_frame, brief(chosen->path) + ", " + chosen->function)};
  return v;
}

}  // namespace trigon
