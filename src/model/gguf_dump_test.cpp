// Facts of real GGUF headers (gathered as text), made into headers again and read: the number of
// tensors and of parameters must be those that were printed when the real file was loaded.

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <sstream>

#include "model/gguf.hpp"
#include "model/gguf_model.hpp"
#include "model/gguf_writer_test.hpp"
#include "model/shared_facts_test.hpp"

namespace trigon {
namespace {

struct Dump {
  std::string arch;
  std::map<std::string, std::string> values;   // "block_count", without the architecture
  std::map<std::string, std::string> printed;  // print_meta
  std::map<std::string, std::int64_t> types;   // of tensors
  std::int64_t tensors = 0;

  std::int64_t number(const std::string& key) const {
    auto it = values.find(key);
    return it == values.end() ? 0 : std::strtoll(it->second.c_str(), nullptr, 10);
  }
  std::vector<std::int64_t> per_layer(const std::string& key, const std::string& fact) const {
    std::vector<std::int64_t> out;
    const std::string& text = printed.at(key);
    if (text[0] != '[')
      return std::vector<std::int64_t>(static_cast<std::size_t>(number("block_count")),
                                       number(fact));
    std::istringstream in(text.substr(1));
    std::string part;
    while (std::getline(in, part, ',')) out.push_back(std::strtoll(part.c_str(), nullptr, 10));
    return out;
  }
};

Dump parse(const std::string& text) {
  Dump d;
  std::istringstream in(text);
  std::string line;
  while (std::getline(in, line)) {
    if (line[0] == '#') {
      auto at = line.find("pairs and ");
      d.tensors = std::strtoll(line.c_str() + at + 10, nullptr, 10);
      continue;
    }
    std::istringstream fields(line);
    std::string a, b, c;
    std::getline(fields, a, '\t');
    std::getline(fields, b, '\t');
    std::getline(fields, c, '\t');
    if (a == "general.architecture") d.arch = c;
    if (a == "tensor_type") d.types[b] = std::strtoll(c.c_str(), nullptr, 10);
    if (a == "print_meta")
      d.printed.emplace(b, c);  // the first: a log may go on with a second file
    else if (a.rfind(d.arch + ".", 0) == 0)
      d.values[a.substr(d.arch.size() + 1)] = c;
  }
  return d;
}

// The tensors of a file of this architecture, named and shaped as its converter does.
class HeaderOf {
 public:
  // Matrices get `type`, vectors and routers f32.
  HeaderOf(const Dump& d, std::uint32_t type) : d_(d), type_(type) {
    w_.text("general.architecture", d.arch);
    for (const auto& [key, value] : d.values)
      if (value[0] >= '0' && value[0] <= '9' && value.find_first_of(".,") == value.npos)
        w_.u32(d.arch + "." + key, static_cast<std::uint32_t>(std::stoll(value)));
    hidden_ = d.number("embedding_length");
    const std::int64_t vocabulary = std::stoll(d.printed.at("n_vocab"));
    add("token_embd.weight", {hidden_, vocabulary});
    add("output_norm.weight", {hidden_});
    if (d.arch != "gemma3") add("output.weight", {hidden_, vocabulary});
    heads_ = d.per_layer("n_head", "attention.head_count");
    kv_ = d.per_layer("n_head_kv", "attention.head_count_kv");
    ffn_ = d.per_layer("n_ff", "feed_forward_length");
    if (heads_.size() > 1 && d.arch == "deci") w_.i32_list("deci.attention.head_count", heads_);
    for (std::size_t i = 0; i < heads_.size(); ++i) layer(i);
    // What is left in Llama 3 files are the factors of its rotary scaling.
    if (d.tensors == count_ + 1) add("rope_freqs.weight", {64});
    absorbed_ = d.tensors - count_ == 2 * static_cast<std::int64_t>(heads_.size());
    if (absorbed_)
      for (std::size_t i = 0; i < heads_.size(); ++i) absorbed(i);
  }
  std::string bytes() const { return w_.bytes(); }
  std::int64_t count() const { return count_; }
  double parameters() const { return parameters_; }
  double twice() const { return twice_; }  // held whole and in halves

