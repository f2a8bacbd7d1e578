#include "plan/plan.hpp"

#include <array>
#include <charconv>
#include <utility>

#include "plan/request.hpp"

namespace trigon {
namespace {

constexpr std::array<std::pair<Optimizer, std::string_view>, 8> kOptimizers{{
    {Optimizer::adamw, "adamw"},
    {Optimizer::adamw_8bit, "adamw_8bit"},
    {Optimizer::adamw_8bit_paged, "adamw_8bit_paged"},
    {Optimizer::adafactor, "adafactor"},
    {Optimizer::lion, "lion"},
    {Optimizer::muon, "muon"},
    {Optimizer::sgd, "sgd"},
    {Optimizer::sgd_momentum, "sgd_momentum"},
}};

std::string written(float share) {
  std::array<char, 32> text{};
  const auto [end, code] = std::to_chars(text.data(), text.data() + text.size(), share);
  return code == std::errc{} ? std::string(text.data(), end) : std::string();
}

constexpr std::array<std::pair<CardSplit, std::string_view>, 5> kCardSplits{{
    {CardSplit::layer, "layer"},
    {CardSplit::row, "row"},
    {CardSplit::none, "none"},
    {CardSplit::tensor, "tensor"},
    {CardSplit::graph, "graph"},
}};

constexpr std::array<std::pair<TrainRecipe, std::string_view>, 5> kRecipes{{
    {TrainRecipe::mixed_16bit, "mixed_16bit"},
    {TrainRecipe::mixed_fp32_grad, "mixed_fp32_grad"},
    {TrainRecipe::pure_bf16, "pure_bf16"},
    {TrainRecipe::autocast_fp32, "autocast_fp32"},
    {TrainRecipe::fp32, "fp32"},
}};

constexpr std::array<std::pair<Schedule, std::string_view>, 4> kSchedules{{
    {Schedule::gpipe, "gpipe"},
    {Schedule::one_f_one_b, "1f1b"},
    {Schedule::interleaved, "interleaved"},
    {Schedule::zero_bubble, "zero-bubble"},
}};

constexpr std::array<std::pair<ContextExchange, std::string_view>, 2> kExchanges{{
    {ContextExchange::ring, "ring"},
    {ContextExchange::all_to_all, "all-to-all"},
}};

template <class Enum, std::size_t N>
std::string_view name_in(const std::array<std::pair<Enum, std::string_view>, N>& names, Enum e) {
  for (const auto& [value, name] : names)
    if (value == e) return name;
  return {};
}
template <class Enum, std::size_t N>
std::optional<Enum> value_in(const std::array<std::pair<Enum, std::string_view>, N>& names,
                             std::string_view asked) {
  for (const auto& [value, name] : names)
    if (name == asked) return value;
  return std::nullopt;
}

}  // namespace

std::string_view recipe_name(TrainRecipe r) { return name_in(kRecipes, r); }
std::optional<TrainRecipe> recipe_of(std::string_view name) { return value_in(kRecipes, name); }
std::string_view schedule_name(Schedule s) { return name_in(kSchedules, s); }
std::optional<Schedule> schedule_of(std::string_view name) { return value_in(kSchedules, name); }
std::string_view context_exchange_name(ContextExchange c) { return name_in(kExchanges, c); }
std::optional<ContextExchange> context_exchange_of(std::string_view name) {
  return value_in(kExchanges, name);
}

std::string_view card_split_name(CardSplit s) { return name_in(kCardSplits, s); }
std::optional<CardSplit> card_split_of(std::string_view name) {
  return value_in(kCardSplits, name);
}

std::string_view optimizer_name(Optimizer o) { return name_in(kOptimizers, o); }
std::optional<Optimizer> optimizer_of(std::string_view name) { return value_in(kOptimizers, name); }

void take_switches(const PlanRequest& fixed, Plan& plan) {
  plan.expert_tensor = fixed.expert_tensor.value_or(0);
  plan.recompute_layers = fixed.recompute_layers.value_or(0);
  plan.optimizer_groups = fixed.optimizer_groups.value_or(1);
  plan.interleave_group = fixed.interleave_group.value_or(0);
  plan.last_stage_layers = fixed.last_stage_layers.value_or(0);
  plan.schedule = fixed.schedule.value_or(Schedule::one_f_one_b);
  plan.context_exchange = fixed.context_exchange.value_or(ContextExchange::ring);
  plan.optimizer = fixed.optimizer.value_or(Optimizer::adamw);
  plan.reference = fixed.reference.value_or(false);
  plan.reshard = fixed.reshard.value_or(true);
  plan.offload_optimizer = fixed.offload_optimizer.value_or(false);
  plan.offload_weights = fixed.offload_weights.value_or(false);
  plan.offload_activations = fixed.offload_activations.value_or(false);
}

std::string write_plan(const Plan& p) {
  std::string out;
  auto add = [&](const char* name, std::int32_t v, bool always = false) {
    if (v == 1 && !always) return;
    if (!out.empty()) out += ' ';
    out += name + std::to_string(v);
  };
  add("tp", p.tensor, p.ranks() == 1);
  add("pp", p.pipeline);
  add("vpp", p.virtual_stages);
  if (p.pipeline > 1 && p.schedule != Schedule::one_f_one_b && p.schedule != Schedule::interleaved)
    out += " " + std::string(schedule_name(p.schedule));
  add("dp", p.data);
  add("cp", p.context);
  if (p.context > 1 && p.context_exchange == ContextExchange::all_to_all) out += " all-to-all";
  add("ep", p.expert);
  add("etp", p.expert_tensor > 0 ? p.expert_tensor : 1);
  if (p.zero > 0) out += " zero" + std::to_string(p.zero);
  if (p.zero > 0 && p.optimizer_groups > 1) out += " groups" + std::to_string(p.optimizer_groups);
  if (p.recompute == Recompute::selective) out += " recompute-selective";
  if (p.recompute == Recompute::full) {
    out += " recompute";
    if (p.recompute_layers > 0) out += std::to_string(p.recompute_layers);
  }
  if (p.optimizer != Optimizer::adamw) out += " " + std::string(optimizer_name(p.optimizer));
  if (p.offload_optimizer) out += " offload-optimizer";
  if (p.offload_weights) out += " offload-weights";
  if (p.offload_activations) out += " offload-activations";
  if (p.gpu_layers >= 0) out += " gpu-layers" + std::to_string(p.gpu_layers);
  if (p.experts_on_host > 0) out += " experts-on-host" + std::to_string(p.experts_on_host);
  if (p.card_split != CardSplit::layer)
    out += " split-" + std::string(card_split_name(p.card_split));
  if (p.main_card > 0) out += " main-gpu" + std::to_string(p.main_card);
  if (p.has_shares()) {
    out += " shares";
    for (std::size_t i = 0; i < kMostShares && i < static_cast<std::size_t>(p.pipeline); ++i)
      out += (i == 0 ? "" : ",") + written(p.card_shares[i]);
  }
  if (!out.empty() && out[0] == ' ') out.erase(0, 1);
  return out;
}

}  // namespace trigon
