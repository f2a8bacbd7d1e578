#pragma once
// What a model is made of, as plain values for `trigon inspect`.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/kv_cache.hpp"
#include "model/model.hpp"

namespace trigon {

struct WeightDescription {
  std::string role;  // "q", "experts.down", "embedding", "norms"
  std::int64_t in = 0, out = 0, count = 1;
  std::string format;
  std::int64_t parameters = 0;
  ByteCount bytes;
};

struct LayerRunDescription {
  std::int64_t first = 0, count = 0;  // layer numbers from 0
  std::int64_t stored = 0;            // sets of weights of them: 1 where layers share theirs
  std::string kind;                   // "attention+mlp", "latent+experts" ...
  CacheRun cache;
  std::int64_t heads = 0, kv_heads = 0, head_dim = 0, ffn = 0, experts = 0, active = 0;
  std::int64_t parameters = 0;  // of one layer
  ByteCount bytes;              // of one layer
  std::vector<WeightDescription> weights;
};

struct FormatShare {
  std::string format;
  std::int64_t tensors = 0;
  std::int64_t parameters = 0;
  ByteCount bytes;
};

// The nodes of one kind of operation.
struct OperatorShare {
  std::string kind;
  std::int64_t nodes = 0;
  std::int64_t parameters = 0;
  ByteCount weights;  // a weight that several nodes use counts at the first
  double multiply_accumulates = 0, flops = 0;
  ByteCount written;  // bytes of the outputs in the formats the network states
};
struct NodeDescription {
  std::string name, kind;
  TensorShape output;
  std::int64_t parameters = 0;
  double multiply_accumulates = 0, flops = 0;
};
// All of one item.
struct GraphDescription {
  std::vector<TensorShape> inputs, outputs;
  std::int64_t nodes = 0;
  double multiply_accumulates = 0, flops = 0;
  ByteCount written;
  std::vector<OperatorShare> operators;  // most FLOPs first
  std::vector<NodeDescription> largest;  // most FLOPs first
  bool each_step = false;
  std::int64_t rows = 1;
};

struct ComponentDescription {
  std::string name;
  std::optional<GraphDescription> graph;  // the fields of stacks are then empty
  std::int64_t layers = 0, hidden = 0, vocabulary = 0;
  std::optional<std::int64_t> max_context;
  bool tied = false;
  ParameterCount parameters;
  ByteCount bytes;
  std::vector<LayerRunDescription> runs;
  std::vector<WeightDescription> outside;  // embedding, head, positions, norms
  std::vector<FormatShare> formats;        // of the weights as described, most bytes first
  double kv_bytes_per_token = 0;           // in the asked format, no window full
  double source_kv_bytes_per_token = 0;    // of cross-attention, for a token of the encoder
  double bytes_per_sequence = 0;           // recurrent states and the like, whatever the length
  bool windows = false;
};

struct ModelDescription {
  std::string id, architecture, source;
  std::string weight_format, kv_format;
  std::optional<Item> item;
  ParameterCount parameters;
  std::optional<ByteCount> stored_bytes;
  std::vector<ComponentDescription> components;
  std::vector<FormatShare> stored;  // of the file's tensors, by the file's own words
  std::vector<Tensor> tensors;
  std::vector<Message> notes;
};

// `kv`: the format of the cache; absent: the checkpoint's own, else 16 bit.
ModelDescription describe(const Model& m, std::optional<Format> kv = std::nullopt);

ComponentDescription describe_graph(const Component& c, const Graph& g);

// The tensors a stack implies, as classes: one entry for each matrix of each layer, embedding,
// head and positions; norms of a layer together.
struct ExpectedTensor {
  std::optional<std::int64_t> layer;
  std::string role;
  std::int64_t parameters = 0;
  ByteCount bytes;
  Format format = Format::bf16;
  Split split = Split::replicated;
};
std::vector<ExpectedTensor> tensors_of(const Stack& s);

}  // namespace trigon
