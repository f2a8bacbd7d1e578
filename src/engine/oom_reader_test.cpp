#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "engine/oom_report.hpp"
#include "engine/oom_text.hpp"

namespace trigon {
namespace {

using F = OomFigure;
using C = OomComponent;
using K = OomKind;
using T = OomTool;

OomReport of_file(const std::string& name) {
  std::ifstream in(std::string(TRIGON_SOURCE_DIR "/fuzz/corpus/oom_log/") + name + ".log",
                   std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  EXPECT_FALSE(text.str().empty()) << name;
  return read_oom_log(text.str());
}

struct Case {
  const char* file;
  K kind;
  T tool;
  C component;
};

class OomLogs : public testing::TestWithParam<Case> {};

TEST_P(OomLogs, NamesWhatOverflowed) {
  const Case& c = GetParam();
  const OomReport r = of_file(c.file);
  ASSERT_FALSE(r.events.empty());
  const OomEvent& e = r.events.front();
  EXPECT_EQ(oom_kind_name(e.kind), oom_kind_name(c.kind));
  EXPECT_EQ(oom_tool_name(e.tool), oom_tool_name(c.tool));
  EXPECT_EQ(oom_component_name(e.component), oom_component_name(c.component));
  EXPECT_FALSE(e.quoted.empty());
  EXPECT_GT(e.line, 0);
}

INSTANTIATE_TEST_SUITE_P(
    All, OomLogs,
    testing::Values(Case{"torch-2", K::allocation, T::transformers, C::logits},
                    Case{"utf16", K::allocation, T::transformers, C::logits},
                    Case{"torch-1", K::allocation, T::torch, C::optimizer_state},
                    Case{"torch-fragmented", K::allocation, T::torch, C::fragmentation},
                    Case{"torch-shared-card", K::allocation, T::torch, C::other_process},
                    Case{"torch-mps", K::allocation, T::torch, C::unknown},
                    Case{"vllm-v0", K::kv_too_short, T::vllm, C::kv_cache},
                    Case{"vllm-v1-length", K::kv_too_short, T::vllm, C::kv_cache},
                    Case{"vllm-no-blocks", K::no_kv_blocks, T::vllm, C::kv_cache},
                    Case{"vllm-start", K::free_below_fraction, T::vllm, C::other_process},
                    Case{"vllm-sampler", K::sampler_warmup, T::vllm, C::logits},
                    Case{"vllm-graphs", K::allocation, T::vllm, C::graphs},
                    Case{"sglang-static", K::static_fraction, T::sglang, C::kv_cache},
                    Case{"sglang-graph", K::graph_capture, T::sglang, C::graphs},
                    Case{"tensorrt-llm", K::executor_creation, T::tensorrt_llm, C::weights},
                    Case{"llama-weights", K::buffer, T::llama_cpp, C::weights},
                    Case{"llama-kv", K::buffer, T::llama_cpp, C::kv_cache},
                    Case{"llama-compute", K::buffer, T::llama_cpp, C::compute_buffer},
                    Case{"llama-json", K::buffer, T::llama_cpp, C::kv_cache},
                    Case{"llama-vulkan", K::buffer, T::llama_cpp, C::weights},
                    Case{"llama-host", K::buffer, T::llama_cpp, C::host_memory},
                    Case{"deepspeed-init", K::allocation, T::deepspeed, C::optimizer_state},
                    Case{"deepspeed-gather", K::allocation, T::deepspeed, C::gathered_layers},
                    Case{"nccl", K::collective, T::nccl, C::collectives},
                    Case{"cublas", K::library_handle, T::torch, C::library_workspace},
                    Case{"jax", K::xla, T::xla, C::unknown},
                    Case{"kernel", K::host_killed, T::host, C::host_memory},
                    Case{"slurm", K::host_killed, T::host, C::host_memory},
                    Case{"tgi-warmup", K::prefill_warmup, T::tgi, C::activations},
                    Case{"torch-columns", K::allocation, T::torch, C::other_process},
                    Case{"shell-killed", K::host_killed, T::host, C::host_memory},
                    Case{"host-allocator", K::host_allocation, T::host, C::host_memory},
                    Case{"two-errors", K::kv_too_short, T::vllm, C::kv_cache}),
    [](const auto& param) {
      std::string name = param.param.file;
      for (char& c : name)
        if (c == '-') c = '_';
      return name;
    });

TEST(OomReader, ReadsTheFiguresOfBothTorchWordings) {
  // 1.x: reserved 22.30 less allocated 22.10 GiB.
  OomFigures old = of_file("torch-1").events.at(0).figures;
  EXPECT_DOUBLE_EQ(*old[F::tried], 250 * kMi);
  EXPECT_DOUBLE_EQ(*old[F::device_total], 23.70 * kGi);
  EXPECT_DOUBLE_EQ(*old[F::device_free], 80.56 * kMi);
  EXPECT_NEAR(*old[F::reserved_unallocated], 0.20 * kGi, 1);
  EXPECT_EQ(of_file("torch-1").events.at(0).device, "GPU 1");
  OomFigures now = of_file("torch-2").events.at(0).figures;
  EXPECT_DOUBLE_EQ(*now[F::tried], 15.66 * kGi);
  EXPECT_DOUBLE_EQ(*now[F::device_free], 9.02 * kGi);
  EXPECT_DOUBLE_EQ(*now[F::this_process], 70.12 * kGi);
  EXPECT_DOUBLE_EQ(*now[F::allocated], 68.90 * kGi);
  EXPECT_DOUBLE_EQ(*now[F::reserved_unallocated], 512.40 * kMi);
  EXPECT_TRUE(of_file("torch-2").events.at(0).training);
}

TEST(OomReader, ATrainersFramesSayThatItTrains) {
  const auto r = read_oom_log(
      "Traceback (most recent call last):\n"
      "  File \"/x/transformers/trainer.py\", line 2052, in train\n"
      "    return inner_training_loop(\n"
      "  File \"/x/transformers/trainer.py\", line 2388, in _inner_training_loop\n"
      "    tr_loss_step = self.step(model)\n"
      "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total "
      "capacity of 23.64 GiB of which 1.00 GiB is free.\n");
  ASSERT_FALSE(r.events.empty());
  EXPECT_TRUE(r.events.at(0).training);
}

TEST(OomReader, ASpellingMistakeOfOneReleaseIsRead) {
  auto r = read_oom_log(
      "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a "
      "total capacty of 39.39 GiB of which 1.50 GiB is free. Process 1 has 37.00 GiB memory in "
      "use. Of the allocated memory 36.00 GiB is allocated by PyTorch, and 0.50 GiB is reserved by "
      "PyTorch but unallocated.");
  ASSERT_EQ(r.events.size(), 1u);
  EXPECT_DOUBLE_EQ(*r.events[0].figures[F::device_total], 39.39 * kGi);
  // The one process listed holds what torch allocated: it is this one.
  EXPECT_DOUBLE_EQ(*r.events[0].figures[F::this_process], 37.00 * kGi);
  EXPECT_FALSE(r.events[0].figures[F::other_processes]);
  EXPECT_EQ(r.events[0].component, C::unknown);
}

TEST(OomReader, AMessageMayBeWrappedOverLines) {
  auto r = read_oom_log(
      "torch.OutOfMemoryError: CUDA out of memory.\nTried to allocate 20.00 MiB.\n"
      "GPU 0 has a total capacity of 15.51 GiB of which 149.62 MiB is free.\n");
  ASSERT_EQ(r.events.size(), 1u);
  EXPECT_DOUBLE_EQ(*r.events[0].figures[F::tried], 20 * kMi);
  EXPECT_DOUBLE_EQ(*r.events[0].figures[F::device_total], 15.51 * kGi);
}

TEST(OomReader, RanksThatFailAlikeAreOneErrorMetSeveralTimes) {
  std::string one =
      "[rank0]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.00 GiB. GPU 0 has "
      "a total capacity of 79.15 GiB of which 0.50 GiB is free.\n";
  auto r = read_oom_log(one + one + one);
  ASSERT_EQ(r.events.size(), 1u);
  EXPECT_EQ(r.events[0].times, 3);
}

TEST(OomReader, FreeBlocksThatWouldDoAreFragmentation) {
  const OomEvent e = of_file("torch-fragmented").events.at(0);
  EXPECT_EQ(e.asked_for, C::gradients);
  EXPECT_TRUE(e.training);
}

TEST(OomReader, BlocksOfGraphPoolsServeNothingElse) {
  auto r = read_oom_log(
      "CUDA out of memory. Tried to allocate 1.00 GiB. GPU 0 has a total capacity of 23.65 GiB of "
      "which 0.10 GiB is free. Including non-PyTorch memory, this process has 23.50 GiB memory in "
      "use. Of the allocated memory 20.00 GiB is allocated by PyTorch, with 2.00 GiB allocated in "
      "private pools (e.g., CUDA Graphs), and 2.50 GiB is reserved by PyTorch but unallocated.");
  EXPECT_EQ(r.events.at(0).component, C::unknown);
}

TEST(OomReader, ASizeOfRowsTimesVocabularyIsLogits) {
  // 8192 rows x 151936 words x 4 bytes = 4.64 GiB.
  auto r = read_oom_log(
      "args: max_num_batched_tokens=8192, vocab_size=151936\n"
      "CUDA out of memory. Tried to allocate 4.64 GiB. GPU 0 has a total capacity of 23.65 GiB of "
      "which 0.10 GiB is free.");
  EXPECT_EQ(r.events.at(0).component, C::logits);
}

TEST(OomReader, ReadsVllmsAccount) {
  OomFigures f = of_file("vllm-v0").events.at(0).figures;
  EXPECT_DOUBLE_EQ(*f[F::length_asked], 131072);
  EXPECT_DOUBLE_EQ(*f[F::length_fits], 41024);
  EXPECT_DOUBLE_EQ(*f[F::weights], 14.99 * kGi);
  EXPECT_DOUBLE_EQ(*f[F::device_total], 23.65 * kGi);
  EXPECT_DOUBLE_EQ(*f[F::fraction], 0.90);
  EXPECT_DOUBLE_EQ(*f[F::budget], 21.29 * kGi);
  f = of_file("vllm-v1-length").events.at(0).figures;
  EXPECT_DOUBLE_EQ(*f[F::length_fits], 5104);
  EXPECT_DOUBLE_EQ(*f[F::kv_needed], 10 * kGi);
  EXPECT_DOUBLE_EQ(*f[F::kv_available], 1.25 * kGi);
  f = of_file("vllm-start").events.at(0).figures;
  EXPECT_NEAR(*f[F::device_free], 3.25 * kGi, 1);
  EXPECT_DOUBLE_EQ(*f[F::fraction], 0.96);
  EXPECT_DOUBLE_EQ(*f[F::budget], 22.49 * kGi);
  f = of_file("vllm-no-blocks").events.at(0).figures;
  EXPECT_DOUBLE_EQ(*f[F::kv_available], -0.30 * kGi);
  EXPECT_DOUBLE_EQ(*f[F::batch_tokens], 8192);
}

TEST(OomReader, ReadsLlamaCppsBuffers) {
  const OomEvent e = of_file("llama-kv").events.at(0);
  EXPECT_DOUBLE_EQ(*e.figures[F::tried], 16384 * kMi);
  EXPECT_DOUBLE_EQ(*e.figures[F::weights], 7605.33 * kMi);  // of the card alone
  EXPECT_DOUBLE_EQ(*e.figures[F::context], 131072);
  EXPECT_DOUBLE_EQ(*e.figures[F::layers], 33);
  EXPECT_DOUBLE_EQ(*e.figures[F::device_free], 23000 * kMi);
  EXPECT_EQ(e.device, "CUDA0");
  EXPECT_EQ(of_file("llama-kv").events.size(), 1u);
  EXPECT_DOUBLE_EQ(*of_file("llama-json").events.at(0).figures[F::tried], 1879048192);
  EXPECT_DOUBLE_EQ(*of_file("llama-vulkan").events.at(0).figures[F::tried], 1058982400);
}

TEST(OomReader, TheFirstCauseIsFirstAndEndedProcessesFollow) {
  const OomReport r = of_file("two-errors");
  ASSERT_EQ(r.events.size(), 2u);
  EXPECT_EQ(r.events[0].line, 1);
  EXPECT_EQ(r.events[1].kind, K::collective);
}

TEST(OomReader, ReadsDeepSpeedsTable) {
  const OomReport r = of_file("deepspeed-estimate");
  EXPECT_TRUE(r.events.empty());
  ASSERT_EQ(r.estimates.size(), 3u);
  EXPECT_DOUBLE_EQ(r.estimates[0].host_bytes, 169.44 * kGi);
  EXPECT_DOUBLE_EQ(r.estimates[2].card_bytes, 28.73 * kGi);
  EXPECT_EQ(r.estimates[0].options, "offload_param=cpu, offload_optimizer=cpu, zero_init=1");
}

TEST(OomReader, OtherTextHoldsNothing) {
  EXPECT_TRUE(of_file("none").events.empty());
  for (const char* text :
       {"", "\n", "Killed by the user", "except torch.cuda.OutOfMemoryError:",
        "except MemoryError:", "memory usage: 12 GiB", "free memory 3.2/23.4 GiB",
        "increase --mem-fraction-static", "ncclUnhandledCudaError: Call to CUDA function failed.",
        "RuntimeError: CUDA error: device-side assert triggered"})
    EXPECT_TRUE(read_oom_log(text).events.empty()) << text;
}

TEST(OomReader, LongAndHostileTextsEndSoon) {
  std::string text(1 << 20, 'x');
  text += "\nCUDA out of memory. Tried to allocate 99999999999999999999999999999999 GiB.\n";
  for (int i = 0; i < 20000; ++i) text += "emory alloc File \"a\", line 1, in f\n";
  EXPECT_EQ(read_oom_log(text).events.size(), 1u);
  EXPECT_TRUE(read_oom_log(std::string(1 << 20, '\0')).events.empty());
  std::string many;
  for (int i = 0; i < 1000; ++i)
    many += "Process 1 has 1 GiB memory in use. CUDA out of memory. Tried to allocate 1 MiB\n";
  EXPECT_LE(read_oom_log(many).events.size(), 64u);
}

TEST(OomText, ReadsNumbersAsLogsWriteThem) {
  EXPECT_EQ(leading_number(" (40,960)"), 40960);
  EXPECT_EQ(leading_number("-0.5 GiB"), -0.5);
  EXPECT_EQ(leading_number("12, 13"), 12);
  EXPECT_FALSE(leading_number("x1"));
  EXPECT_EQ(leading_size("1.5GiB"), 1.5 * kGi);
  EXPECT_EQ(leading_size("0 bytes free"), 0);
  EXPECT_FALSE(leading_size("12 tokens"));
  EXPECT_EQ(size_before("9.58 GiB already allocated", " already"), 9.58 * kGi);
  EXPECT_FALSE(size_before(" already", " already"));
}

}  // namespace
}  // namespace trigon
