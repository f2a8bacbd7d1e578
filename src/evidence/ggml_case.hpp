#pragma once
// What rows of ggml's engines (llama.cpp, ik_llama.cpp) state: mixes of formats, the layers and
// experts left in host memory, switches of attention.

#include "evidence/case.hpp"

namespace trigon {

bool by_ggml(const Row& row);
// Cards whose buffers the row lists, 0: the CPU's alone. Absent when it lists none.
std::optional<std::int64_t> cards_used(const Row& row);
// The date of a row; of an undated one from ik_llama.cpp's threads the last known date before.
std::string_view ggml_date(const Row& row);

// The weights' formats and, from them, where they lie. A named file type is taken by its rule; a
// mix that is none of them by the mean bits that the row states.
std::optional<Refusal> take_ggml_weights(const Row& row, const RowNames& names, Case& c);
// -ngl, experts on the host, formats of the cache, switches of attention.
std::optional<Refusal> take_ggml_switches(const Row& row, Case& c);
// Which of the answer's bytes the component is. False: nothing special.
bool take_ggml_component(const Row& row, std::string_view span, Case& c);

}  // namespace trigon
