#include "engine/policy_sheet.hpp"

#include <array>
#include <optional>

namespace trigon {
namespace {

// Facts of the sheet with those of its entries over them.
class Layers {
 public:
  explicit Layers(const FactSheet& sheet) : sheet_(sheet) { push(&sheet.facts); }
  void push(const std::vector<Fact>* facts) { layers_.push_back(facts); }
  const Fact* find(std::string_view key) const {
    for (auto it = layers_.rbegin(); it != layers_.rend(); ++it)
      if (const Fact* f = find_fact(**it, key)) return f;
    return nullptr;
  }

  void number(const char* key, double* out) {
    if (const Fact* f = typed<double>(key, "a number")) *out = std::get<double>(f->value);
  }
  void whole(const char* key, std::int64_t* out) {
    double v = static_cast<double>(*out);
    number(key, &v);
    *out = static_cast<std::int64_t>(v);
  }
  void mebi(const char* key, Bytes* out) {
    if (const Fact* f = typed<double>(key, "a number"))
      *out = mebibytes(std::get<double>(f->value));
  }
  void flag(const char* key, bool* out) {
    if (const Fact* f = typed<bool>(key, "a flag")) *out = std::get<bool>(f->value);
  }
  void text(const char* key, std::string* out) {
    if (const Fact* f = typed<std::string>(key, "a text")) *out = std::get<std::string>(f->value);
  }
  void texts(const char* key, std::vector<std::string>* out) {
    if (const Fact* f = typed<std::vector<std::string>>(key, "a list of texts"))
      *out = std::get<std::vector<std::string>>(f->value);
  }
  // What the list names is on, the others are off; without a list all stay as they are.
  void switches(const char* key, std::initializer_list<std::pair<std::string_view, bool*>> known) {
    std::vector<std::string> on;
    if (!find(key)) return;
    texts(key, &on);
    for (const auto& [name, flag] : known) *flag = false;
    for (const std::string& each : on) {
      const auto* at = std::find_if(known.begin(), known.end(),
                                    [&](const auto& one) { return one.first == each; });
      if (at == known.end())
        refuse(message(EngineMessage::bad_policy_value, each, key), key);
      else
        *at->second = true;
    }
  }
  void numbers(const char* key, std::vector<double>* out) {
    if (const Fact* f = typed<std::vector<double>>(key, "a list of numbers"))
      *out = std::get<std::vector<double>>(f->value);
  }
  template <class E, std::size_t N>
  void choice(const char* key, const std::array<std::pair<const char*, E>, N>& names, E* out) {
    std::string v;
    text(key, &v);
    if (v.empty()) return;
    for (const auto& [name, e] : names)
      if (v == name) {
        *out = e;
        return;
      }
    refuse(message(EngineMessage::bad_policy_value, v, key), key);
  }
  const std::optional<Error>& error() const { return error_; }

