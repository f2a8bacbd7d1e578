#include "decide/oom_advice.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

namespace trigon {
namespace {

std::vector<std::string> changes_of(const std::string& text) {
  const OomReport r = read_oom_log(text);
  std::vector<std::string> out;
  if (r.events.empty()) return out;
  for (const OomAdvice& a : advise(r, r.events.front())) out.push_back(a.change);
  return out;
}
std::vector<std::string> of_file(const std::string& name) {
  std::ifstream in(TRIGON_SOURCE_DIR "/fuzz/corpus/oom_log/" + name + ".log", std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return changes_of(text.str());
}
bool holds(const std::vector<std::string>& list, const std::string& text) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

TEST(OomAdvice, TheLengthThatFitsIsTheEnginesOwn) {
  EXPECT_EQ(of_file("vllm-v1-length").front(), "--max-model-len 5104");
  EXPECT_EQ(of_file("vllm-v0").front(), "--max-model-len 41024");
}

TEST(OomAdvice, OrIsComputedFromTheSizes) {
  // 40,960 tokens need 10 GiB; 1.25 GiB is left, printed to a hundredth: 1.245 of 10 x 40,960 =
  // 5,099.5, in whole blocks of 16: 5,088.
  EXPECT_EQ(changes_of("ValueError: To serve at least one request with the model's max seq len "
                       "(40960), (10.00 GiB KV cache is needed, which is larger than the available "
                       "KV cache memory (1.25 GiB). Try increasing `gpu_memory_utilization`")
                .front(),
            "--max-model-len 5088");
}

TEST(OomAdvice, TheShareOfTheCardIsComputed) {
  // 24 GiB x 0.85; the cache lacks 0.30 GiB: 0.85 + 0.30 / 24 = 0.8625.
  EXPECT_EQ(changes_of("can use total_gpu_memory (24.00GiB) x gpu_memory_utilization (0.85) = "
                       "20.40GiB\nAvailable KV cache memory: -0.30 GiB\n"
                       "ValueError: No available memory for the cache blocks.")
                .front(),
            "--gpu-memory-utilization 0.87");
  // 3.25 of 23.43 GiB is free: 0.1387.
  EXPECT_TRUE(holds(of_file("vllm-start"), "--gpu-memory-utilization 0.13"));
  // 18.0 of 78.5 GB is left: 1 - 18.0 / 78.5 = 0.7707.
  EXPECT_EQ(of_file("sglang-static").front(), "--mem-fraction-static 0.79");
}

TEST(OomAdvice, LayersAndContextOfLlamaCppAreComputed) {
  // 11,000 of 22,000 MiB for 48 layers and the output: 24.5.
  EXPECT_EQ(of_file("llama-weights").front(), "-ngl 24");
  // (23,000 - 7,605.33) of 16,384 MiB for 131,072 tokens: 123,157; in steps of 256: 123,136.
  EXPECT_EQ(of_file("llama-kv").front(), "-c 123136");
  EXPECT_EQ(of_file("llama-compute").front(), "-ub 256");
}

TEST(OomAdvice, FragmentationNamesTheVariableOfTheRelease) {
  EXPECT_EQ(of_file("torch-fragmented").front(),
            "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True");
  const std::string text =
      "CUDA out of memory. Tried to allocate 1.25 GiB. GPU 2 has a total capacity of 79.15 GiB of "
      "which 0.60 GiB is free. Of the allocated memory 60.31 GiB is allocated by PyTorch, and "
      "16.48 GiB is reserved by PyTorch but unallocated. If reserved but unallocated memory is "
      "large try setting PYTORCH_ALLOC_CONF=expandable_segments:True to avoid fragmentation.\n";
  EXPECT_EQ(changes_of(text).front(), "PYTORCH_ALLOC_CONF=expandable_segments:True");
  // Already set: something else is said.
  EXPECT_NE(changes_of("export PYTORCH_ALLOC_CONF=expandable_segments:True\n" + text).front(),
            "PYTORCH_ALLOC_CONF=expandable_segments:True");
}

TEST(OomAdvice, TrainingGetsItsOwnTrainersSettings) {
  EXPECT_EQ(of_file("deepspeed-init").front(), "\"zero_optimization\": {\"stage\": 2}");
  EXPECT_EQ(of_file("deepspeed-gather").front(), "\"stage3_max_live_parameters\": 1e8");
  EXPECT_TRUE(holds(of_file("torch-1"), "optim=\"adamw_8bit\""));
  EXPECT_EQ(of_file("torch-2").front(), "use_liger_kernel=True");
}

TEST(OomAdvice, EveryErrorGetsSomeAdvice) {
  for (const char* name :
       {"torch-shared-card", "torch-mps", "vllm-sampler", "vllm-graphs", "sglang-graph",
        "tensorrt-llm", "llama-json", "llama-vulkan", "llama-host", "nccl", "cublas", "jax",
        "kernel", "host-allocator", "shell-killed", "two-errors"})
    EXPECT_FALSE(of_file(name).empty()) << name;
}

}  // namespace
}  // namespace trigon
