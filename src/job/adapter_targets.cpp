#include "job/adapter_targets.hpp"

#include <array>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "hardware/names.hpp"
#include "job/messages.hpp"

namespace trigon {
namespace {

using T = AdapterTarget;

struct Name {
  std::string_view name;
  AdapterTargets parts;
};

// The first name of a part is the one it is written with. Checkpoints: Llama and its kin, GPT-2 and
// Qwen (`c_proj` ends both attention and MLP), Falcon and NeoX, OPT, Megatron-LM, Mamba.
constexpr std::array<Name, 49> kNames{{
    {"q_proj", {T::query}},
    {"k_proj", {T::key}},
    {"v_proj", {T::value}},
    {"o_proj", {T::output}},
    {"gate_proj", {T::gate}},
    {"up_proj", {T::up}},
    {"down_proj", {T::down}},
    {"mixer", {T::mixer}},
    {"experts", {T::experts}},
    {"embed_tokens", {T::embedding}},
    {"lm_head", {T::head}},
    {"all", kAllLinears},
    {"all-linear", kAllLinears},
    {"qv", kQueryValue},
    {"query", {T::query}},
    {"key", {T::key}},
    {"value", {T::value}},
    {"output", {T::output}},
    {"gate", {T::gate}},
    {"up", {T::up}},
    {"down", {T::down}},
    {"embedding", {T::embedding}},
    {"head", {T::head}},
    {"q", {T::query}},
    {"k", {T::key}},
    {"v", {T::value}},
    {"o", {T::output}},
    {"qkv_proj", {T::query, T::key, T::value}},
    {"gate_up_proj", {T::gate, T::up}},
    {"c_attn", {T::query, T::key, T::value}},
    {"c_proj", {T::output, T::down}},
    {"c_fc", {T::up}},
    {"w1", {T::up}},
    {"w2", {T::gate}},
    {"query_key_value", {T::query, T::key, T::value}},
    {"dense", {T::output}},
    {"dense_h_to_4h", {T::gate, T::up}},
    {"dense_4h_to_h", {T::down}},
    {"out_proj", {T::output}},
    {"fc1", {T::up}},
    {"fc2", {T::down}},
    {"linear_qkv", {T::query, T::key, T::value}},
    {"linear_proj", {T::output}},
    {"linear_fc1", {T::gate, T::up}},
    {"linear_fc2", {T::down}},
    {"in_proj", {T::mixer}},
    {"x_proj", {T::mixer}},
    {"dt_proj", {T::mixer}},
    {"output_proj", {T::output}},
}};
constexpr std::size_t kWritten = 11;  // names of parts, in the order of AdapterTarget

}  // namespace

Result<AdapterTargets> adapter_targets(std::string_view list, std::string_view where) {
  AdapterTargets targets;
  while (!list.empty()) {
    const std::size_t end = list.find_first_of(",+ ");
    const std::string_view word = list.substr(0, end);
    list = end == std::string_view::npos ? std::string_view() : list.substr(end + 1);
    if (word.empty()) continue;
    const Name* found = nullptr;
    for (const Name& n : kNames)
      if (n.name == word) found = &n;
    if (!found) {
      std::vector<std::string_view> known;
      for (const Name& n : kNames) known.push_back(n.name);
      const auto nearest = nearest_name(word, known);
      return fail(ErrorCode::unknown_name, message(JobMessage::no_such_target, word),
                  std::string(where),
                  message(JobMessage::targets_are,
                          nearest ? *nearest : std::string("all, qv, q_proj,o_proj,down_proj")));
    }
    targets.add(found->parts);
  }
  if (targets.empty())
    return fail(ErrorCode::bad_argument, message(JobMessage::no_targets), std::string(where));
  return targets;
}

std::string write_targets(AdapterTargets targets) {
  if (targets == kAllLinears) return "all";
  if (targets == kQueryValue) return "qv";
  std::string out;
  for (std::size_t i = 0; i < kWritten; ++i)
    if (targets.has(static_cast<AdapterTarget>(i))) {
      if (!out.empty()) out += ',';
      out += kNames[i].name;
    }
  return out;
}

}  // namespace trigon