 private:
  template <class T>
  const Fact* typed(const char* key, const char* what) {
    const Fact* f = find(key);
    if (!f) return nullptr;
    // An empty TOML list reads as a list of numbers.
    if constexpr (std::is_same_v<T, std::vector<std::string>>)
      if (auto n = std::get_if<std::vector<double>>(&f->value); n && n->empty()) return nullptr;
    if (std::holds_alternative<T>(f->value)) return f;
    refuse(message(BaseMessage::wrong_type, key, what), key);
    return nullptr;
  }
  void refuse(Message what, const char* key) {
    if (!error_)
      error_ = Error{ErrorCode::malformed, std::move(what), sheet_.fact_id(key), std::nullopt};
  }
  const FactSheet& sheet_;
  std::vector<const std::vector<Fact>*> layers_;
  std::optional<Error> error_;
};

constexpr std::array<std::pair<const char*, PoolRule>, 5> kPools = {{
    {"none", PoolRule::none},
    {"total_fraction", PoolRule::total_fraction},
    {"free_fraction", PoolRule::free_fraction},
    {"granted_share", PoolRule::granted_share},
    {"static_fraction", PoolRule::static_fraction},
}};
constexpr std::array<std::pair<const char*, MediaProfile>, 3> kMediaProfiles = {{
    {"none", MediaProfile::none},
    {"prompts", MediaProfile::prompts},
    {"budget", MediaProfile::budget},
}};
constexpr std::array<std::pair<const char*, WindowAllocator>, 2> kWindows = {
    {{"full", WindowAllocator::full}, {"capped", WindowAllocator::capped}}};
constexpr std::array<std::pair<const char*, ExpertCopies>, 3> kExpertCopies = {
    {{"never", ExpertCopies::never},
     {"by_batch", ExpertCopies::by_batch},
     {"by_expert", ExpertCopies::by_expert}}};
constexpr std::array<std::pair<const char*, RowSplit>, 3> kRowSplits = {
    {{"never", RowSplit::never},
     {"main_card", RowSplit::main_card},
     {"by_layer", RowSplit::by_layer}}};
constexpr std::array<std::pair<const char*, LogitsRows>, 2> kLogits = {
    {{"sampled_only", LogitsRows::sampled_only}, {"all_tokens", LogitsRows::all_tokens}}};
constexpr std::array<std::pair<const char*, Launch>, 2> kLaunch = {
    {{"eager", Launch::eager}, {"graphs", Launch::graphs}}};
constexpr std::array<std::pair<const char*, ExpertKernels>, 4> kExpertKernels = {
    {{"none", ExpertKernels::none},
     {"deepep", ExpertKernels::deepep},
     {"deepep_low_latency", ExpertKernels::deepep_low_latency},
     {"deepep_normal", ExpertKernels::deepep_normal}}};
constexpr std::array<std::pair<const char*, Fusion>, 3> kFusion = {
    {{"none", Fusion::none}, {"pointwise", Fusion::pointwise}, {"epilogue", Fusion::epilogue}}};
constexpr std::array<std::pair<const char*, Batching>, 2> kBatching = {
    {{"continuous", Batching::continuous}, {"fixed", Batching::fixed}}};
constexpr std::array<std::pair<const char*, Parallelism>, 2> kParallelism = {
    {{"tensor", Parallelism::tensor}, {"layers", Parallelism::layers}}};
constexpr std::array<std::pair<const char*, Autograd>, 3> kAutograd = {
    {{"eager", Autograd::eager}, {"compiled", Autograd::compiled}, {"fused", Autograd::fused}}};

}  // namespace

Result<EnginePolicy> policy_from(const FactSheet& sheet,
                                 const std::vector<const FactGroup*>& entries) {
  Layers l(sheet);
  for (const FactGroup* g : entries) l.push(&g->facts);
  EnginePolicy p;
  p.id = sheet.id;
  p.sheet = &sheet;
  l.flag("serves", &p.serves);
  l.flag("trains", &p.trains);
  l.flag("runs_tokens", &p.runs_tokens);
  l.flag("runs_graphs", &p.runs_graphs);
  l.text("library", &p.library);
  l.text("tokens_engine", &p.tokens_engine);
  l.text("items_engine", &p.items_engine);
  l.flag("tf32_convolutions", &p.tf32_convolutions);
  l.flag("channels_first", &p.channels_first);
  l.choice("pool", kPools, &p.pool);
  l.number("memory_fraction", &p.memory_fraction);
  l.number("pool_share", &p.pool_share);
  l.flag("pool_tokens_option", &p.pool_tokens_option);
  l.flag("captures_most", &p.captures_most);
  l.whole("block_tokens", &p.block_tokens);
  l.whole("latent_block_tokens", &p.latent_block_tokens);
  l.whole("state_page_alignment", &p.state_page_alignment);
  l.choice("windows", kWindows, &p.windows);
  l.choice("logits", kLogits, &p.logits);
  l.whole("logits_bytes_per_value", &p.logits_bytes_per_value);
  l.whole("max_batched_tokens", &p.max_batched_tokens);
  l.whole("max_sequences", &p.max_sequences);
  l.choice("batching", kBatching, &p.batching);
  l.flag("chunked_prefill", &p.chunked_prefill);
  l.choice("launch", kLaunch, &p.launch);
  p.fusion = p.launch == Launch::graphs ? Fusion::epilogue : Fusion::none;
  l.choice("fusion", kFusion, &p.fusion);
  std::vector<double> captures;
  l.numbers("capture_batches", &captures);
  for (double c : captures) p.capture_batches.push_back(static_cast<std::int64_t>(c));
  l.choice("parallelism", kParallelism, &p.default_parallelism);
  l.flag("tensor_parallel", &p.tensor_parallel);
  l.flag("pipeline_parallel", &p.pipeline_parallel);
  l.flag("expert_parallel", &p.expert_parallel);
  l.flag("attention_data_parallel", &p.attention_data_parallel);
  l.flag("context_parallel", &p.context_parallel);
  bool one_f_one_b = true;  // what all pipelines here run, listed for completeness
  l.switches("schedules", {{"1f1b", &one_f_one_b},
                           {"interleaved", &p.interleaved_stages},
                           {"gpipe", &p.gpipe},
                           {"zero-bubble", &p.zero_bubble}});
  l.switches("context_exchanges",
             {{"ring", &p.context_ring}, {"all-to-all", &p.context_all_to_all}});
  l.switches(
      "zero_groups",
      {{"zero1", &p.zero_groups[1]}, {"zero2", &p.zero_groups[2]}, {"zero3", &p.zero_groups[3]}});
  l.switches("offloads", {{"optimizer", &p.offloads_optimizer},
                          {"weights", &p.offloads_weights},
                          {"activations", &p.offloads_activations}});
  l.flag("mla_absorbed", &p.mla_absorbed);
  l.flag("graphs_inside_fraction", &p.graphs_inside_fraction);
  l.flag("context_inside_fraction", &p.context_inside_fraction);
  l.flag("embedding_on_host", &p.embedding_on_host);
  l.mebi("context_mib", &p.context_overhead);
  l.mebi("collectives_mib", &p.collective_overhead);
  l.mebi("libraries_mib", &p.library_overhead);
  l.mebi("graphs_mib", &p.graph_overhead);
  l.mebi("graphs_per_layer_mib", &p.graph_per_layer);
  l.flag("collectives_inside_fraction", &p.collectives_inside_fraction);
  l.flag("checks_free", &p.checks_free);
  l.mebi("pool_margin_mib", &p.pool_margin);
  l.number("hidden_copies", &p.hidden_copies);
  l.whole("micro_batch_tokens", &p.micro_batch_tokens);
  double large_gib = 0;
  l.number("large_card_gib", &large_gib);
  p.large_card = gibibytes(large_gib);
  l.whole("large_card_batched_tokens", &p.large_card_batched_tokens);
  l.whole("large_card_sequences", &p.large_card_sequences);
  l.texts("large_card_not", &p.large_card_not);
  l.numbers("fraction_ranks", &p.fraction_ranks);
  l.numbers("fraction_values", &p.fraction_values);
  l.numbers("tier_gib", &p.tier_gib);
  l.numbers("tier_tokens", &p.tier_tokens);
  l.numbers("tier_graphs", &p.tier_graphs);
  l.numbers("tier_graphs_tp4", &p.tier_graphs_tp4);
  l.mebi("reserve_base_mib", &p.reserve_base);
  l.mebi("reserve_per_token_mib", &p.reserve_per_token);
  l.mebi("reserve_per_graph_mib", &p.reserve_per_graph);
  l.mebi("reserve_per_8_ranks_mib", &p.reserve_per_8_ranks);
  l.mebi("reserve_least_mib", &p.reserve_least);
  double least_from = 0;
  l.number("reserve_least_from_gib", &least_from);
  p.reserve_least_from = gibibytes(least_from);
  l.choice("media_profile", kMediaProfiles, &p.media_profile);
  l.whole("media_images", &p.media_images);
  l.whole("media_films", &p.media_films);
  l.whole("media_frames", &p.media_frames);
  l.flag("media_takes_images", &p.media_takes_images);
  l.flag("media_reserve", &p.media_reserve);
  l.whole("vocabulary_padding", &p.vocabulary_padding);
  l.flag("flash_attention", &p.flash_attention);
  l.flag("concatenated_cache", &p.concatenated_cache);
  l.flag("rotary_table", &p.rotary_table);
  l.flag("whole_cache_copied", &p.whole_cache_copied);
  l.number("unpacked_bytes", &p.unpacked_bytes);
  l.whole("unpacked_rows", &p.unpacked_rows);
  l.flag("quantises_head", &p.quantises_head);
  l.flag("compute_buffer", &p.compute_buffer);
  l.flag("latent_expanded", &p.latent_expanded);
  l.flag("latent_values_cached", &p.latent_values_cached);
  l.flag("fused_experts", &p.fused_experts);
  l.mebi("attention_chunk_mib", &p.attention_chunk);
  l.flag("masks_converted", &p.masks_converted);
  l.flag("fused_norms", &p.fused_norms);
  l.flag("fused_gates", &p.fused_gates);
  l.flag("heads_together", &p.heads_together);
  l.choice("expert_copies", kExpertCopies, &p.expert_copies);
  l.flag("host_layers", &p.host_layers);
  l.flag("head_first", &p.head_first);
  l.flag("card_shares", &p.card_shares);
  l.choice("row_split", kRowSplits, &p.row_split);
  l.texts("repacked_formats", &p.repacked_formats);
  l.flag("repacks_beside_cards", &p.repacks_beside_cards);
  l.flag("rounds_by_type", &p.rounds_by_type);
  l.number("pipeline_input_copies", &p.pipeline_input_copies);
  l.flag("remainder_last", &p.remainder_last);
  l.whole("pipeline_passes", &p.pipeline_passes);
  l.whole("quantised_launches", &p.quantised_launches);
  l.whole("half_launches", &p.half_launches);
  l.whole("widened_rows", &p.widened_rows);
  l.whole("gathered_rows", &p.gathered_rows);
  l.flag("custom_all_reduce", &p.custom_all_reduce);
  l.choice("expert_kernels_across_nodes", kExpertKernels, &p.expert_kernels_across_nodes);
  l.flag("expert_loop", &p.expert_loop);
  l.flag("row_products", &p.row_products);
  l.flag("integer_products", &p.integer_products);
  l.whole("lookup_rows", &p.lookup_rows);
  l.flag("own_products", &p.own_products);
  l.flag("half_accumulation", &p.half_accumulation);
  l.texts("waiting_formats", &p.waiting_formats);
  l.numbers("waiting_launches", &p.waiting_launches);
  l.number("score_bytes", &p.score_bytes);
  l.number("score_passes", &p.score_passes);
  l.choice("autograd", kAutograd, &p.autograd);
  l.number("loss_bytes_per_logit", &p.loss_bytes_per_logit);
  l.number("loss_traffic_bytes", &p.loss_traffic_bytes);
  l.flag("selective_by_operator", &p.selective_by_operator);
  l.flag("tensor_backward_overlaps", &p.tensor_backward_overlaps);
  l.flag("tensor_forward_overlaps", &p.tensor_forward_overlaps);
  l.number("flash_version", &p.flash_version);
  l.number("flash_capability_min", &p.flash_capability_min);
  l.number("fused_loss_bytes_per_logit", &p.fused_loss_bytes_per_logit);
  l.whole("loss_chunks", &p.loss_chunks);
  l.flag("caches_in_training", &p.caches_in_training);
  l.flag("outputs_held", &p.outputs_held);
  l.whole("blas_threads", &p.blas_threads);
  l.mebi("blas_workspace_mib", &p.blas_workspace);
  l.mebi("blas_workspace_hopper_mib", &p.blas_workspace_hopper);
  l.mebi("blas_workspace_deterministic_mib", &p.blas_workspace_deterministic);
  l.mebi("kernel_workspace_mib", &p.kernel_workspace);
  l.mebi("kernel_workspace_hopper_mib", &p.kernel_workspace_hopper);
  l.whole("expert_streams", &p.expert_streams);
  l.flag("eight_bit_copies", &p.eight_bit_copies);
  l.flag("ends_stay_gathered", &p.ends_stay_gathered);
  l.flag("attention_output_copy", &p.attention_output_copy);
  l.flag("gradients_persist", &p.gradients_persist);
  l.flag("dropout_masks", &p.dropout_masks);
  EagerRules& e = p.eager;
  l.flag("fused_qkv", &e.fused_qkv);
  l.flag("expanded_kv", &e.expanded_kv);
  l.flag("separate_head", &e.separate_head);
  l.number("trained_norm_bytes", &e.trained_norm_bytes);
  l.number("adapter_input_bytes", &e.adapter_input_bytes);
  l.flag("adapter_shared_qkv", &e.adapter_shared_qkv);
  l.flag("adapter_padding", &e.adapter_padding);
  l.flag("quantised_input", &e.quantised_input);
  l.flag("quantised_head", &e.quantised_head);
  l.number("dequantised_copies", &e.dequantised_copies);
  l.flag("graph_outlives_step", &e.graph_outlives_step);
  l.number("gathered_parameters", &p.gathered_parameters);
  l.flag("gathered_ends", &p.gathered_ends);
  l.flag("unsharded_accumulation", &p.unsharded_accumulation);
  l.flag("mixed_units", &p.mixed_units);
  l.number("reduce_bucket", &p.reduce_bucket);
  l.number("step_parameters", &p.step_parameters);
  l.flag("data_parallel_buckets", &p.data_parallel_buckets);
  l.number("optimizer_step_bytes", &p.optimizer_step_bytes);
  l.number("gathered_layers", &p.gathered_layers);
  l.number("fragmentation", &p.fragmentation);
  l.whole("zero", &p.default_zero);
  l.text("recipe", &p.default_recipe);
  l.texts("vendors", &p.vendors);
  l.flag("processors", &p.processors);
  l.number("nvidia_capability_min", &p.nvidia_capability_min);
  if (l.error()) return tl::unexpected(*l.error());
  return p;
}

}  // namespace trigon
