#include <gtest/gtest.h>

#include "network/network_testing.hpp"

namespace trigon {
namespace {

double millions(std::string_view name, std::size_t component = 0) {
  return static_cast<double>(network_parameters(name, component)) / 1e6;
}

// mlcommons/inference gives 45.3 million; training: LSTMs 4h(in + h) + 8h of 240-1024, 1024-1024,
// 2048-1024 and two 1024-1024; 1023 x 512 symbols and two LSTMs of 512; the joint network.
TEST(Sound, TransducersHaveTheirPublishedParameters) {
  EXPECT_NEAR(millions("rnnt"), 45.3, 0.05);
  EXPECT_EQ(network_parameters("rnnt-training"),
            5185536 + 8396800 + 12591104 + 2 * 8396800 + 1023 * 512 + 2 * 2101248 + 1312768);
}

// NeMo prints 332,632,349 for Jasper DR 10x5 and 18,924,381 for QuartzNet 15x5 (papers: 333 and
// 18.9 million).
TEST(Sound, ConvolutionalRecognizersHaveTheirPublishedParameters) {
  EXPECT_EQ(network_parameters("Jasper"), 332632349);
  EXPECT_EQ(network_parameters("QuartzNet"), 18924381);
}

// arXiv:2006.11477: 95 and 317 million.
TEST(Sound, Wav2vecHasItsPublishedParameters) {
  EXPECT_NEAR(millions("wav2vec2"), 95.04, 0.01);
  EXPECT_NEAR(millions("wav2vec2-large-pretraining"), 317.4, 0.1);
}

// A second of sound makes 49 frames; 12.7 s are 634 of them.
TEST(Sound, Wav2vecCountsItsTokens) {
  const Graph g = network_graph("wav2vec2");
  for (const GraphNode& n : g.nodes)
    if (n.name == "post_extract_proj") {
      EXPECT_EQ(g.values[n.outputs[0]].shape[0], 634);
    }
}

// Tacotron 2: 28.2 million. WaveGlow: 268 million with 512 channels, 87.9 with 256. HiFi-GAN:
// 13.92 and 0.92 million in the generator (table 1 of arXiv:2010.05646).
TEST(Sound, SynthesizersHaveTheirPublishedParameters) {
  EXPECT_EQ(network_parameters("tacotron2"), 28193153);
  EXPECT_NEAR(millions("waveglow"), 268, 0.5);
  EXPECT_NEAR(millions("waveglow-256"), 87.9, 0.3);
  EXPECT_NEAR(millions("HiFiGAN"), 13.92, 0.02);
  EXPECT_NEAR(millions("hifigan-v2"), 0.92, 0.01);
}

// The decoder steps once a frame, so the number of steps follows the recording.
TEST(Sound, TacotronStepsOnceAFrame) {
  ItemOptions item;
  item.audio_seconds = 10;
  const Graph g = network_graph("tacotron2", item);
  for (const GraphNode& n : g.nodes)
    if (n.name == "decoder_rnn.ih") {
      EXPECT_EQ(n.repeat, 861);  // 10 s of 22,050 Hz in hops of 256
    }
}

// What throughputs count: frames that are not padding, samples of sound, channels of mels.
TEST(Sound, ItemsSayWhatIsCounted) {
  auto counted = [](const char* name) { return embedded_networks().find(name)->item.value(); };
  EXPECT_EQ(counted("tacotron2").counted, "mel_frame");
  EXPECT_DOUBLE_EQ(counted("tacotron2").counted_per_item, 566);
  EXPECT_DOUBLE_EQ(counted("waveglow").counted_per_item, 8000);
  EXPECT_DOUBLE_EQ(counted("HiFiGAN").counted_per_item, 80);
}

TEST(Sound, BuildsForEveryLength) {
  for (const char* name : {"rnnt", "rnnt-training", "Jasper", "QuartzNet", "wav2vec2", "FastPitch",
                           "tacotron2", "waveglow", "HiFiGAN"})
    for (double seconds : {0.1, 0.37, 3.0, 61.3}) {
      ItemOptions item;
      item.audio_seconds = seconds;
      EXPECT_TRUE(embedded_networks().find(name, item)) << name;
    }
}

}  // namespace
}  // namespace trigon
