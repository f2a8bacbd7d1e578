#pragma once
// Internal to the step room: the tables of training of a language model.

#include "step/tables.hpp"

namespace trigon {

// Fills `pass` and the FLOPs for sequences of `sequence` tokens.
void fill_train(Tables& t, std::int64_t sequence);

}  // namespace trigon
