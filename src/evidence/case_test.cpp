#include "evidence/case.hpp"

#include <gtest/gtest.h>

#include "evidence/fake_names_test.hpp"
#include "evidence/resolve.hpp"

namespace trigon {
namespace {

const char* kInfer =
    "id,source,date,gpu,n_gpus,model,weight_format,kv_format,engine,engine_version,tp,pp,input_len,"
    "output_len,batch_or_concurrency,request_rate,metric,stat,value,depth,span,trust,tuned\n";
const char* kTrain =
    "id,source,date,gpu,n_gpus,gpus_per_node,model,layers,hidden,heads,params_b,vocab,precision,"
    "framework,method,tp,pp,dp,zero_stage,seq_len,global_batch,micro_batch,recompute,metric,value,"
    "flops,notes\n";
const char* kMemory =
    "id,source,date,gpu,n_gpus,model,weight_format,task,engine,tp,context_len,batch,component,"
    "value,"
    "unit,span,measure,notes\n";

class Cases : public testing::Test {
 protected:
  FakeWorld world;

  CaseOrRefusal read(const char* header, const std::string& line) {
    table = table_of(header + line + "\n");
    return read_case(*detect_schema(table), Row(table, table.rows[0]), world.names());
  }
  Case accepted(const char* header, const std::string& line) {
    auto c = read(header, line);
    if (const auto* r = std::get_if<Refusal>(&c)) {
      ADD_FAILURE() << refusal_name(r->reason) << " " << r->subject;
      return {};
    }
    return std::get<Case>(std::move(c));
  }
  RefusalReason refused(const char* header, const std::string& line) {
    auto c = read(header, line);
    if (const auto* r = std::get_if<Refusal>(&c)) return r->reason;
    ADD_FAILURE() << "accepted: " << line;
    return RefusalReason::count_;
  }
  CsvTable table;
};

TEST_F(Cases, DecodeAfterADepthLooksAtOneStep) {
  const Case c = accepted(kInfer,
                          "1,s,2024,A,1,tiny,bf16,,e,1,1,1,,128,1,,decode_tok_s_per_user,"
                          "mean,50,4096,,,");
  EXPECT_EQ(c.question.job.input_tokens, 4096);
  EXPECT_EQ(c.question.job.output_tokens, 128);
  EXPECT_EQ(c.question.engine, "e@1");
  EXPECT_EQ(c.readout.kind, Readout::Kind::reciprocal);
  EXPECT_EQ(c.readout.metric, Metric::decode_step_seconds);
  EXPECT_EQ(c.question.plan.weights, Format::bf16);
}

TEST_F(Cases, StaticBatchCountsItsPrompts) {
  const Case c = accepted(kInfer,
                          "1,s,2024,A,2,tiny,,,e,1,2,1,100,20,8,,output_tok_s_total,mean,50,,"
                          "static_batch,,");
  // Prompts take 8 * 100 / 2 s, the other 19 tokens 2 s each: 160 tokens in 438 s.
  const auto e = read_out(c.readout, flat_answer(2));
  ASSERT_TRUE(e);
  EXPECT_DOUBLE_EQ(e->value, 8 * 20 / (8 * 100 / 2.0 + 19 * 2));
  EXPECT_LT(e->low, e->value);
  EXPECT_GT(e->high, e->value);
}

TEST_F(Cases, PromptChunksBehindADepthAreADifference) {
  const Case c =
      accepted(kInfer, "1,s,2024,A,1,tiny,,,e,1,1,1,512,,1,,prefill_tok_s,mean,50,1024,,,");
  EXPECT_EQ(c.question.job.input_tokens, 1536);
  ASSERT_TRUE(c.before);
  EXPECT_EQ(c.before->job.input_tokens, 1024);
}

TEST_F(Cases, LoadedTailsAndQueuesNeedASimulation) {
  for (const char* line : {"1,s,,A,1,tiny,,,e,1,1,1,100,20,8,,ttft_ms,mean,50,,,,",
                           "1,s,,A,1,tiny,,,e,1,1,1,100,20,1,,ttft_ms,p99,50,,,,",
                           "1,s,,A,1,tiny,,,e,1,1,1,100,20,,4.0,tpot_ms,mean,50,,,,",
                           // Several requests on a server, or all at once.
                           "1,s,,A,1,tiny,,,e,1,1,1,100,20,8,,output_tok_s_total,mean,50,,,,",
                           "1,s,,A,1,tiny,,,e,1,1,1,100,20,,,req_s,mean,50,,,,",
                           // Load is told before an unknown card or engine.
                           "1,s,,Z,1,tiny,,,unknown,1,1,1,100,20,,4.0,req_s,mean,50,,,,"})
    EXPECT_EQ(refused(kInfer, line), RefusalReason::needs_simulation) << line;
  EXPECT_TRUE(out_of_scope(RefusalReason::needs_simulation));
  EXPECT_FALSE(out_of_scope(RefusalReason::engine_unknown));
}

TEST_F(Cases, PromptsOfABatchCountTogether) {
  Case c = accepted(kInfer, "1,s,2024,A,1,tiny,,,e,1,1,1,64,,8,,prefill_tok_s,mean,50,,,,");
  EXPECT_EQ(c.question.plan.micro_batch, 8);
  EXPECT_DOUBLE_EQ(c.readout.scale, 8 * 64);
  EXPECT_EQ(c.readout.metric, Metric::prefill_seconds);
  // The first pass of a process pays what a request pays once.
  c = accepted(kInfer, "1,s,2024,A,1,tiny,,,e,1,1,1,64,,8,,prefill_tok_s,mean,50,,first,,");
  EXPECT_EQ(c.readout.metric, Metric::ttft_seconds);
}

TEST_F(Cases, MixedPrecisionAndLayoutOfNetworks) {
  auto network = std::make_shared<Model>();
  network->item = Item{};
  world.model = network;
  std::string header = kInfer;
  header.insert(header.size() - 1, ",layout");
  const Case amp = accepted(header.c_str(),
                            "1,s,2024,A,1,tiny,bf16-amp,,e,1,,,224,,64,,req_s,mean,500,,,,,"
                            "channels_last");
  EXPECT_EQ(amp.question.plan.weights, Format::f32);
  EXPECT_EQ(amp.question.plan.activations, Format::bf16);
  EXPECT_EQ(amp.question.plan.channels_first, false);
  const Case half =
      accepted(header.c_str(), "1,s,2024,A,1,tiny,fp16,,e,1,,,224,,64,,req_s,mean,500,,,,,");
  EXPECT_EQ(half.question.plan.weights, Format::f16);
  EXPECT_FALSE(half.question.plan.activations);
  EXPECT_FALSE(half.question.plan.channels_first);
  // What is counted by the second is shared by the cards; a query that is timed goes to one.
  const Case rate =
      accepted(header.c_str(), "1,s,2024,A,2,tiny,fp16,,e,1,,,224,,8,,req_s,mean,500,,,,,");
  const Case query =
      accepted(header.c_str(), "1,s,2024,A,2,tiny,fp16,,e,1,,,224,,8,,e2e_ms,mean,5,,,,,");
  EXPECT_EQ(query.question.plan.micro_batch, 8);
  EXPECT_EQ(rate.question.plan.micro_batch.value_or(0) * rate.question.plan.data.value_or(1), 8);
}

TEST_F(Cases, EncodersUnderAutocastStoreThirtyTwoBit) {
  auto encoder = std::make_shared<Model>(*world.model);
  for (Component& c : encoder->components)
    if (auto* stack = std::get_if<Stack>(&c.body)) stack->generates = false;
  world.model = encoder;
  const Case c = accepted(kInfer, "1,s,2024,A,1,tiny,fp16-amp,,e,1,,,128,4,1,,e2e_ms,mean,5,,,,");
  EXPECT_EQ(c.question.plan.weights, Format::f32);
  EXPECT_EQ(c.question.plan.activations, Format::f16);
}

TEST_F(Cases, EncodersInEightBitSayWhatTheyMove) {
  auto encoder = std::make_shared<Model>(*world.model);
  for (Component& c : encoder->components)
    if (auto* stack = std::get_if<Stack>(&c.body)) stack->generates = false;
  auto moved = [&](const std::string& format) {
    return accepted(kInfer, "1,s,2024,A,1,tiny," + format + ",,e,1,,,128,4,1,,e2e_ms,mean,5,,,,")
        .question.plan.activations;
  };
  EXPECT_FALSE(moved("int8"));  // a language model's may be weight-only
  world.model = encoder;
  EXPECT_EQ(moved("int8"), Format::int8);
  EXPECT_EQ(moved("int8-v1"), Format::f16);
  EXPECT_FALSE(moved("fp16"));
}

TEST_F(Cases, MissingCardsAreNotOne) {
  EXPECT_EQ(refused(kInfer, "1,s,,A,,tiny,,,e,1,,,100,20,,,output_tok_s_total,max,50,,,,1"),
            RefusalReason::input_missing);
}

TEST_F(Cases, TunedRowsLeaveThePlanOpen) {
  const Case c = accepted(kInfer, "1,s,,A,8,tiny,,,e,1,,,100,20,,,output_tok_s_total,max,50,,,,1");
  EXPECT_TRUE(c.tuned);
  EXPECT_FALSE(c.question.plan.tensor || c.question.plan.data);
  EXPECT_EQ(c.question.job.kind, JobKind::batch);
}

TEST_F(Cases, EachRefusalHasItsReason) {
  const std::string tail = ",e,1,1,1,100,20,1,,output_tok_s_total,mean,50,,,,";
  EXPECT_EQ(refused(kInfer, "1,s,,A,1,resnet50,," + tail),
            RefusalReason::network_outside_catalogue);
  EXPECT_EQ(refused(kInfer, "1,s,,Z,1,tiny,," + tail), RefusalReason::hardware_unknown);
  EXPECT_EQ(refused(kInfer, "1,s,,A,1,tiny,W4A4," + tail), RefusalReason::format_unknown);
  EXPECT_EQ(
      refused(kInfer, "1,s,,A,1,tiny,,,unknown,1,1,1,100,20,1,,output_tok_s_total,mean,50,,,,"),
      RefusalReason::engine_unknown);
  EXPECT_EQ(refused(kInfer, "1,s,,A,1,tiny,,,e,1,1,1,1,2,1,,req_s,mean,50,,,exclude,"),
            RefusalReason::doubtful);
  EXPECT_EQ(refused(kInfer, "1,s,,A,1,tiny,,,e,1,1,1,1,2,1,,req_s,mean,-1,,,,"),
            RefusalReason::bad_value);
}

TEST_F(Cases, AmbiguousCardsAreAllKept) {
  const Case c = accepted(kInfer, "1,s,,A or B,1,tiny,,,e,1,1,1,100,20,1,,req_s,mean,50,,,,");
  EXPECT_EQ(c.hardware.size(), 2u);
}

TEST_F(Cases, NarrowTrainingNarrowsProductsAlone) {
  for (const auto& [word, format] :
       {std::pair{"fp8", Format::fp8_tensor}, std::pair{"mxfp8", Format::mxfp8},
        std::pair{"nvfp4", Format::nvfp4}}) {
    const Case c =
        accepted(kTrain, "1,s,2024,A,8,8,gpt-like,12,768,12,,50304," + std::string(word) +
                             ",Megatron-LM,full,1,1,8,,1024,64,8,,step_s,0.5,,");
    EXPECT_EQ(c.question.plan.weights, format);
    EXPECT_FALSE(c.question.plan.activations);
  }
  const Case c = accepted(kTrain,
                          "1,s,2024,A,8,8,gpt-like,12,768,12,,50304,bf16,Megatron-LM,full,1,"
                          "1,8,,1024,64,8,,step_s,0.5,,");
  EXPECT_FALSE(c.question.plan.weights);
  EXPECT_EQ(c.question.plan.activations, Format::bf16);
}

TEST_F(Cases, ModelsAreBuiltFromTheirDimensions) {
  const Case c = accepted(kTrain,
                          "1,s,2024,A,8,8,gpt-like,12,768,12,,50304,fp16,Megatron-LM,full,1,"
                          "1,8,,1024,64,8,,step_s,0.5,,");
  const ParameterCount n = count_parameters(*c.model);
  // GPT-2 small: 12 layers of 12 h^2 + 13 h, embeddings of 50,304 tokens and 1,024 places, one
  // last norm.
  EXPECT_EQ(n.total, 12 * (12 * 768 * 768 + 13 * 768) + (50304 + 1024) * 768 + 2 * 768);
  EXPECT_EQ(c.question.job.global_batch, 64);
}

TEST_F(Cases, TrainingReadsTheClockWhereFlopsAreDisputed) {
  const Case c = accepted(kTrain,
                          "1,s,2022,A,8,8,tiny,,,,,,bf16,Megatron-DeepSpeed,full,1,1,8,1,"
                          "2048,64,1,full,tflops_per_gpu,100,,some prose;sec_per_it=2.5");
  EXPECT_EQ(c.readout.metric, Metric::step_seconds);
  EXPECT_EQ(c.measured, 2.5);
}

TEST_F(Cases, FlopsAreRecountedAsTheRowCountsThem) {
  const Case c = accepted(kTrain,
                          "1,s,2022,A,8,8,tiny,,,,,,bf16,MaxText,full,1,1,8,,2048,64,1,,"
                          "tflops_per_gpu,100,model_full_attention,");
  EXPECT_EQ(c.readout.metric, Metric::tokens_per_second_per_gpu);
  const double parameters = static_cast<double>(count_parameters(*world.model).total);
  EXPECT_DOUBLE_EQ(c.readout.scale, 6 * parameters + 12.0 * 2 * 64 * 2048);
  EXPECT_EQ(c.measured, 100e12);
}

TEST_F(Cases, FrameworkVersionsAndDatesAreToldApart) {
  const std::string rest = ",full,1,1,8,,2048,64,1,,tokens_per_s_per_gpu,100,,";
  EXPECT_EQ(
      accepted(kTrain, "1,s,2026,A,8,8,tiny,,,,,,bf16,bridge 26.04.01" + rest).question.engine,
      "bridge@26.04.01");
  const Case c = accepted(kTrain, "1,s,2026,A,8,8,tiny,,,,,,bf16,torchtitan 2024-12" + rest);
  EXPECT_EQ(c.question.engine, "torchtitan");
  EXPECT_EQ(c.question.engine_date, "2024-12");
}

TEST_F(Cases, MemoryUnitsAndSpans) {
  Case c = accepted(kMemory,
                    "1,s,,A,2,tiny,gguf:Q8_0,infer,llama.cpp,,4096,1,weights,2,GiB,"
                    "device_total,,");
  EXPECT_EQ(c.measured, 2 * kGi);
  EXPECT_TRUE(c.readout.over_ranks);
  c = accepted(kMemory, "1,s,,A,1,tiny,bf16,train-full,hf,,512,4,peak_total,9,GB,rank,allocated,");
  EXPECT_EQ(c.measured, 9e9);
  EstimateAnswer answer = flat_answer(1);
  answer.report.memory[MemoryTerm::weights] = 5;
  answer.report.memory[MemoryTerm::context] = 100;  // the allocator does not see it
  EXPECT_EQ(read_out(c.readout, answer)->value, 5);
}

TEST_F(Cases, PoolsNeedTheirCardButWeightsDoNot) {
  EXPECT_EQ(refused(kMemory, "1,s,,,1,tiny,,infer,vllm,1,4096,1,kv_cache,2,GiB,,,"),
            RefusalReason::hardware_not_stated);
  const Case c = accepted(kMemory, "1,s,,,1,tiny,,infer,vllm,1,,1,weights,2,GiB,,,");
  EXPECT_EQ(c.hardware.front().accelerator, &world.b);
}

TEST_F(Cases, MegatronFlagsAreColumns) {
  const std::string header =
      "id,source,date,gpu,n_gpus,model,layers,hidden,heads,vocab,weight_format,task,engine,tp,pp,"
      "context_len,source_len,batch,component,value,unit,span,fa,dropout,deterministic,etp,"
      "optimizer_groups,recompute_modules,trust\n";
  const std::string rest = ",12,512,8,50257,bf16,train-full,megatron-lm,2,2,";
  const std::string tail = ",4,peak_total,2,GiB,last_stage,0,1,1,1,2,layernorm moe_act,";
  const Case c = accepted(header.c_str(), "1,s,,A,8,gpt:tests" + rest + "1024," + tail);
  EXPECT_TRUE(c.readout.last_stage);
  const PlanRequest& p = c.question.plan;
  EXPECT_EQ(p.flash_attention, false);
  EXPECT_EQ(p.dropout, true);
  EXPECT_EQ(p.deterministic, true);
  EXPECT_EQ(p.expert_tensor, 1);
  EXPECT_EQ(p.optimizer_groups, 2);
  ASSERT_TRUE(p.recompute_modules);
  EXPECT_TRUE(p.recompute_modules->norms && p.recompute_modules->expert_activation);
  EXPECT_FALSE(p.recompute_modules->attention || p.recompute_modules->mlp);
  EstimateAnswer answer = flat_answer(1);
  answer.report.memory[MemoryTerm::weights] = 7;
  answer.report.stages.resize(2);
  answer.report.stages[1][MemoryTerm::weights] = 5;
  EXPECT_EQ(read_out(c.readout, answer)->value, 5);

  // A layer of BERT beside its decoder's namesake: two dense matrices, two token types.
  const Case bert = accepted(header.c_str(), "1,s,,A,8,bert:tests" + rest + "1024," + tail);
  EXPECT_EQ(count_parameters(*bert.model).total - count_parameters(*c.model).total,
            2 * (512 * 512 + 512) + 2 * 512 + 2 * 512);
  // T5's sides: twelve layers each, cross-attention and one more norm in the decoder's.
  const Case t5 = accepted(header.c_str(), "1,s,,A,8,t5:tests" + rest + "128,512" + tail);
  EXPECT_EQ(t5.question.job.input_tokens, 512);
  EXPECT_GT(count_parameters(*t5.model).total, count_parameters(*c.model).total);
}

TEST(Formats, AsSourcesWriteThem) {
  EXPECT_EQ(format_of("gguf:Q4_K_M@4.89bpw"), Format::q4_k);
  EXPECT_EQ(format_of("gguf:IQ3_K_R4@3.847bpw"), Format::iq3_k);
  EXPECT_EQ(format_of("int4-awq"), Format::int4_g128);
  EXPECT_EQ(format_of("FP16"), Format::f16);
  EXPECT_EQ(format_of("nf4-dq"), Format::nf4_double);
  EXPECT_FALSE(format_of("gguf:mix"));
  EXPECT_FALSE(format_of("fp8,fp16,int8"));
}

}  // namespace
}  // namespace trigon
