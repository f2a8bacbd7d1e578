// A convolutional trunk, a transformer and a fixed set of queries: Carion et al. 2020,
// arXiv:2005.12872.

#include <string>

#include "network/detection.hpp"
#include "network/families.hpp"

namespace trigon {
namespace {

// Multi-head attention with biases; positions are added to queries and keys, not to values.
ValueId attend(NetworkBuilder& b, const char* name, ValueId x, ValueId memory, std::int64_t heads) {
  auto in_attention = b.scope(name);
  const std::int64_t d = b.width(x);
  const ValueId where = b.elementwise("with_positions", {memory}, "add", 1, Keeps::nothing);
  AttentionOptions o;
  o.heads = heads;
  o.fused = false;
  const ValueId q = b.linear("q", x, d), k = b.linear("k", where, d), v = b.linear("v", memory, d);
  return b.linear("out", b.attention("core", q, k, v, o), d);
}

ValueId residual(NetworkBuilder& b, const char* name, ValueId x, ValueId y) {
  return b.layer_norm(name, b.add("add", x, b.dropout("dropout", y)));
}

ValueId feed_forward(NetworkBuilder& b, ValueId x, std::int64_t inner) {
  const std::int64_t d = b.width(x);
  const ValueId y = b.activation("relu", b.linear("linear1", x, inner), Activation::relu);
  return b.linear("linear2", b.dropout("dropout_inner", y), d);
}

}  // namespace

Model build_detr(const NetworkSpec& spec) {
  NetworkBuilder b(spec.source());
  const std::int64_t d = 256, heads = 8, inner = 2048, queries = 100;
  const ValueId image = b.input({3, spec.height(), spec.image_width()});
  const ValueId c5 = residual_backbone(b, image, backbone_facts(spec)).back();
  ConvolutionOptions one;
  one.kernel = 1;
  one.bias = true;
  ValueId memory = b.flatten_to_tokens("tokens", b.convolution("input_proj", c5, d, one));
  for (int i = 0; i < 6; ++i) {
    auto in_layer = b.scope("encoder" + std::to_string(i));
    memory = residual(b, "norm1", memory, attend(b, "self", memory, memory, heads));
    memory = residual(b, "norm2", memory, feed_forward(b, memory, inner));
  }
  ValueId x = b.embedding("query_embed", b.input({queries}, Format::i64), queries, d);
  for (int i = 0; i < 6; ++i) {
    auto in_layer = b.scope("decoder" + std::to_string(i));
    x = residual(b, "norm1", x, attend(b, "self", x, x, heads));
    x = residual(b, "norm2", x, attend(b, "cross", x, memory, heads));
    x = residual(b, "norm3", x, feed_forward(b, x, inner));
  }
  x = b.layer_norm("decoder_norm", x);
  const ValueId scores = b.linear("class_embed", x, spec.whole("classes") + 1);
  ValueId box = x;
  for (int i = 0; i < 2; ++i)
    box = b.activation("relu", b.linear("bbox" + std::to_string(i), box, d), Activation::relu);
  box = b.activation("sigmoid", b.linear("bbox2", box, 4), Activation::sigmoid);
  return network_model(spec, b.finish({scores, box}), WorkUnit::image,
                       {spec.height(), spec.image_width()});
}

}  // namespace trigon
