#include "evidence/resolve.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "evidence/architecture.hpp"
#include "evidence/messages.hpp"

namespace trigon {

namespace {

std::string lower(std::string_view s) {
  std::string out(s);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return out;
}

bool begins(std::string_view s, std::string_view with) { return s.substr(0, with.size()) == with; }

struct FormatWord {
  std::string_view word;
  Format format;
};
// How sources write the formats that Trigon names otherwise.
constexpr std::array kFormatWords = {
    FormatWord{"fp16", Format::f16},
    FormatWord{"f16", Format::f16},
    FormatWord{"amp", Format::f16},
    FormatWord{"fp16-amp", Format::f16},
    FormatWord{"bf16-amp", Format::bf16},
    FormatWord{"unet-fp8", Format::fp8_tensor},
    FormatWord{"int8-v1", Format::int8},
    FormatWord{"int8-v2", Format::int8},
    FormatWord{"int8 and bf16", Format::int8},
    FormatWord{"mixed-bit palettized/fp16 per readme", Format::f16},
    FormatWord{"fp32", Format::f32},
    FormatWord{"tf32", Format::tf32},
    FormatWord{"fp8", Format::fp8_tensor},
    FormatWord{"fp8-rowwise", Format::fp8_tensor},
    FormatWord{"fp8+bf16", Format::fp8_tensor},
    FormatWord{"bf16+fp8", Format::fp8_tensor},
    FormatWord{"fp8-cs", Format::fp8_tensor},  // current scaling
    FormatWord{"fp8-rowwise-gwhp", Format::fp8_tensor},
    FormatWord{"fp8-mx", Format::mxfp8},
    FormatWord{"mxfp8-cublas", Format::mxfp8},
    FormatWord{"mxfp8-cublas-rceil", Format::mxfp8},
    FormatWord{"exl2:4.0bpw", Format::int4_g128},
    FormatWord{"exl2:3.0bpw", Format::int3_g128},
    FormatWord{"fp4", Format::nvfp4},
    FormatWord{"nvfp4", Format::nvfp4},
    FormatWord{"int4", Format::int4_g128},
    FormatWord{"int4-awq", Format::int4_g128},
    FormatWord{"int4-gptq", Format::int4_g128},
    FormatWord{"int4-gptq-g128", Format::int4_g128},
    FormatWord{"int4-gptq-g32", Format::int4_g32},
    FormatWord{"int4-gptq-g-", Format::int4_g128},
    FormatWord{"int4-wna16", Format::int4_g128},
    FormatWord{"w4a16", Format::int4_g128},
    FormatWord{"int8-gptq", Format::int8_g128},
    FormatWord{"w8a8", Format::int8},
    FormatWord{"nf4-dq", Format::nf4_double},
    FormatWord{"int4:q4f16_1", Format::int4_g32},
    // MLX: groups of 64 with a 16-bit scale and bias, half a bit more, the same bits as these but
    // for 4 and 8 bit, which the engine runs under their own names.
    FormatWord{"mlx:q8", Format::int8_g128},
    FormatWord{"mlx:q6", Format::q6_k},
    FormatWord{"mlx:q5", Format::q5_k},
    FormatWord{"mlx:q4", Format::int4_g64},
    FormatWord{"mlx:q5-g32", Format::q5_1},
    FormatWord{"mlx:q4-g32", Format::int4_g32},
};

// A custom mix whose header still names the default type: "gguf:Q8_0@3.9bpw".
bool mislabelled(std::string_view text) {
  const auto at = text.find('@');
  if (at == std::string_view::npos) return false;
  const auto format = format_of(text);
  double bits = 0;
  const std::string_view number = text.substr(at + 1);
  std::from_chars(number.data(), number.data() + number.size(), bits);
  return format && bits > 0 && std::fabs(bits / bits_per_element(*format) - 1) > 0.25;
}

}  // namespace

std::string_view gguf_file_type(std::string_view text) {
  if (!begins(text, "gguf:")) return {};
  text.remove_prefix(5);
  text = text.substr(0, text.find('@'));
  if (begins(text, "UD-")) text.remove_prefix(3);
  return text;
}

std::optional<Format> format_of(std::string_view text) {
  std::string name = lower(text);
  for (const FormatWord& w : kFormatWords)
    if (w.word == name) return w.format;
  const std::string_view type = gguf_file_type(text);
  if (!type.empty()) name = lower(type);
  // A file type that mixes formats is named after the one that most tensors have.
  for (;;) {
    if (const auto f = format_by_name(name); f && *f != Format::unknown) return f;
    const auto underscore = name.rfind('_');
    if (type.empty() || underscore == std::string::npos) return std::nullopt;
    const std::string_view tail = std::string_view(name).substr(underscore + 1);
    constexpr std::array sizes = {"s", "m", "l", "xl", "xs", "r4", "r8"};
    if (std::find(sizes.begin(), sizes.end(), tail) == sizes.end()) return std::nullopt;
    name.resize(underscore);
  }
}

std::optional<Refusal> take_identity(const Row& row, Case& c, bool zero, std::string_view column) {
  c.id = std::string(row.text("id"));
  c.source = std::string(row.text("source"));
  c.date = std::string(row.text("date"));
  c.where = row.where();
  c.fold = row.fold();
  if (row.text("trust") == "exclude") return Refusal{RefusalReason::doubtful, "trust"};
  if (column.empty()) return std::nullopt;
  const auto value = row.number(column);
  if (!value || *value < 0 || (*value == 0 && !zero))
    return Refusal{RefusalReason::bad_value, std::string(column)};
  c.measured = *value;
  return std::nullopt;
}

namespace {

// A network by name, for the image side, steps and guidance that the row states.
std::shared_ptr<const Model> network_of(const Row& row, const RowNames& names) {
  const std::string_view name = row.text("model");
  auto model = names.network(name, {});
  if (!model || !model->item) return model;
  ItemOptions item;
  const auto side = row.whole("input_len", {"image_size"});
  if (model->item->unit == WorkUnit::image && side && *side > 1) item.size = {*side};
  if (model->item->steps > 1) item.steps = row.whole("steps");
  if (const auto guidance = row.text("guidance"); !guidance.empty())
    item.guidance = guidance != "0" && guidance != "off";
  return item.empty() ? model : names.network(name, item);
}

}  // namespace

std::optional<Refusal> take_model(const Row& row, const RowNames& names, Case& c) {
  const std::string_view name = row.text("model");
  if (!name.empty()) c.model = names.model(name);
  if (!c.model) {
    if (const auto a = architecture_of(row)) {
      if (auto m = model_of(*a, row.where())) {
        c.model = std::make_shared<const Model>(std::move(*m));
        c.assumptions.insert(c.assumptions.end(), a->assumptions.begin(), a->assumptions.end());
      }
    }
  }
  if (!c.model && names.network) c.model = network_of(row, names);
  if (!c.model || !(language_stack(*c.model) || c.model->item))
    return Refusal{RefusalReason::network_outside_catalogue, std::string(name)};
  c.question.model = c.model.get();
  return std::nullopt;
}

std::optional<Refusal> take_weights(const Row& row, const RowNames& names, Case& c) {
  std::string_view text = row.text("weight_format");
  if (text.empty()) return std::nullopt;
  // Several formats in one network: the first is that of most products.
  if (whole_items(c)) text = text.substr(0, text.find(','));
  if (mislabelled(text)) return Refusal{RefusalReason::format_unknown, std::string(text)};
  if (const auto type = gguf_file_type(text); !type.empty() && names.model_in_file_type) {
    if (auto mixed = names.model_in_file_type(c.model, type)) {
      c.model = std::move(mixed);
      c.question.model = c.model.get();
      return std::nullopt;
    }
  }
  if (lower(text) == "w4a8kv4") {
    c.question.plan.weights = Format::int4_g128;
    c.question.plan.activations = Format::int8;
    c.question.plan.kv = Format::int4_g128;
    return std::nullopt;
  }
  const auto format = format_of(text);
  if (!format) return Refusal{RefusalReason::format_unknown, std::string(text)};
  c.question.plan.weights = format;
  // Encoders in 8 bit hand 8-bit values from kernel to kernel; FasterTransformer's first mode keeps
  // the residual stream in 16 (docs/bert_guide.md, "int8_mode").
  const Stack* stack = language_stack(*c.model);
  if (stack && !stack->generates && format == Format::int8)
    c.question.plan.activations = lower(text) == "int8-v1" ? Format::f16 : Format::int8;
  // Automatic mixed precision keeps a network's weights in 32 bit.
  const std::string word = lower(text);
  if ((whole_items(c) || (stack && !stack->generates)) &&
      (word == "amp" || word == "fp16-amp" || word == "bf16-amp")) {
    c.question.plan.activations = format;
    c.question.plan.weights = Format::f32;
  }
  return std::nullopt;
}

void allow_length(Case& c, std::int64_t tokens) {
  const Stack* s = language_stack(*c.model);
  if (!s) return;
  const bool rows = s->positions && s->positions->in < tokens;
  if (!rows && !(s->max_context && *s->max_context < tokens)) return;
  auto longer = std::make_shared<Model>(*c.model);
  for (Component& part : longer->components)
    if (auto* stack = std::get_if<Stack>(&part.body)) {
      if (stack->max_context) stack->max_context = std::max(*stack->max_context, tokens);
      if (stack->positions) stack->positions->in = std::max(stack->positions->in, tokens);
    }
  c.model = std::move(longer);
  c.question.model = c.model.get();
  if (c.before) c.before->model = c.model.get();
}

std::optional<Refusal> take_engine(std::string_view name, std::string_view version,
                                   std::string_view date, const RowNames& names, Case& c) {
  if (name.empty()) return Refusal{RefusalReason::engine_not_stated, {}};
  const auto engine = names.engine(name, version, date);
  if (!engine) return Refusal{RefusalReason::engine_unknown, std::string(name)};
  c.question.engine = *engine;
  c.question.engine_date = std::string(date);
  if (version.empty())
    c.assumptions.push_back(
        {"engine_version", message(EvidenceMessage::current_release, std::string(date))});
  return std::nullopt;
}

std::optional<Refusal> take_hardware(const Row& row, const RowNames& names, std::int64_t cards,
                                     std::int64_t per_node, Case& c) {
  const std::string_view gpu = row.text("gpu");
  if (gpu.empty()) return Refusal{RefusalReason::hardware_not_stated, "gpu"};
  if (cards < 1 || cards > 1000000) return Refusal{RefusalReason::input_missing, "n_gpus"};
  const auto candidates = names.hardware(gpu);
  if (candidates.empty()) return Refusal{RefusalReason::hardware_unknown, std::string(gpu)};
  if (candidates.size() > 1)
    c.assumptions.push_back({"gpu", message(EvidenceMessage::any_of_cards, gpu)});
  MachineColumns m;
  m.cards = static_cast<int>(cards);
  m.intra_link = row.text("intra_link");
  if (const auto gbps = row.number("inter_gbps"); gbps && *gbps > 0) m.inter_gbps = gbps;
  for (const Accelerator* a : candidates) {
    m.accelerator = a;
    // The cards that one fabric joins count as a node: 72 of an NVL72 rack, whatever the trays.
    const bool rack = begins(a->id, "gb200") || begins(a->id, "gb300") ||
                      m.intra_link.find("NVL72") != std::string_view::npos;
    std::int64_t most = rack ? 72 : per_node > 0 ? per_node : 8;
    while (cards % most != 0 && most > 1 && cards > most) --most;
    m.per_node = static_cast<int>(std::min(cards, most));
    auto cluster = names.cluster(m);
    if (!cluster) return Refusal{RefusalReason::hardware_unknown, std::string(gpu)};
    c.hardware.push_back(std::move(*cluster));
  }
  return std::nullopt;
}

}  // namespace trigon
