#pragma once
// From what the user wrote to a whole job, with every assumption listed.

#include "base/result.hpp"
#include "job/job.hpp"
#include "model/model.hpp"

namespace trigon {

// Fills what is absent and checks what is there. The model's greatest context is never assumed for
// a prompt; a longer one than the model allows is an error that names the nearest valid length.
Result<CompleteJob> complete(const JobRequest& request, const Model& model);

}  // namespace trigon
