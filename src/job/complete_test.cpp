#include "job/complete.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "job/messages.hpp"

namespace trigon {
namespace {

Model model_with(std::optional<std::int64_t> context) {
  Stack s;
  s.hidden = 64;
  s.vocabulary = 1000;
  s.max_context = context;
  Linear e;
  e.in = 1000;
  e.out = 64;
  s.embedding = e;
  Model m;
  m.id = "small";
  m.components = {{"language model", ComponentRole::language_model, s}};
  return m;
}

bool assumed(const CompleteJob& j, JobMessage id) {
  for (const Assumption& a : j.assumptions)
    if (a.what.id == message_id(id)) return true;
  return false;
}

TEST(Complete, ServeNeverTakesTheWholeContext) {
  auto j = complete({}, model_with(131072));
  ASSERT_TRUE(j);
  const Serve& s = std::get<Serve>(j->job);
  EXPECT_EQ(s.input_tokens, 1024);
  EXPECT_EQ(s.output_tokens, 256);
  EXPECT_EQ(s.concurrency, 1);
  EXPECT_TRUE(assumed(*j, JobMessage::input_assumed));
  EXPECT_TRUE(assumed(*j, JobMessage::concurrency_assumed));
}

TEST(Complete, ContextIsSplitAndLimited) {
  JobRequest r;
  r.context = 32768;
  auto j = complete(r, model_with(131072));
  ASSERT_TRUE(j);
  EXPECT_EQ(std::get<Serve>(j->job).input_tokens + std::get<Serve>(j->job).output_tokens, 32768);
  auto beyond = complete(r, model_with(8192));
  ASSERT_FALSE(beyond);
  EXPECT_EQ(beyond.error().what.id, message_id(JobMessage::context_beyond_model));
  ASSERT_TRUE(beyond.error().hint);
  EXPECT_EQ(std::get<std::int64_t>(beyond.error().hint->args[0]), 8192);
  r.output_tokens = 40000;
  EXPECT_FALSE(complete(r, model_with(131072)));
  r.output_tokens = 768;
  j = complete(r, model_with(131072));
  ASSERT_TRUE(j);
  EXPECT_EQ(std::get<Serve>(j->job).input_tokens, 32000);
}

TEST(Complete, ShortModelsShortenWhatIsAssumed) {
  auto j = complete({}, model_with(512));
  ASSERT_TRUE(j);
  EXPECT_EQ(std::get<Serve>(j->job).input_tokens + std::get<Serve>(j->job).output_tokens, 512);
}

TEST(Complete, EncodersReadAndDoNotWrite) {
  Model m = model_with(512);
  Component& c = m.components.front();
  c.role = ComponentRole::encoder;
  std::get<Stack>(c.body).generates = false;
  auto j = complete({}, m);
  ASSERT_TRUE(j);
  EXPECT_EQ(std::get<Serve>(j->job).input_tokens, 512);
  EXPECT_EQ(std::get<Serve>(j->job).output_tokens, 0);
  EXPECT_TRUE(assumed(*j, JobMessage::input_is_model_context));
  JobRequest r;
  r.output_tokens = 5;
  EXPECT_EQ(complete(r, m).error().what.id, message_id(JobMessage::not_for_task));
  JobRequest longer;
  longer.input_tokens = 513;
  EXPECT_EQ(complete(longer, m).error().what.id, message_id(JobMessage::context_beyond_model));
}

TEST(Complete, ADecoderBehindAnEncoderHasLengthsOfItsOwn) {
  Model m = model_with(448);
  Stack encoder;
  encoder.generates = false;
  encoder.max_context = encoder.fixed_length = 1500;
  m.components.push_back({"encoder", ComponentRole::encoder, encoder});
  JobRequest r;
  r.output_tokens = 448;
  auto j = complete(r, m);
  ASSERT_TRUE(j);
  EXPECT_EQ(std::get<Serve>(j->job).input_tokens, 1500);
  EXPECT_TRUE(assumed(*j, JobMessage::input_is_padded));
  r.output_tokens = 449;
  EXPECT_FALSE(complete(r, m));
  JobRequest t;
  t.kind = JobKind::train;
  j = complete(t, m);
  ASSERT_TRUE(j);
  EXPECT_EQ(std::get<Train>(j->job).sequence, 448);
}

TEST(Complete, RefusesWhatContradicts) {
  JobRequest r;
  r.rate = PerSecond::base(2);
  r.concurrency = 4;
  EXPECT_EQ(complete(r, model_with({})).error().what.id, message_id(JobMessage::both_given));
  JobRequest t;
  t.kind = JobKind::train;
  t.rate = PerSecond::base(2);
  EXPECT_EQ(complete(t, model_with({})).error().what.id, message_id(JobMessage::not_for_task));
  JobRequest f;
  f.kind = JobKind::finetune;
  f.method = TuneMethod::full;
  f.rank = 8;
  EXPECT_FALSE(complete(f, model_with({})));
}

TEST(Complete, RefusesValuesOutOfRange) {
  for (double bad : {0.0, -1.0, std::numeric_limits<double>::quiet_NaN(),
                     std::numeric_limits<double>::infinity()}) {
    JobRequest r;
    r.concurrency = bad;
    EXPECT_FALSE(complete(r, model_with({}))) << bad;
    JobRequest t;
    t.kind = JobKind::train;
    t.tokens = bad;
    EXPECT_FALSE(complete(t, model_with({}))) << bad;
    JobRequest l;
    l.limits.ttft = LatencyLimit{seconds(bad), 95};
    EXPECT_FALSE(complete(l, model_with({}))) << bad;
  }
  JobRequest r;
  r.input_tokens = std::numeric_limits<std::int64_t>::max();
  r.output_tokens = std::numeric_limits<std::int64_t>::max();
  EXPECT_FALSE(complete(r, model_with({})));
  r.input_tokens = -5;
  EXPECT_FALSE(complete(r, model_with({})));
}

TEST(Complete, TokensOfTraining) {
  JobRequest r;
  r.kind = JobKind::train;
  auto j = complete(r, model_with(2048));
  ASSERT_TRUE(j);
  EXPECT_EQ(std::get<Train>(j->job).tokens, 20 * 64000.0);
  EXPECT_EQ(std::get<Train>(j->job).sequence, 2048);
  EXPECT_EQ(std::get<Train>(j->job).global_batch, 2048);
  EXPECT_TRUE(assumed(*j, JobMessage::sequence_is_model_context));
  r.samples = 1000;
  r.epochs = 2;
  r.sequence = 512;
  j = complete(r, model_with(2048));
  ASSERT_TRUE(j);
  EXPECT_EQ(std::get<Train>(j->job).tokens, 1000 * 2 * 512.0);
  r.tokens = 1e9;
  EXPECT_FALSE(complete(r, model_with(2048)));
}

TEST(Complete, FineTuneDefaults) {
  JobRequest r;
  r.kind = JobKind::finetune;
  r.method = TuneMethod::qlora;
  auto j = complete(r, model_with(8192));
  ASSERT_TRUE(j);
  const FineTune& f = std::get<FineTune>(j->job);
  EXPECT_EQ(f.rank, 16);
  EXPECT_EQ(f.global_batch, 16);
  EXPECT_EQ(f.tokens, 52002.0 * 3 * 2048);
}

// A network of images: one projection, and an attention that reads it where `attends`.
Model images(bool attends) {
  Graph g;
  g.values = {{{4, 8}}, {{4, 8}}, {{4, 8}}};
  g.nodes = {{"in", Projection{}, {0}, {1}, {}}};
  if (attends) g.nodes.push_back({"core", AttentionCore{}, {1, 1, 1}, {2}, {}});
  Model m;
  m.id = "network";
  m.item = Item{WorkUnit::image, {8, 8}, 1};
  m.components = {
      {"denoiser", ComponentRole::denoiser, g, Runs::once, 1, true, Component::Training::trained}};
  return m;
}

TEST(Complete, AdaptersOnImagesStandOnAttention) {
  JobRequest r;
  r.kind = JobKind::finetune;
  auto j = complete(r, images(true));
  ASSERT_TRUE(j);
  EXPECT_EQ(std::get<FineTune>(j->job).method, TuneMethod::full);
  r.method = TuneMethod::lora;
  j = complete(r, images(true));
  ASSERT_TRUE(j);
  EXPECT_EQ(std::get<FineTune>(j->job).rank, 16);
  EXPECT_EQ(std::get<FineTune>(j->job).targets, kAttentionProjections);
  EXPECT_TRUE(assumed(*j, JobMessage::attention_adapted));
  auto bare = complete(r, images(false));
  ASSERT_FALSE(bare);
  EXPECT_EQ(bare.error().what.id, message_id(JobMessage::nothing_to_adapt));
  r.targets = kAllLinears;
  EXPECT_FALSE(complete(r, images(true)));
  r.targets = kQueryValue;
  EXPECT_TRUE(complete(r, images(true)));
  r.method = TuneMethod::qlora;
  EXPECT_FALSE(complete(r, images(true)));
  r.method = TuneMethod::full;
  r.targets.reset();
  r.rank = 8;
  EXPECT_FALSE(complete(r, images(true)));
}

}  // namespace
}  // namespace trigon
