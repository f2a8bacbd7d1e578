#include "decide/oom_advice.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "decide/oom_train_advice.hpp"

namespace trigon {
namespace {

using F = OomFigure;
using C = OomComponent;
using M = DecideMessage;

std::string with_count(std::string flag, double n) {
  return flag + " " + std::to_string(static_cast<std::int64_t>(n));
}
std::string with_share(std::string flag, double share) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", share);
  return flag + " " + text;
}

// Tokens in whole blocks of 16, the block of vLLM's default backends.
double whole_blocks(double tokens) { return std::floor(tokens / 16) * 16; }

class Advisor {
 public:
  Advisor(const OomReport& report, const OomEvent& event) : report_(report), e_(event) {}

  std::vector<OomAdvice> all() {
    switch (e_.component) {
      case C::fragmentation:
        fragmentation();
        break;
      case C::other_process:
        other_process();
        break;
      case C::host_memory:
        host();
        break;
      case C::collectives:
        collectives();
        break;
      case C::library_workspace:
        add(tool_fraction(), M::oom_room_for_library);
        break;
      default:
        break;
    }
    const C c = e_.component == C::fragmentation || e_.component == C::library_workspace
                    ? e_.asked_for
                    : e_.component;
    if (e_.component != C::other_process && e_.component != C::host_memory) by_tool(c);
    return std::move(out_);
  }

 private:
  void add(std::string change, Message why) {
    if (change.empty()) return;
    for (const OomAdvice& a : out_)
      if (a.change == change) return;
    out_.push_back({std::move(change), std::move(why)});
  }
  void add(std::string change, M why) { add(std::move(change), message(why)); }
  std::optional<double> figure(F f) const { return e_.figures[f]; }

  OomTool tool() const {
    if ((e_.tool == OomTool::torch || e_.tool == OomTool::nccl || e_.tool == OomTool::host) &&
        report_.engine)
      return *report_.engine;
    return e_.tool;
  }

  // A lower share of the card for the engine's own pool.
  std::string tool_fraction() const {
    const double now = figure(F::fraction).value_or(0);
    const double lower = now > 0.1 ? now - 0.05 : 0;
    switch (tool()) {
      case OomTool::vllm:
        return with_share("--gpu-memory-utilization", lower > 0 ? lower : 0.85);
      case OomTool::sglang:
        return lower > 0 ? with_share("--mem-fraction-static", lower) : "--mem-fraction-static";
      case OomTool::tensorrt_llm:
        return "kv_cache_config.free_gpu_memory_fraction";
      default:
        return {};
    }
  }

  void fragmentation() {
    if (!report_.expandable_segments)
      add(report_.allocator_variable + "=expandable_segments:True", M::oom_segments_grow);
    else
      add(report_.allocator_variable + "=expandable_segments:True,garbage_collection_threshold:0.8",
          M::oom_collect_blocks);
  }

  void other_process() {
    add("nvidia-smi --query-compute-apps=pid,used_memory --format=csv", M::oom_who_holds);
    if (e_.kind != OomKind::free_below_fraction) return;
    if (figure(F::device_free) && figure(F::device_total) && *figure(F::device_total) > 0) {
      // vLLM starts when the free bytes are at least the share of the total.
      const double share =
          std::floor(*figure(F::device_free) / *figure(F::device_total) * 100) / 100;
      if (share >= 0.01)
        add(with_share("--gpu-memory-utilization", share),
            message(M::oom_share_that_is_free, bytes(*figure(F::device_free)),
                    bytes(*figure(F::device_total))));
    }
  }

  void host() {
    if (e_.kind == OomKind::shared_memory) {
      add("docker run --shm-size=8g", M::oom_shared_memory);
      add("num_workers=0", M::oom_fewer_workers);
      return;
    }
    switch (tool()) {
      case OomTool::llama_cpp:
        add("-ngl 99", M::oom_more_on_card);
        add("--no-repack", M::oom_no_repack);
        break;
      case OomTool::vllm:
        add("--cpu-offload-gb 0", M::oom_less_offload);
        break;
      case OomTool::deepspeed:
        add("\"offload_param\": {\"device\": \"none\"}", M::oom_less_offload);
        add("\"offload_optimizer\": {\"device\": \"nvme\", \"nvme_path\": \"/local_nvme\"}",
            M::oom_offload_to_disk);
        break;
      default:
        add("low_cpu_mem_usage=True", M::oom_load_in_parts);
        add("num_workers=2", M::oom_fewer_workers);
        break;
    }
    add("docker run --memory=SIZE", M::oom_host_limit);
  }

  void collectives() {
    add(tool_fraction(), M::oom_room_for_collectives);
    add("NCCL_MAX_NCHANNELS=16", M::oom_fewer_channels);
    if (e_.tool == OomTool::deepspeed || tool() == OomTool::deepspeed)
      add("\"allgather_bucket_size\": 5e7", M::oom_smaller_bucket);
  }

