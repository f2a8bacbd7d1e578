#pragma once
// Internal to the step room: the interleaved 1F1B schedule of Megatron-LM.

#include <vector>

#include "step/schedule.hpp"

namespace trigon {

// One pass of a stage: which micro-batch, of which of its virtual stages.
struct ChunkPass {
  int micro_batch = 0, chunk = 0;
};

// The order in which every stage takes the forward passes of its chunks: a group of micro-batches
// through the first chunk, then the same group through the next; backward passes likewise from the
// last chunk to the first (megatron/core/pipeline_parallel/schedules.py, get_schedule_table).
std::vector<ChunkPass> interleaved_order(int micro_batches, int virtual_stages, int group);

// Forward passes before the first backward pass of a stage, at most all of them (get_pp_rank_
// microbatches in the same file).
int interleaved_warmup(int stages, int virtual_stages, int group, int micro_batches, int stage);

// Whether a pipeline has no closed form.
bool needs_walk(const PipelineWork& work);

double interleaved_seconds(const PipelineWork& work);

}  // namespace trigon
