// Rows of operators, collectives and products: what is asked, and what is refused.

#include <gtest/gtest.h>

#include "cost/test_devices.hpp"
#include "evidence/fake_names_test.hpp"

namespace trigon {
namespace {

const char* kOps =
    "id,source,gpu,op,dtype,shape,num_gpus,latency_ms,achieved_tflops,achieved_GBps,"
    "kernel_or_framework,trust\n";
const char* kComm =
    "id,source,gpu,collective,n_gpus,nodes,intra_link,inter_link,payload_bytes,busbw_gbps,algo,"
    "tool,trust\n";
const char* kMatmul = "id,source,gpu,precision,achieved_tflops,shape_mnk,kind,trust\n";

class TimedRows : public testing::Test {
 protected:
  CaseOrRefusal read(const char* header, const std::string& line) {
    table = table_of(header + line + "\n");
    return read_case(*detect_schema(table), Row(table, table.rows[0]), world.names());
  }
  Case accepted(const char* header, const std::string& line) {
    auto c = read(header, line);
    if (const auto* r = std::get_if<Refusal>(&c)) {
      ADD_FAILURE() << refusal_name(r->reason) << " " << r->subject;
      Case none;
      none.timed.emplace();
      return none;
    }
    return std::get<Case>(std::move(c));
  }
  RefusalReason refused(const char* header, const std::string& line) {
    auto c = read(header, line);
    const auto* r = std::get_if<Refusal>(&c);
    return r ? r->reason : RefusalReason::count_;
  }
  FakeWorld world;
  CsvTable table;
};

TEST_F(TimedRows, MillisecondsOfAProduct) {
  const Case c = accepted(kOps, "o1,s,A,gemm,fp8,m=8;n=4096;k=4096,1,0.02,,,x,");
  ASSERT_EQ(c.timed->operators.size(), 1u);
  EXPECT_NEAR(c.measured, 2e-5, 1e-15);
  EXPECT_EQ(c.timed->figure, TimedCase::Figure::seconds);
}

TEST_F(TimedRows, OneShotCallsOutsideOfAGraph) {
  const char* eager = "o1,s,A,custom_all_reduce,bf16,bytes=4096,8,0.02,,,vllm_eager,";
  const char* graph = "o1,s,A,custom_all_reduce,bf16,bytes=4096,8,0.02,,,vllm_graph,";
  EXPECT_TRUE(accepted(kOps, eager).timed->host_launched);
  EXPECT_FALSE(accepted(kOps, graph).timed->host_launched);
  EXPECT_EQ(accepted(kOps, graph).timed->kernels, CollectiveKernels::one_shot);
  const Case nccl = accepted(kOps, "o1,s,A,nccl_alltoall,half,bytes=4096,8,0.02,,,x,");
  EXPECT_EQ(nccl.timed->collective, Collective::all_to_all);
  EXPECT_EQ(nccl.timed->kernels, CollectiveKernels::library);
  EXPECT_EQ(nccl.timed->ranks, 8);
}

TEST_F(TimedRows, TokensOnTheirWayToExperts) {
  const Case c = accepted(
      kOps,
      "o1,s,A,deepep_dispatch_low_latency,fp8,tokens=8;hidden=7168;topk=8;experts=256,8,0.02,,,"
      "deepep,");
  ASSERT_TRUE(c.timed->exchange);
  EXPECT_EQ(c.timed->exchange->kind, ExchangeKind::dispatch_low_latency);
  EXPECT_EQ(c.timed->exchange->ranks, 8);
  EXPECT_NEAR(c.measured, 2e-5, 1e-15);
  EXPECT_EQ(refused(kOps, "o1,s,A,deepep_dispatch,fp8,tokens=8,8,0.02,,,deepep,"),
            RefusalReason::input_missing);
}

TEST_F(TimedRows, WhatIsNotModelledIsRefused) {
  EXPECT_EQ(refused(kOps, "o1,s,A,flagperf_benchmarks_interconnect-h2d,h2d,,1,,,7,x,"),
            RefusalReason::method_not_supported);
  EXPECT_EQ(refused(kOps, "o1,s,A,fft,fp32,n=8,1,1,,,x,"), RefusalReason::method_not_supported);
  EXPECT_EQ(refused(kOps, "o1,s,A,nccl_all_reduce,half,,8,1,,,x,"), RefusalReason::input_missing);
  EXPECT_EQ(refused(kOps, "o1,s,Z,gemm,fp8,m=8;n=8;k=8,1,1,,,x,"), RefusalReason::hardware_unknown);
  EXPECT_EQ(refused(kOps, "o1,s,A,gemm,fp8,m=8;n=8;k=8,1,1,,,x,exclude"), RefusalReason::doubtful);
  EXPECT_EQ(refused(kComm, "c1,s,A,P2P_intraserver,2,1,,,1024,5,,,"),
            RefusalReason::method_not_supported);
  EXPECT_EQ(refused(kComm, "c1,s,A,all_reduce,,1,,,1024,5,,,"), RefusalReason::input_missing);
  EXPECT_EQ(refused(kMatmul, "m1,s,A,fp64,17.8,,,"), RefusalReason::format_unknown);
}

TEST_F(TimedRows, BusBandwidthOfACollective) {
  Case c = accepted(kComm, "c1,s,A,all_reduce,8,1,,,1000000000,100,Ring (NVLS off),nccl-tests,");
  EXPECT_EQ(c.measured, 100e9);
  EXPECT_EQ(c.timed->kernels, CollectiveKernels::library_rings);
  EXPECT_FALSE(c.timed->host_launched);
  EXPECT_TRUE(accepted(kComm, "c1,s,A,all_reduce,8,1,,,32768,1,NVLS,all_reduce_bench.py,")
                  .timed->host_launched);
  EXPECT_EQ(accepted(kComm, "c1,s,A,all_reduce,8,1,,,,476,,nccl-tests,").timed->payload,
            8589934592.0);
}

TEST_F(TimedRows, TheMostOverShapesIsNoLessThanALargeSquare) {
  const Case c = accepted(kMatmul, "m1,s,A,fp8,1400,1024x9216x14336,max over shapes (MAMF),");
  EXPECT_TRUE(c.timed->best_shape);
  EXPECT_EQ(c.timed->at_peak_of, MathClass::fp8);
  EXPECT_EQ(c.timed->operators.size(), 2u);
  EXPECT_EQ(c.timed->work, 2.0 * 1024 * 9216 * 14336);
  EXPECT_FALSE(accepted(kMatmul, "m1,s,A,bf16,700,4096x4096x4096,sweep,").timed->best_shape);
}

TEST(HostLaunched, EnginesCopyFirstAndWaitForTheLaunch) {
  const Accelerator card = test::round_card();
  DeviceModel d = test::round_device(card);
  d.intra.c.host_launch_seconds = 20e-6;
  // 1 GB is read and written at 1 TB/s.
  EXPECT_NEAR(host_launched(d, 10e-3, 1e9, CollectiveKernels::one_shot), 12e-3, 1e-9);
  EXPECT_NEAR(host_launched(d, 5e-6, 1024, CollectiveKernels::one_shot), 20e-6, 1e-9);
  EXPECT_NEAR(host_launched(d, 5e-6, 1024, CollectiveKernels::library), 25e-6, 1e-9);
}

}  // namespace
}  // namespace trigon