  void by_tool(C c) {
    switch (tool()) {
      case OomTool::vllm:
        return vllm(c);
      case OomTool::sglang:
        return sglang(c);
      case OomTool::tensorrt_llm:
        return tensorrt_llm(c);
      case OomTool::llama_cpp:
        return llama(c);
      case OomTool::tgi: {
        const auto n = figure(F::batch_tokens);
        add(with_count("--max-batch-prefill-tokens", n && *n > 1024 ? std::floor(*n / 2) : 2048),
            M::oom_smaller_prefill);
        add("--quantize fp8", M::oom_fewer_bits);
        add("--num-shard 2", M::oom_split);
        return;
      }
      case OomTool::xla:
        add("XLA_PYTHON_CLIENT_MEM_FRACTION=0.95", M::oom_xla_fraction);
        add("jax.checkpoint", M::oom_recompute);
        return;
      default:
        for (OomAdvice& a : train_advice(report_, e_, c)) add(std::move(a.change), a.why);
    }
  }

  void vllm(C c) {
    if (c == C::kv_cache) {
      std::optional<double> fits = figure(F::length_fits);
      const auto asked = figure(F::length_asked), needed = figure(F::kv_needed),
                 left = figure(F::kv_available);
      if (e_.kind == OomKind::kv_too_short && fits && *fits >= 1) {
        add(with_count("--max-model-len", *fits),
            message(M::oom_length_said, static_cast<std::int64_t>(*fits)));
      } else if (e_.kind == OomKind::kv_too_short && asked && needed && left && *needed > 0 &&
                 *left > 0) {
        // Printed with two decimals of a GiB: the lower end counts.
        const double n = whole_blocks(*asked * std::max(0.0, *left - kGi / 200) / *needed);
        if (n >= 16)
          add(with_count("--max-model-len", n),
              message(M::oom_length_from_sizes, bytes(*left), bytes(*needed),
                      static_cast<std::int64_t>(*asked)));
      }
      raise_fraction(e_.kind == OomKind::kv_too_short && needed && left
                         ? std::optional<double>(*needed - *left)
                     : e_.kind == OomKind::no_kv_blocks && left && *left < 0
                         ? std::optional<double>(-*left)
                         : std::nullopt);
      add("--kv-cache-dtype fp8", M::oom_half_cache);
      if (e_.kind == OomKind::no_kv_blocks) {
        const double budget = figure(F::budget).value_or(0);
        if (budget > 0 && figure(F::weights).value_or(0) > budget / 2)
          add("--quantization fp8",
              message(M::oom_weights_fill, bytes(*figure(F::weights)), bytes(budget)));
        if (auto n = figure(F::batch_tokens); n && *n > 2048)
          add(with_count("--max-num-batched-tokens", 2048), M::oom_smaller_prefill);
        else if (!n)
          add("--max-num-batched-tokens 2048", M::oom_smaller_prefill);
      }
      add("--tensor-parallel-size 2", M::oom_split);
      return;
    }
    if (c == C::weights) {
      add("--quantization fp8", M::oom_fewer_bits);
      add("--tensor-parallel-size 2", M::oom_split);
      add("--cpu-offload-gb 4", M::oom_offload_weights);
    } else if (c == C::graphs) {
      add("--enforce-eager", M::oom_no_graphs);
      add("--max-num-seqs 64", M::oom_fewer_graphs);
      add(tool_fraction(), M::oom_room_for_graphs);
    } else if (c == C::logits) {
      const auto n = figure(F::requests);
      add(with_count("--max-num-seqs", n && *n > 1 ? std::max(1.0, std::floor(*n / 2)) : 64),
          M::oom_fewer_logits);
      add(tool_fraction(), M::oom_room_outside_pool);
    } else {
      const auto n = figure(F::batch_tokens);
      add(with_count("--max-num-batched-tokens", n && *n > 1024 ? std::floor(*n / 2) : 2048),
          M::oom_smaller_prefill);
      add(tool_fraction(), M::oom_room_outside_pool);
      add("--max-num-seqs 64", M::oom_fewer_requests);
      add("--tensor-parallel-size 2", M::oom_split);
    }
  }

  // The share of the card that leaves `more` bytes more to the cache.
  void raise_fraction(std::optional<double> more) {
    const auto total = figure(F::device_total), now = figure(F::fraction);
    if (more && total && now && *total > 0) {
      const double share = std::ceil((*now + *more / *total) * 100) / 100;
      if (share < 1)
        add(with_share("--gpu-memory-utilization", share),
            message(M::oom_share_computed, bytes(*more), bytes(*total)));
      return;  // no share of this card is enough
    }
    if (now && *now >= 0.95) return;
    add("--gpu-memory-utilization 0.95", M::oom_higher_share);
  }

