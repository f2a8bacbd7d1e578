// What matrix libraries take from the framework's allocator.

#include "memory/memory_model.hpp"

namespace trigon {

// cuBLAS: torch takes a workspace for each pair of handle and stream, and each host thread that
// multiplies (forward's and autograd's) has a handle (aten/src/ATen/cuda/CublasHandlePool.cpp: 32
// MiB on capability 9.0 and 10.0, 8.1 MiB elsewhere; repeatable results set
// CUBLAS_WORKSPACE_CONFIG). Transformer Engine keeps one of its own, and one for each stream of
// grouped products (transformer_engine/pytorch/module/base.py: 32 MiB from capability 9 on, 4 MiB
// before).
double MemoryModel::workspace_bytes(bool experts) const {
  const bool large = capability_ == 9 || capability_ == 10;
  const Bytes blas = engine_.deterministic ? engine_.blas_workspace_deterministic
                     : large               ? engine_.blas_workspace_hopper
                                           : engine_.blas_workspace;
  const Bytes own = capability_ >= 9 ? engine_.kernel_workspace_hopper : engine_.kernel_workspace;
  const double streams =
      experts && engine_.grouped_experts ? static_cast<double>(engine_.expert_streams) : 0;
  return static_cast<double>(engine_.blas_threads) * blas.in_base() + (1 + streams) * own.in_base();
}

}  // namespace trigon
