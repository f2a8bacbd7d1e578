#include "onnx/op.hpp"

#include <algorithm>

#include "model/json_value.hpp"

namespace trigon::onnx {
namespace {

const Value& nothing() {
  static const Value v;
  return v;
}

// Large constants are parameters; a single number is part of a formula.
bool is_parameter(const Value& v, const Constant& c) {
  return c.in_file && is_floating(c.type) && v.count() > 1;
}

}  // namespace

Op::Op(Importer& importer, const OnnxNode& node, const Context& context, Scope& scope,
       std::int64_t version)
    : importer_(importer),
      node_(node),
      context_(context),
      scope_(scope),
      version_(version),
      name_(context.prefix + node_name(node)),
      out_(node.outputs.size()),
      is_set_(node.outputs.size()),
      aliased_(node.outputs.size()) {
  for (const std::string& input : node.inputs) {
    const ValuePtr* v = input.empty() ? nullptr : scope.find(input);
    in_.push_back(v ? *v : nullptr);
    if (v && !(*v)->constant) constant_ = false;
  }
}

bool Op::ok() const { return importer_.ok(); }

void Op::refuse(Message what) {
  importer_.refuse({ErrorCode::malformed, std::move(what), importer_.file().name(), std::nullopt});
}

const Value& Op::in(std::size_t i) {
  if (has(i)) return *in_[i];
  if (ok()) fail(OnnxMessage::input_missing, static_cast<std::int64_t>(i + 1));
  return nothing();
}

std::int64_t Op::dim(std::size_t i, std::int64_t a) {
  const TensorShape& s = shape(i);
  const std::int64_t at = a < 0 ? a + static_cast<std::int64_t>(s.size()) : a;
  if (at >= 0 && at < static_cast<std::int64_t>(s.size())) return s[static_cast<std::size_t>(at)];
  if (ok()) fail(OnnxMessage::bad_rank, static_cast<std::int64_t>(i + 1), shape_text(s));
  return 1;
}

void Op::need_rank(std::size_t i, std::size_t least, std::size_t most) {
  const std::size_t n = rank(i);
  if (ok() && (n < least || n > most))
    fail(OnnxMessage::bad_rank, static_cast<std::int64_t>(i + 1), shape_text(shape(i)));
}

const std::vector<std::int64_t>* Op::integers(std::size_t i) {
  return has(i) && in_[i]->integers ? &*in_[i]->integers : nullptr;
}

std::vector<std::int64_t> Op::need_integers(std::size_t i) {
  const Value& v = in(i);
  if (v.integers) return *v.integers;
  without_contents(i);
  return {};
}

std::int64_t Op::need_integer(std::size_t i) {
  auto v = need_integers(i);
  if (v.size() == 1) return v[0];
  if (ok()) fail(OnnxMessage::bad_rank, static_cast<std::int64_t>(i + 1), shape_text(shape(i)));
  return 1;
}

std::vector<double> Op::need_reals(std::size_t i) {
  const Value& v = in(i);
  if (v.reals) return *v.reals;
  if (v.integers) return std::vector<double>(v.integers->begin(), v.integers->end());
  without_contents(i);
  return {};
}

void Op::without_contents(std::size_t i) {
  if (!ok()) return;
  const Value& v = in(i);
  if (v.stored && !importer_.constant(*v.stored).elsewhere.empty())
    return fail(OnnxMessage::external_contents, importer_.constant(*v.stored).name,
                importer_.constant(*v.stored).elsewhere);
  fail(OnnxMessage::data_dependent, static_cast<std::int64_t>(i + 1));
}

const OnnxAttribute* Op::attribute(std::string_view key) const {
  const OnnxAttribute* a = node_.attribute(key);
  if (!a || a->reference.empty()) return a;
  auto bound = context_.bound.find(a->reference);
  return bound == context_.bound.end() ? nullptr : bound->second;
}

std::int64_t Op::integer(std::string_view key, std::int64_t otherwise) const {
  const OnnxAttribute* a = attribute(key);
  return a && a->integer ? *a->integer : otherwise;
}

std::int64_t Op::need_integer_attribute(std::string_view key) {
  const OnnxAttribute* a = attribute(key);
  if (a && a->integer) return *a->integer;
  if (ok()) fail(OnnxMessage::attribute_missing, key);
  return 1;
}

double Op::real(std::string_view key, double otherwise) const {
  const OnnxAttribute* a = attribute(key);
  return a && a->real ? *a->real : otherwise;
}

std::string Op::text(std::string_view key, std::string_view otherwise) const {
  const OnnxAttribute* a = attribute(key);
  return a && a->text ? *a->text : std::string(otherwise);
}

std::vector<std::int64_t> Op::list(std::string_view key) const {
  const OnnxAttribute* a = attribute(key);
  return a ? a->integers : std::vector<std::int64_t>();
}

std::vector<double> Op::reals(std::string_view key) const {
  const OnnxAttribute* a = attribute(key);
  return a ? a->reals : std::vector<double>();
}

std::size_t Op::axis(std::int64_t value, std::size_t rank) {
  const auto n = static_cast<std::int64_t>(rank);
  if (value >= -n && value < n) return static_cast<std::size_t>(value < 0 ? value + n : value);
  if (ok()) fail(OnnxMessage::bad_attribute, "axis", value);
  return 0;
}

std::vector<std::size_t> Op::axes(const std::vector<std::int64_t>& values, std::size_t rank) {
  std::vector<std::size_t> out;
  if (rank == 0 && !values.empty() && ok()) fail(OnnxMessage::bad_attribute, "axes", values[0]);
  for (std::int64_t v : values) {
    if (!ok()) return {};
    const std::size_t a = axis(v, rank);
    if (ok() && std::find(out.begin(), out.end(), a) != out.end())
      fail(OnnxMessage::bad_attribute, "axes", v);
    out.push_back(a);
  }
  return out;
}

std::vector<std::int64_t> Op::list_or_input(std::string_view key, std::size_t input) {
  if (has(input)) return need_integers(input);
  return list(key);
}

Value& Op::set(std::size_t k, std::int32_t type, TensorShape shape) {
  static Value spare;
  if (k >= out_.size()) return spare = Value();
  Value& v = out_[k];
  v = Value();
  v.type = type;
  v.constant = constant_;
  if (!checked_elements(shape)) {
    if (ok()) fail(OnnxMessage::impossible_size, shape_text(shape));
    return v;
  }
  v.shape = std::move(shape);
  is_set_[k] = true;
  return v;
}

void Op::alias(std::size_t k, std::size_t i) {
  if (!ok() || k >= out_.size()) return;
  in(i);
  aliased_[k] = pointer(i);
}

void Op::put(std::size_t k, ValuePtr v) {
  if (k < out_.size()) aliased_[k] = std::move(v);
}

void Op::view(std::size_t k, std::size_t i, TensorShape to) {
  const Value& from = in(i);
  if (!ok()) return;
  Value& v = set(k, from.type, std::move(to));
  if (!ok()) return;
  if (v.count() != from.count())
    return fail(OnnxMessage::shape_mismatch, shape_text(from.shape), shape_text(v.shape));
  v.constant = from.constant;
  if (from.known() && importer_.spend_contents(v.count())) {
    v.integers = from.integers;
    v.reals = from.reals;
  }
  if (from.constant) {
    v.stored = from.stored;
    v.beside = from.beside;
  } else if (from.id) {
    // The other outputs, if any, are set later.
    v.id = importer_.add_value(v.type, v.shape, name_);
    if (v.id) append(Reinterpret{}, {*v.id}, {i}, {}, {}, "");
  }
}

void Op::add_weight(GraphNode& n, std::size_t input, bool trains) {
  const Value& v = *in_[input];
  if (!v.stored || v.count() == 0) return;
  n.weights.push_back(importer_.weight_of(*v.stored, trains));
  for (std::size_t b : v.beside) n.weights.push_back(importer_.weight_of(b, false));
}

void Op::append(NodeOperation operation, std::vector<ValueId> outputs, const Indices& data,
                const Indices& parameters, const Indices& constants, std::string_view suffix) {
  if (outputs.empty() || !ok()) return;
  GraphNode n;
  n.name = name_ + std::string(suffix);
  n.operation = std::move(operation);
  n.outputs = std::move(outputs);
  n.repeat = context_.repeat;
  for (std::size_t i : parameters)
    if (has(i) && in_[i]->constant && in_[i]->stored) {
      const std::int64_t bits = bits_of(importer_.constant(*in_[i]->stored).type);
      const bool index = is_integer(importer_.constant(*in_[i]->stored).type) && bits > 8;
      add_weight(n, i, !index && importer_.constant(*in_[i]->stored).type != kBool);
    } else if (has(i) && in_[i]->id) {
      n.inputs.push_back(*in_[i]->id);
    }
  std::vector<ValueId> flowing;
  for (std::size_t i : data)
    if (has(i) && in_[i]->constant && in_[i]->stored)
      add_weight(n, i, is_parameter(*in_[i], importer_.constant(*in_[i]->stored)));
    else if (has(i) && in_[i]->id)
      flowing.push_back(*in_[i]->id);
  n.inputs.insert(n.inputs.begin(), flowing.begin(), flowing.end());
  for (std::size_t i : constants)
    if (has(i) && in_[i]->constant && in_[i]->stored)
      add_weight(n, i, false);
    else if (has(i) && in_[i]->id)
      n.inputs.push_back(*in_[i]->id);
  // Nothing flows in (empty values): what is written still takes its bytes.
  if (n.inputs.empty()) n.operation = Move{};
  const bool view = std::holds_alternative<Reinterpret>(n.operation);
  for (ValueId v : n.outputs)
    if (!view && !importer_.spend_elements(elements(importer_.graph().values[v].shape), n.repeat))
      return fail(OnnxMessage::value_too_large);
  importer_.graph().nodes.push_back(std::move(n));
}

void Op::emit(NodeOperation operation, const Indices& data, const Indices& parameters,
              const Indices& constants, std::string_view suffix) {
  if (!ok() || constant_) return;
  std::vector<ValueId> outputs;
  for (std::size_t k = 0; k < out_.size(); ++k) {
    if (!is_set_[k] || aliased_[k] || out_[k].id || out_[k].constant) continue;
    out_[k].id = importer_.add_value(out_[k].type, out_[k].shape, name_);
    if (!out_[k].id) continue;
    if (image_out_ && *image_out_ == k) {
      const TensorShape& whole = out_[k].shape;
      if (whole.size() > 2 && whole[0] != 1) {
        TensorShape& s = importer_.graph().values[*out_[k].id].shape;
        std::swap(s[0], s[1]);
      }
    }
    outputs.push_back(*out_[k].id);
  }
  append(std::move(operation), std::move(outputs), data, parameters, constants, suffix);
}

std::size_t Op::inner(std::int32_t type, TensorShape to) {
  Value v;
  v.type = type;
  if (!checked_elements(to)) {
    if (ok()) fail(OnnxMessage::impossible_size, shape_text(to));
    to.clear();
  }
  v.shape = std::move(to);
  v.constant = constant_;
  if (!constant_ && ok()) v.id = importer_.add_value(type, v.shape, name_);
  in_.push_back(std::make_shared<const Value>(std::move(v)));
  return in_.size() - 1;
}

void Op::emit_inner(NodeOperation operation, std::size_t to, const Indices& data,
                    const Indices& parameters, const Indices& constants, std::string_view suffix) {
  if (!ok() || constant_ || !has(to) || !in_[to]->id) return;
  append(std::move(operation), {*in_[to]->id}, data, parameters, constants, suffix);
}

void Op::as_image(std::size_t i) {
  const Value& v = in(i);
  if (!ok() || !v.id || v.shape.size() < 3 || v.shape[0] == 1) return;
  TensorShape& s = importer_.graph().values[*v.id].shape;
  if (s == v.shape) std::swap(s[0], s[1]);
}

std::size_t Op::seen_as(std::size_t i, TensorShape to) {
  const Value from = in(i);
  if (!ok()) return i;
  if (from.shape == to) return i;
  Value v = from;
  v.shape = std::move(to);
  v.id.reset();
  const auto n = checked_elements(v.shape);
  if (!n || *n != from.count()) {
    fail(OnnxMessage::shape_mismatch, shape_text(from.shape), shape_text(v.shape));
    return i;
  }
  if (!from.constant && from.id) {
    v.id = importer_.add_value(v.type, v.shape, name_);
    if (v.id) append(Reinterpret{}, {*v.id}, {i}, {}, {}, ".view");
  }
  in_.push_back(std::make_shared<const Value>(std::move(v)));
  return in_.size() - 1;
}

Indices Op::add(const std::vector<ValuePtr>& values) {
  Indices out;
  for (const ValuePtr& v : values) {
    in_.push_back(v);
    out.push_back(in_.size() - 1);
  }
  return out;
}

std::vector<std::size_t> Op::range_of_inputs(std::size_t from) const {
  std::vector<std::size_t> out;
  for (std::size_t i = from; i < node_.inputs.size(); ++i)
    if (has(i)) out.push_back(i);
  return out;
}

void Op::finish() {
  if (!ok()) return;
  for (std::size_t k = 0; k < out_.size(); ++k) {
    const std::string& name = node_.outputs[k];
    if (name.empty()) continue;
    ValuePtr v = aliased_[k];
    if (!v && is_set_[k]) {
      if (out_[k].constant && !out_[k].stored && out_[k].count() > 0 && !out_[k].items)
        out_[k].stored =
            importer_.add_constant(printable(name, 400), out_[k].shape, out_[k].type, false);
      v = std::make_shared<const Value>(std::move(out_[k]));
    }
    if (!v) continue;  // an optional output that nothing computes
    if (!scope_.values.emplace(name, std::move(v)).second)
      importer_.refuse({ErrorCode::malformed, message(OnnxMessage::value_twice, printable(name)),
                        importer_.file().name(), std::nullopt});
  }
}

namespace {

const std::map<std::string_view, Operator>& table_of(std::string_view domain) {
  auto all = [](std::initializer_list<const OperatorTable*> tables) {
    std::map<std::string_view, Operator> out;
    for (const OperatorTable* t : tables)
      for (const OperatorEntry& e : *t) out.emplace(e.name, e.run);
    return out;
  };
  static const std::map<std::string_view, Operator> standard = all(
      {&elementwise_operators(), &convolution_operators(), &pooling_operators(),
       &product_operators(), &quantized_operators(), &normalization_operators(),
       &recurrent_operators(), &layout_operators(), &resampling_operators(), &shape_operators(),
       &index_operators(), &reduction_operators(), &selection_operators(), &sequence_operators(),
       &control_operators(), &signal_operators(), &attention_operators()});
  // What onnxruntime adds; it also has operators of later versions there.
  static const std::map<std::string_view, Operator> microsoft =
      all({&microsoft_operators(), &elementwise_operators(), &quantized_operators(),
           &layout_operators(), &resampling_operators(), &index_operators(),
           &normalization_operators(), &selection_operators(), &shape_operators()});
  static const std::map<std::string_view, Operator> learning = all({&learning_operators()});
  static const std::map<std::string_view, Operator> none;
  if (domain.empty()) return standard;
  if (domain == "com.microsoft" || domain == "com.microsoft.nchwc") return microsoft;
  if (domain == "ai.onnx.ml") return learning;
  static const std::map<std::string_view, Operator> training = all({&elementwise_operators()});
  if (domain == "ai.onnx.preview.training") return training;
  return none;
}

}  // namespace

Operator find_operator(std::string_view domain, std::string_view name) {
  const auto& table = table_of(domain);
  auto it = table.find(name);
  return it == table.end() ? nullptr : it->second;
}

std::vector<std::string_view> operators_of(std::string_view domain) {
  std::vector<std::string_view> out;
  for (const auto& [name, run] : table_of(domain)) out.push_back(name);
  return out;
}

}  // namespace trigon::onnx
