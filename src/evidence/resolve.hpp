#pragma once
// The parts of a case that every kind of row has: card, model, engine, formats. Each `take_*`
// fills the case or says why the row is refused.

#include "evidence/case.hpp"

namespace trigon {

// "bf16", "fp8", "int4-awq", "gguf:Q4_K_M@4.89bpw", "mlx:q4", "nf4-dq" ... Absent when unknown.
std::optional<Format> format_of(std::string_view text);
// The file type of a GGUF weight format ("Q4_K_M" of "gguf:Q4_K_M@4.89bpw"), else empty.
std::string_view gguf_file_type(std::string_view text);

// Id, source, date, fold and measured value; refuses doubtful rows and values that are no
// positive number (zero is allowed where `zero` is set).
// `column` holds the value; none: the caller reads it.
std::optional<Refusal> take_identity(const Row& row, Case& c, bool zero = false,
                                     std::string_view column = "value");
std::optional<Refusal> take_model(const Row& row, const RowNames& names, Case& c);
// What ran had room for it: raises the model's own limit of context where a row went beyond.
void allow_length(Case& c, std::int64_t tokens);
// Applies the column `weight_format` to the plan; blank means the checkpoint's own.
std::optional<Refusal> take_weights(const Row& row, const RowNames& names, Case& c);
std::optional<Refusal> take_engine(std::string_view name, std::string_view version,
                                   std::string_view date, const RowNames& names, Case& c);
// Adapters, recipe and optimizer of a training row whose kind of job is known.
std::optional<Refusal> take_adapters(const Row& row, Case& c);
// `cards` accelerators, `per_node` in a node (0: not stated).
std::optional<Refusal> take_hardware(const Row& row, const RowNames& names, std::int64_t cards,
                                     std::int64_t per_node, Case& c);

inline std::optional<std::int32_t> degree(const Row& row, std::string_view column,
                                          std::initializer_list<std::string_view> keys = {}) {
  const auto v = row.whole(column, keys);
  if (!v || *v < 1 || *v > 100000000) return std::nullopt;
  return static_cast<std::int32_t>(*v);
}

}  // namespace trigon