  void sglang(C c) {
    if (e_.kind == OomKind::static_fraction) {
      // Bytes of the cache = free after the weights - free before * (1 - share).
      const auto before = figure(F::free_before_load), after = figure(F::free_after_load);
      if (before && after && *before > 0) {
        const double least = 1 - *after / *before;
        if (least > 0 && least < 0.99)
          add(with_share("--mem-fraction-static", std::ceil(least * 100 + 1) / 100),
              message(M::oom_static_share, bytes(*before), bytes(*after)));
      } else {
        const double now = figure(F::fraction).value_or(0);
        add(with_share("--mem-fraction-static", now > 0 ? std::min(0.95, now + 0.05) : 0.9),
            M::oom_static_share_higher);
      }
      add("--tp-size 2", M::oom_split);
      add("--quantization fp8", M::oom_fewer_bits);
      return;
    }
    if (c == C::kv_cache) {
      add("--max-running-requests 32", M::oom_fewer_requests);
      add("--kv-cache-dtype fp8_e4m3", M::oom_half_cache);
    } else if (c == C::graphs) {
      add("--cuda-graph-max-bs 16", M::oom_fewer_graphs);
      add(tool_fraction(), M::oom_room_for_graphs);
      add("--disable-cuda-graph", M::oom_no_graphs);
    } else if (c == C::weights) {
      add("--tp-size 2", M::oom_split);
      add("--quantization fp8", M::oom_fewer_bits);
    } else {
      const auto n = figure(F::batch_tokens);
      add(with_count("--chunked-prefill-size", n && *n > 1024 ? std::floor(*n / 2) : 2048),
          M::oom_smaller_prefill);
      add(tool_fraction(), M::oom_room_outside_pool);
    }
  }

  void tensorrt_llm(C c) {
    if (c == C::kv_cache) add("kv_cache_config.free_gpu_memory_fraction: 0.8", M::oom_smaller_pool);
    if (c == C::weights) {
      add("tensor_parallel_size: 2", M::oom_split);
      add("quantization: FP8", M::oom_fewer_bits);
    }
    add("max_num_tokens: 2048", M::oom_smaller_prefill);
    add("max_batch_size: 64", M::oom_fewer_requests);
    if (c != C::weights) add("max_seq_len: 8192", M::oom_shorter);
  }

  void llama(C c) {
    const auto tried = figure(F::tried), free = figure(F::device_free);
    if (c == C::weights) {
      const auto layers = figure(F::layers);
      if (layers && tried && free && *tried > *free && *tried > 0) {
        // The refused buffer holds that many layers: as many as the free bytes are a part of it.
        const double n = std::floor(*layers * *free / *tried);
        add(with_count("-ngl", n), message(M::oom_layers_that_fit, bytes(*free), bytes(*tried),
                                           static_cast<std::int64_t>(*layers)));
      } else {
        if (tried && free && *tried > *free)
          add("-ngl N", message(M::oom_part_of_layers, bytes(*free), bytes(*tried)));
        else
          add("-ngl N", M::oom_fewer_layers);
      }
      add("--n-cpu-moe 16", M::oom_experts_on_host);
      add("-c 4096", M::oom_shorter);
      return;
    }
    if (c == C::kv_cache) {
      const auto n_ctx = figure(F::context);
      const double room = free ? *free - figure(F::weights).value_or(0) : 0;
      if (n_ctx && tried && room > 0 && *tried > room) {
        const double n = std::floor(*n_ctx * room / *tried / 256) * 256;
        if (n >= 256)
          add(with_count("-c", n), message(M::oom_cells_that_fit, bytes(room), bytes(*tried),
                                           static_cast<std::int64_t>(*n_ctx)));
      } else if (n_ctx && *n_ctx > 1024) {
        add(with_count("-c", std::floor(*n_ctx / 2 / 256) * 256), M::oom_shorter);
      } else {
        add("-c 4096", M::oom_shorter);
      }
      // Blocks of 32 values: 34 bytes in q8_0, 64 in f16 (ggml-common.h).
      add("-fa on -ctk q8_0 -ctv q8_0", M::oom_cache_in_q8);
      add("-np 1", M::oom_fewer_slots);
      add("-nkvo", M::oom_cache_on_host);
      return;
    }
    add("-ub 256", M::oom_smaller_ubatch);
    add("-fa on", M::oom_no_score_matrix);
    if (auto n = figure(F::context); n && *n > 1024)
      add(with_count("-c", std::floor(*n / 2 / 256) * 256), M::oom_shorter);
    add("-ngl N", M::oom_fewer_layers);
  }

  const OomReport& report_;
  const OomEvent& e_;
  std::vector<OomAdvice> out_;
};

}  // namespace

std::vector<OomAdvice> advise(const OomReport& report, const OomEvent& event) {
  return Advisor(report, event).all();
}

}  // namespace trigon
