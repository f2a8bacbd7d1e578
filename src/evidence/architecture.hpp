#pragma once
// A model of which only the dimensions are stated: rows of measurements give layers, widths and
// heads of a network without a public configuration.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "evidence/row.hpp"
#include "job/job.hpp"
#include "model/decoder_spec.hpp"

namespace trigon {

struct Architecture {
  std::string name;
  std::int64_t layers = 0, hidden = 0, heads = 0, kv_heads = 0, head_dim = 0, ffn = 0,
               vocabulary = 0;
  std::int64_t experts = 0, active = 0, expert_width = 0;
  std::int64_t drafts = 0;                         // layers for multi-token prediction
  std::int64_t shared_width = 0;                   // of an expert that all tokens pass
  std::int64_t dense_layers = 0;                   // before the first with experts
  std::int64_t kv_lora_rank = 0, q_lora_rank = 0;  // latent attention; 0: none
  std::int64_t positions = 0;                      // learned; 0: rotary or none
  std::optional<double> parameters;                // total, as stated
  std::optional<bool> gated, tied;                 // as stated; else what meets `parameters` best
  std::vector<Assumption> assumptions;
};

// The dimensions a row states, with what its kind of row leaves out filled and listed. Absent when
// layers, hidden size or heads are missing.
std::optional<Architecture> architecture_of(const Row& row);

Result<Model> model_of(const Architecture& a, const std::string& where);

}  // namespace trigon
