#include "flags.hpp"

namespace trigon {
namespace {

constexpr std::uint16_t kJobs =
    verb_fit | verb_estimate | verb_recommend | verb_plan | verb_compare | verb_check;
constexpr std::uint16_t kItem = kJobs | verb_inspect;
constexpr std::uint16_t kOne = verb_fit | verb_estimate | verb_plan;
constexpr std::uint16_t kLimited = verb_estimate | verb_recommend | verb_plan | verb_compare;
constexpr std::uint16_t kAnswers = kJobs | verb_inspect | verb_catalog | verb_validate |
                                   verb_calibrate | verb_config | verb_version;
constexpr std::uint16_t kAll = kAnswers | verb_help;

using M = AppMessage;
using K = ValueKind;
constexpr double kMost = 1e18;

std::vector<Flag> make() {
  constexpr M job = M::group_job, limits = M::group_limits, plan = M::group_plan,
              output = M::group_output, data = M::group_data;
  return {
      {"on", "", K::text, "HARDWARE", M::doc_on, "", 1, 0, kOne | verb_check, job, false},
      {"model", "", K::text, "MODEL", M::doc_model, "", 1, 0, verb_check, job, true},
      {"task", "", K::choice, "serve|batch|train|finetune", M::doc_task, "serve", 1, 0, kJobs, job,
       false},
      {"context", "", K::length, "TOKENS", M::doc_context, "", 1, 1e9, kJobs, job, false},
      {"concurrency", "", K::count, "N", M::doc_concurrency, "", 1, 1e6, kJobs, job, false},
      {"rate", "", K::rate, "N/s", M::doc_rate, "", 1e-9, 1e9, kJobs, job, false},
      {"users", "", K::count, "N", M::doc_users, "", 1, 1e9, kJobs, job, false},
      {"think-time", "", K::duration, "TIME", M::doc_think_time, "", 0, 1e6, kJobs, job, false},
      {"input-tokens", "isl", K::length, "TOKENS", M::doc_input_tokens, "", 1, 1e9, kJobs, job,
       false},
      {"output-tokens", "osl", K::length, "TOKENS", M::doc_output_tokens, "", 1, 1e9, kJobs, job,
       false},
      {"requests", "", K::count, "N", M::doc_requests, "", 1, kMost, kJobs, job, false},
      {"tokens", "", K::count, "N", M::doc_tokens, "", 1, kMost, kJobs, job, false},
      {"samples", "", K::count, "N", M::doc_samples, "", 1, kMost, kJobs, job, false},
      {"epochs", "", K::number, "N", M::doc_epochs, "", 1e-3, 1e6, kJobs, job, false},
      {"method", "", K::choice, "full|lora|qlora", M::doc_method, "lora", 1, 0, kJobs, job, false},
      {"sequence", "seq", K::length, "TOKENS", M::doc_sequence, "", 1, 1e9, kJobs, job, false},
      {"global-batch", "", K::whole, "N", M::doc_global_batch, "", 1, 1e9, kJobs, job, false},
      {"adapt", "", K::text, "MODULES", M::doc_adapt, "all", 1, 0, kJobs, job, false},
      {"dora", "", K::on_off, "", M::doc_dora, "", 1, 0, kJobs, job, false},
      {"rank", "", K::whole, "N", M::doc_rank, "", 1, 65536, kJobs, job, false},

      {"image", "", K::pixels, "SIZE", M::doc_image, "", 1, 65536, kItem, job, true},
      {"tokens-per-item", "", K::length, "TOKENS", M::doc_tokens_per_item, "", 1, 1e9, kItem, job,
       true},
      {"audio", "", K::duration, "TIME", M::doc_audio, "", 0.01, 1e6, kItem, job, true},
      {"steps", "", K::whole, "N", M::doc_steps, "", 1, 1e6, kItem, job, true},
      {"guidance", "", K::choice, "on|off", M::doc_guidance, "", 1, 0, kItem, job, true},
      {"shape", "", K::shapes, "NAME=SIZES", M::doc_shape, "", 1, 1e12, kItem, job, true},

      {"ttft", "", K::latency, "[pN:]TIME", M::doc_ttft, "", 1e-6, 1e6, kLimited, limits, false},
      {"tpot", "", K::latency, "[pN:]TIME", M::doc_tpot, "", 1e-6, 1e6, kLimited, limits, false},
      {"e2e", "", K::latency, "[pN:]TIME", M::doc_e2e, "", 1e-6, 1e6, kLimited, limits, false},
      {"slo", "", K::slo, "LIMITS", M::doc_slo, "", 1, 0, kLimited, limits, false},
      {"deadline", "", K::duration, "TIME", M::doc_deadline, "", 1, 1e10, kLimited, limits, false},
      {"budget", "", K::money, "MONEY", M::doc_budget, "", 0, kMost, verb_recommend, limits, false},
      {"buy", "", K::on_off, "", M::doc_buy, "", 1, 0, verb_recommend | verb_plan | verb_compare,
       limits, true},
      {"rent", "", K::on_off, "", M::doc_rent, "", 1, 0, verb_recommend | verb_plan | verb_compare,
       limits, true},
      {"vendor", "", K::list, "NAMES", M::doc_vendor, "", 1, 0, verb_recommend, limits, false},
      {"max-gpus", "", K::whole, "N", M::doc_max_gpus, "64", 1, 65536, verb_recommend, limits,
       false},
      {"min-bits", "", K::number, "N", M::doc_min_bits, "", 1, 64, verb_recommend | verb_plan,
       limits, false},
      {"why-not", "", K::text, "CARD", M::doc_why_not, "", 1, 0, verb_recommend, limits, true},

      {"engine", "", K::text, "NAME[@VERSION]", M::doc_engine, "", 1, 0, kJobs, plan, false},
      {"quant", "", K::format, "FORMAT", M::doc_quant, "", 1, 0, kJobs, plan, false},
      {"kv", "", K::format, "FORMAT", M::doc_kv, "", 1, 0, kJobs | verb_inspect, plan, false},
      {"memory-fraction", "", K::fraction, "SHARE", M::doc_memory_fraction, "", 0.01, 1, kJobs,
       plan, false},
      {"limit-mm-per-prompt", "", K::list, "image=N,video=N", M::doc_limit_media, "", 0, 0, kJobs,
       plan, false},
      {"gpu-layers", "ngl n-gpu-layers", K::whole, "N", M::doc_gpu_layers, "", 0, 100000, kJobs,
       plan, false},
      {"experts-on-host", "ncmoe n-cpu-moe", K::whole, "N", M::doc_experts_on_host, "", 0, 100000,
       kJobs, plan, false},
      {"split-mode", "sm", K::choice, "layer|row|none|tensor|graph", M::doc_split_mode, "layer", 1,
       0, kJobs, plan, false},
      {"tensor-split", "ts", K::list, "SHARES", M::doc_tensor_split, "", 1, 0, kJobs, plan, false},
      {"main-gpu", "mg", K::whole, "N", M::doc_main_gpu, "", 0, 15, kJobs, plan, false},
      {"flash-attention", "fa flash-attn", K::choice, "on|off", M::doc_flash_attention, "", 1, 0,
       kJobs, plan, false},
      {"max-num-batched-tokens", "ubatch-size ub", K::whole, "N", M::doc_step_tokens, "", 1, 1e7,
       kJobs, plan, false},
      {"max-num-seqs", "", K::whole, "N", M::doc_max_sequences, "", 1, 1e6, kJobs, plan, false},
      {"kv-cache-tokens", "max-total-tokens", K::whole, "N", M::doc_pool_tokens, "", 1, 1e12, kJobs,
       plan, false},
      {"mla", "", K::whole, "MODE", M::doc_mla, "", 0, 3, kJobs, plan, false},
      {"attention-max-batch", "amb", K::whole, "MIB", M::doc_amb, "", 0, 1e6, kJobs, plan, false},
      {"fused-moe", "fmoe", K::choice, "on|off", M::doc_fused_moe, "", 1, 0, kJobs, plan, false},
      {"attention-dp", "enable-attention-dp enable-dp-attention", K::on_off, "",
       M::doc_attention_dp, "", 1, 0, kJobs, plan, false},
      {"tp", "", K::whole, "N", M::doc_tp, "", 1, 65536, kJobs, plan, false},
      {"pp", "", K::whole, "N", M::doc_pp, "", 1, 65536, kJobs, plan, false},
      {"dp", "", K::whole, "N", M::doc_dp, "", 1, 65536, kJobs, plan, false},
      {"ep", "", K::whole, "N", M::doc_ep, "", 1, 65536, kJobs, plan, false},
      {"etp", "", K::whole, "N", M::doc_etp, "", 1, 65536, kJobs, plan, false},
      {"vpp", "", K::whole, "N", M::doc_vpp, "", 1, 65536, kJobs, plan, false},
      {"schedule", "", K::choice, "gpipe|1f1b|interleaved|zero-bubble|any", M::doc_schedule, "", 1,
       0, kJobs, plan, false},
      {"cp-exchange", "", K::choice, "ring|all-to-all", M::doc_cp_exchange, "", 1, 0, kJobs, plan,
       false},
      {"expert-capacity", "", K::number, "FACTOR", M::doc_expert_capacity, "", 1, 64, kJobs, plan,
       false},
      {"zero-groups", "", K::whole, "N", M::doc_zero_groups, "", 1, 65536, kJobs, plan, false},
      {"last-stage-layers", "", K::whole, "N", M::doc_last_stage_layers, "", 1, 65536, kJobs, plan,
       false},
      {"cp", "", K::whole, "N", M::doc_cp, "", 1, 65536, kJobs, plan, false},
      {"zero", "", K::whole, "STAGE", M::doc_zero, "", 0, 3, kJobs, plan, false},
      {"micro-batch", "", K::whole, "N", M::doc_micro_batch, "", 1, 1e6, kJobs, plan, false},
      {"recompute", "", K::choice, "none|selective|full", M::doc_recompute, "", 1, 0, kJobs, plan,
       false},
      {"recompute-layers", "", K::whole, "N", M::doc_recompute_layers, "", 1, 65536, kJobs, plan,
       false},
      {"optimizer", "", K::choice,
       "adamw|adamw_8bit|adamw_8bit_paged|adafactor|lion|muon|sgd|sgd_momentum", M::doc_optimizer,
       "adamw", 1, 0, kJobs, plan, false},
      {"recipe", "", K::choice, "mixed_16bit|mixed_fp32_grad|pure_bf16|autocast_fp32|fp32",
       M::doc_recipe, "", 1, 0, kJobs, plan, false},
      {"reference-model", "", K::on_off, "", M::doc_reference, "", 1, 0, kJobs, plan, false},
      {"loss-chunks", "", K::whole, "N", M::doc_loss_chunks, "", 1, 65536, kJobs, plan, false},
      {"offload", "", K::list, "PARTS", M::doc_offload, "", 1, 0, kJobs, plan, false},
      {"no-reshard", "", K::on_off, "", M::doc_no_reshard, "", 1, 0, kJobs, plan, false},
      {"sequence-parallel", "", K::on_off, "", M::doc_sequence_parallel, "", 1, 0, kJobs, plan,
       false},
      {"loader-rate", "", K::number, "RATE", M::doc_loader_rate, "", 0.001, kMost, kOne, plan,
       false},
      {"host-memory", "", K::size, "SIZE", M::doc_host_memory, "", 0, kMost, kOne, plan, false},
      {"host-bandwidth", "", K::bandwidth, "RATE", M::doc_host_bandwidth, "", 0, kMost, kOne, plan,
       false},
      {"disk", "", K::size, "SIZE", M::doc_disk, "", 0, kMost, kOne, plan, false},

      {"format", "", K::choice, "table|json", M::doc_format, "table", 1, 0, kAnswers, output,
       false},
      {"json", "", K::on_off, "", M::doc_json, "", 1, 0, kAnswers, output, true},
      {"explain", "", K::optional, "TERM", M::doc_explain, "", 1, 0, kOne | verb_recommend, output,
       true},
      {"what-if", "", K::changes, "CHANGES", M::doc_what_if, "", 1, 0, verb_estimate | verb_compare,
       job, true},
      {"one-line", "", K::on_off, "", M::doc_one_line, "", 1, 0, kJobs, output, true},
      {"top", "", K::whole, "N", M::doc_top, "20", 0, 1e9, kAnswers, output, false},
      {"color", "colour", K::choice, "auto|always|never", M::doc_color, "auto", 1, 0, kAll, output,
       false},
      {"lang", "", K::choice, "en|zh", M::doc_lang, "", 1, 0, kAll, output, false},
      {"threads", "", K::whole, "N", M::doc_threads, "0", 0, 4096,
       verb_validate | verb_plan | verb_recommend, output, false},
      {"help", "h", K::on_off, "", M::doc_help, "", 1, 0, kAll, output, true},

      {"data", "", K::text, "FOLDER", M::doc_data, "", 1, 0, kAnswers, data, false},
      {"as-of", "", K::date, "DATE", M::doc_as_of, "", 1, 0,
       verb_recommend | verb_plan | verb_compare | verb_estimate | verb_catalog | verb_calibrate,
       data, false},
      {"where", "", K::list, "CONDITIONS", M::doc_where, "", 1, 0, verb_catalog, data, true},
      {"operators", "", K::text, "FOLDER", M::doc_operators, "", 1, 0, verb_calibrate, data, true},
      {"out", "", K::text, "FOLDER", M::doc_out, "", 1, 0, verb_calibrate, data, true},
      {"group-by", "", K::list, "COLUMNS", M::doc_group_by, "", 1, 0, verb_validate, data, true},
      {"per-row", "", K::text, "FILE", M::doc_per_row, "", 1, 0, verb_validate, data, true},
      {"check", "", K::on_off, "", M::doc_check, "", 1, 0, verb_validate, data, true},
      {"show", "", K::on_off, "", M::doc_show, "", 1, 0, verb_config, output, true},
      {"man", "", K::on_off, "", M::doc_man, "", 1, 0, verb_help, output, true},
      {"completion", "", K::choice, "bash|zsh|fish", M::doc_completion, "", 1, 0, verb_help, output,
       true},
  };
}

}  // namespace

const std::vector<Flag>& flags() {
  static const std::vector<Flag> table = make();
  return table;
}

const std::vector<VerbInfo>& verbs() {
  static const std::vector<VerbInfo> table = {
      {verb_fit,
       "fit",
       M::verb_fit,
       "[MODEL] [--on HARDWARE]",
       {"trigon fit llama-3.1-8b --on rtx-4090 --context 32k", "trigon fit mixtral-8x7b",
        "trigon fit --on rtx-4090"}},
      {verb_estimate,
       "estimate",
       M::verb_estimate,
       "MODEL --on HARDWARE",
       {"trigon estimate llama-3.1-70b --on 4xh100-sxm --tp 4 --concurrency 32 --isl 1000 --osl "
        "300"}},
      {verb_recommend,
       "recommend",
       M::verb_recommend,
       "MODEL",
       {"trigon recommend llama-3.1-70b --task serve --rate 20/s --isl 1000 --osl 300 --ttft 1s "
        "--tpot 50ms",
        "trigon recommend llama-2-13b --task train --tokens 300B --deadline 30d",
        "trigon recommend llama-2-7b --task finetune --method lora --budget 1500USD --buy"}},
      {verb_plan,
       "plan",
       M::verb_plan,
       "MODEL --on HARDWARE",
       {"trigon plan llama-2-13b --on 4x8xa100-sxm-80gb --task train --tokens 300B",
        "trigon plan llama-3.1-70b --on 8xh100-sxm --task serve --rate 20/s --isl 1000 --osl 300"}},
      {verb_compare,
       "compare",
       M::verb_compare,
       "HARDWARE HARDWARE... MODEL",
       {"trigon compare a100-80gb h100-sxm l40s llama-3.1-8b --task serve"}},
      {verb_inspect,
       "inspect",
       M::verb_inspect,
       "FILE",
       {"trigon inspect model.gguf", "trigon inspect llama-3.1-8b --json",
        "trigon inspect model.onnx --shape input=1x3x224x224"}},
      {verb_check,
       "check",
       M::verb_check,
       "[LOG|-]",
       {"trigon check server.log", "dmesg | trigon check -",
        "trigon check server.log --model llama-3.1-8b --on rtx-4090"}},
      {verb_catalog,
       "catalog",
       M::verb_catalog,
       "gpus|models|networks|systems|prices [NAME]",
       {"trigon catalog gpus --where vendor=amd", "trigon catalog gpus h100-sxm"}},
      {verb_validate,
       "validate",
       M::verb_validate,
       "FILE...",
       {"trigon validate measured.csv --per-row rows.csv"}},
      {verb_calibrate,
       "calibrate",
       M::verb_calibrate,
       "[FILE...] --out FOLDER",
       {"trigon calibrate train.csv infer.csv --out calibration"}},
      {verb_config, "config", M::verb_config, "[--show]", {"trigon config --show"}},
      {verb_version, "version", M::verb_version, "", {}},
      {verb_help,
       "help",
       M::verb_help,
       "[VERB]",
       {"trigon help fit", "trigon help --man | man -l -", "trigon help --completion bash"}}};
  return table;
}

const VerbInfo* find_verb(std::string_view name) {
  for (const VerbInfo& v : verbs())
    if (v.name == name) return &v;
  return nullptr;
}

std::vector<std::string_view> split_words(std::string_view text, char separator) {
  std::vector<std::string_view> out;
  while (!text.empty()) {
    auto end = text.find(separator);
    if (end != 0) out.push_back(text.substr(0, end));
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
  }
  return out;
}

std::vector<std::string_view> names_of(const Flag& f) {
  std::vector<std::string_view> out{f.name};
  for (std::string_view n : split_words(f.other, ' ')) out.push_back(n);
  return out;
}

const Flag* find_flag(std::string_view name) {
  for (const Flag& f : flags())
    for (std::string_view n : names_of(f))
      if (n == name) return &f;
  return nullptr;
}

}  // namespace trigon