 private:
  void add(const std::string& name, const std::vector<std::int64_t>& shape) {
    const bool small = shape.size() == 1 || name.find("ffn_gate_inp") != name.npos;
    w_.tensor(name, shape, small ? 0 : type_);
    ++count_;
    double n = 1;
    for (std::int64_t s : shape) n *= static_cast<double>(s);
    parameters_ += n;
  }
  void layer(std::size_t i) {
    b_ = "blk." + std::to_string(i) + ".";
    if (heads_[i] > 0) {
      add(b_ + "attn_norm.weight", {hidden_});
      if (d_.arch == "deepseek2")
        latent(heads_[i]);
      else
        attention(heads_[i], kv_[i]);
    }
    const std::int64_t experts = d_.number("expert_count");
    const bool dense = static_cast<std::int64_t>(i) < d_.number("leading_dense_block_count");
    if (ffn_[i] == 0) return;
    add(b_ + "ffn_norm.weight", {hidden_});
    if (experts > 0 && !dense)
      mixture(experts);
    else
      mlp(ffn_[i]);
    if (d_.arch == "gemma3" || glm()) add(b_ + "post_ffw_norm.weight", {hidden_});
  }
  bool glm() const { return d_.arch == "glm4" || d_.arch == "chatglm"; }
  void attention(std::int64_t heads, std::int64_t kv) {
    std::int64_t dim = d_.number("attention.key_length");
    if (dim == 0) dim = hidden_ / heads;
    add(b_ + "attn_q.weight", {hidden_, heads * dim});
    add(b_ + "attn_k.weight", {hidden_, kv * dim});
    add(b_ + "attn_v.weight", {hidden_, kv * dim});
    add(b_ + "attn_output.weight", {heads * dim, hidden_});
    if (d_.arch == "gemma3" || d_.arch == "qwen3moe") {
      add(b_ + "attn_q_norm.weight", {dim});
      add(b_ + "attn_k_norm.weight", {dim});
    }
    if (d_.arch == "gemma3" || glm()) add(b_ + "post_attention_norm.weight", {hidden_});
  }
  // Files made for the absorbed form state the cache's sizes and, apart, those of a head.
  std::int64_t one_head(const std::string& what) const {
    const std::int64_t apart = d_.number("attention." + what + "_mla");
    return apart > 0 ? apart : d_.number("attention." + what);
  }
  void latent(std::int64_t heads) {
    const std::int64_t q = d_.number("attention.q_lora_rank"),
                       kv = d_.number("attention.kv_lora_rank"),
                       rope = d_.number("rope.dimension_count"), key = one_head("key_length"),
                       value = one_head("value_length");
    if (q > 0) {
      add(b_ + "attn_q_a.weight", {hidden_, q});
      add(b_ + "attn_q_a_norm.weight", {q});
      add(b_ + "attn_q_b.weight", {q, heads * key});
    } else {
      add(b_ + "attn_q.weight", {hidden_, heads * key});
    }
    add(b_ + "attn_kv_a_mqa.weight", {hidden_, kv + rope});
    add(b_ + "attn_kv_a_norm.weight", {kv});
    if (d_.number("attention.key_length_mla") > 0) {
      add(b_ + "attn_k_b.weight", {key - rope, kv, heads});
      add(b_ + "attn_v_b.weight", {kv, value, heads});
    } else {
      add(b_ + "attn_kv_b.weight", {kv, heads * (key - rope + value)});
    }
    add(b_ + "attn_output.weight", {heads * value, hidden_});
  }
  void absorbed(std::size_t i) {
    const std::int64_t kv = d_.number("attention.kv_lora_rank"),
                       nope = d_.number("attention.key_length") - d_.number("rope.dimension_count"),
                       value = d_.number("attention.value_length");
    const std::string b = "blk." + std::to_string(i) + ".";
    const double before = parameters_;
    add(b + "attn_k_b.weight", {nope, heads_[i] * kv});
    add(b + "attn_v_b.weight", {kv, heads_[i] * value});
    twice_ += parameters_ - before;
  }
  void mlp(std::int64_t width) {
    if (glm()) {
      add(b_ + "ffn_up.weight", {hidden_, 2 * width});
    } else {
      add(b_ + "ffn_gate.weight", {hidden_, width});
      add(b_ + "ffn_up.weight", {hidden_, width});
    }
    add(b_ + "ffn_down.weight", {width, hidden_});
  }
  void mixture(std::int64_t experts) {
    const std::int64_t width = d_.number("expert_feed_forward_length"),
                       shared = d_.number("expert_shared_count") * width;
    add(b_ + "ffn_gate_inp.weight", {hidden_, experts});
    if (d_.number("expert_gating_func") == 2 || experts == 384)
      add(b_ + "exp_probs_b.bias", {experts});
    for (const char* name : {"ffn_gate_exps", "ffn_up_exps"})
      add(b_ + name + ".weight", {hidden_, width, experts});
    add(b_ + "ffn_down_exps.weight", {width, hidden_, experts});
    if (shared == 0) return;
    add(b_ + "ffn_gate_shexp.weight", {hidden_, shared});
    add(b_ + "ffn_up_shexp.weight", {hidden_, shared});
    add(b_ + "ffn_down_shexp.weight", {shared, hidden_});
  }

  const Dump& d_;
  std::uint32_t type_;
  GgufWriter w_;
  std::string b_;
  std::int64_t hidden_ = 0, count_ = 0;
  std::vector<std::int64_t> heads_, kv_, ffn_;
  double parameters_ = 0, twice_ = 0;
  bool absorbed_ = false;
};

TEST(GgufDumps, ParametersAreThosePrinted) {
  const auto folder = shared_directory() / "data/models/configs/gguf_header_dumps";
  std::error_code none;
  if (!std::filesystem::exists(folder, none)) GTEST_SKIP() << "the shared facts are not here";
  int read = 0, sized = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string file = entry.path().filename().string();
    const Dump d = parse(*shared_file("data/models/configs/gguf_header_dumps/" + file));
    // Files whose matrices are all of one type say how many bytes that is.
    std::uint32_t one_type = 30;
    const bool uniform = d.types.size() == 2 && d.types.count("f32");
    if (uniform) one_type = d.types.count("q8_0") ? 8 : d.types.count("bf16") ? 30 : 999;
    const HeaderOf made(d, one_type);
    ASSERT_EQ(made.count(), d.tensors) << file;
    const std::string bytes = made.bytes();
    auto h = read_gguf(ByteSource::memory(bytes, file));
    ASSERT_TRUE(h) << file << " " << h.error().where;
    auto m = read_gguf_model(*h, h->tensors, file);
    ASSERT_TRUE(m) << file << " " << m.error().where;
    auto model = build_decoder(m->spec, file);
    ASSERT_TRUE(model) << file << " " << model.error().where;
    const auto total = static_cast<double>(count_parameters(*model).total);
    // Every tensor once, but for the halves of kv_b and the rotary factors.
    const double factors = made.parameters() - made.twice() - total;
    EXPECT_TRUE(factors == 0 || factors == 64) << file << " " << factors;
    // "671.026 B" as the loader prints it, decimal commas included.
    std::string text = d.printed.at("model params");
    for (char& c : text)
      if (c == ',') c = '.';
    const double unit = text.back() == 'T' ? 1e12 : 1e9;
    EXPECT_NEAR((total + made.twice()) / unit, std::atof(text.c_str()), 0.00051) << file;
    if (uniform && one_type != 999) {
      double bytes_listed = 0;
      for (const Tensor& t : h->tensors) bytes_listed += static_cast<double>(t.bytes->value());
      std::string size = d.printed.at("model size");
      EXPECT_NEAR(bytes_listed / kGi, std::atof(size.c_str()), 0.00051) << file;
      ++sized;
    }
    ++read;
  }
  EXPECT_EQ(read, 21);
  EXPECT_GE(sized, 3);
}

}  // namespace
}  // namespace trigon
