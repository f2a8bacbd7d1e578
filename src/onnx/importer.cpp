#include "onnx/importer.hpp"

#include <algorithm>

#include "model/json_value.hpp"
#include "onnx/messages.hpp"
#include "onnx/op.hpp"

namespace trigon::onnx {
namespace {

// Nodes once branches are tried and functions written out; real graphs have tens of thousands.
constexpr std::int64_t kMostWork = 1 << 20;
constexpr int kMostDepth = 64;
// Elements that all nodes write together, as a limit of what sums can count.
constexpr std::int64_t kMostWritten = std::int64_t{1} << 56;
constexpr std::int64_t kMostFolded = 1 << 24;

}  // namespace

std::string node_name(const OnnxNode& n) {
  if (!n.name.empty()) return printable(n.name, 200);
  for (const std::string& o : n.outputs)
    if (!o.empty()) return printable(o, 200);
  return printable(n.op, 200);
}

std::string inner_prefix(const std::string& name) {
  constexpr std::size_t kMost = 300;
  return (name.size() > kMost ? "..." + name.substr(name.size() - kMost) : name) + "/";
}

const ValuePtr* Scope::find(std::string_view name) const {
  for (const Scope* s = this; s; s = s->around) {
    auto it = s->values.find(name);
    if (it != s->values.end()) return &it->second;
  }
  return nullptr;
}

void Importer::note(Message m) {
  constexpr std::size_t kMostNotes = 20;
  if (notes_.size() < kMostNotes) notes_.push_back(std::move(m));
}

std::optional<ValueId> Importer::add_value(std::int32_t type, const TensorShape& whole,
                                           const std::string& name) {
  const auto n = checked_elements(whole);
  const auto format = format_of_type(type);
  if (!n) {
    refuse({ErrorCode::malformed,
            message(OnnxMessage::impossible_size, "value", name, shape_text(whole)), file_.name(),
            std::nullopt});
    return std::nullopt;
  }
  if (!format) {
    refuse({ErrorCode::unsupported,
            message(OnnxMessage::unknown_type, name, static_cast<std::int64_t>(type)), file_.name(),
            std::nullopt});
    return std::nullopt;
  }
  if (*n == 0) return std::nullopt;
  graph_.values.push_back({item_shape(whole), *format});
  return static_cast<ValueId>(graph_.values.size() - 1);
}

ValuePtr Importer::add_input(std::int32_t type, const TensorShape& whole, const std::string& name) {
  Value v;
  v.type = type;
  v.shape = whole;
  v.id = add_value(type, whole, printable(name));
  if (v.id) graph_.inputs.push_back(*v.id);
  return std::make_shared<const Value>(std::move(v));
}

std::size_t Importer::add_constant(std::string name, const TensorShape& shape, std::int32_t type,
                                   bool in_file) {
  if (!spend_elements(elements(shape), 1))
    refuse({ErrorCode::malformed, message(OnnxMessage::value_too_large, "constant", name),
            file_.name(), std::nullopt});
  constants_.push_back({std::move(name), shape, type, in_file, {}, std::nullopt, std::nullopt});
  return constants_.size() - 1;
}

ValuePtr Importer::add_tensor(const OnnxTensor& t, const std::string& name) {
  Value v;
  v.type = t.type;
  v.shape = t.dims;
  v.constant = true;
  if (!checked_elements(t.dims)) {
    refuse({ErrorCode::malformed,
            message(OnnxMessage::impossible_size, "tensor", printable(name), shape_text(t.dims)),
            file_.name(), std::nullopt});
    return std::make_shared<const Value>();
  }
  if (!format_of_type(t.type)) {
    refuse({ErrorCode::unsupported,
            message(OnnxMessage::unknown_type, printable(name), static_cast<std::int64_t>(t.type)),
            file_.name(), std::nullopt});
    return std::make_shared<const Value>();
  }
  if (v.count() <= kMostContents && spend_contents(v.count())) {
    if (is_integer(t.type))
      v.integers = integer_contents(file_, t);
    else
      v.reals = real_contents(file_, t);
  }
  v.stored = add_constant(printable(name, 400), t.dims, t.type, true);
  if (t.elsewhere) constants_.back().elsewhere = printable(*t.elsewhere, 400);
  return std::make_shared<const Value>(std::move(v));
}

WeightId Importer::weight_of(std::size_t constant, bool trains) {
  Constant& c = constants_[constant];
  if (!c.weight) {
    graph_.weights.push_back({c.name, c.shape.empty() ? TensorShape{1} : c.shape,
                              c.format ? *c.format : *format_of_type(c.type), false});
    c.weight = static_cast<WeightId>(graph_.weights.size() - 1);
  }
  if (trains) graph_.weights[*c.weight].trains = true;
  return *c.weight;
}

bool Importer::spend_elements(std::int64_t elements, std::int64_t repeat) {
  auto n = checked_mul(elements, repeat);
  auto sum = n ? checked_add(*n, elements_) : std::nullopt;
  if (!sum || *sum > kMostWritten) return false;
  elements_ = *sum;
  return true;
}

bool Importer::spend_contents(std::int64_t elements) {
  if (elements > kMostContents || contents_ + elements > kMostFolded) return false;
  contents_ += elements;
  return true;
}

void Importer::add_initializers(const OnnxGraph& g, Scope& scope) {
  for (const OnnxTensor& t : g.initializers) {
    if (!ok()) return;
    if (!scope.values.emplace(t.name, add_tensor(t, t.name)).second)
      refuse({ErrorCode::malformed, message(OnnxMessage::value_twice, printable(t.name)),
              file_.name(), std::nullopt});
  }
}

const OnnxFunction* Importer::function(const OnnxNode& node) const {
  for (const OnnxFunction& f : model_.functions)
    if (f.name == node.op && f.domain == node.domain && f.overload == node.overload) return &f;
  return nullptr;
}

void Importer::run(const std::vector<OnnxNode>& nodes, const Context& context, Scope& scope) {
  for (const OnnxNode& n : nodes) {
    if (!ok()) return;
    run_node(n, context, scope);
  }
}

void Importer::run_node(const OnnxNode& node, const Context& context, Scope& scope) {
  if (++work_ > kMostWork)
    return refuse({ErrorCode::unsupported, message(OnnxMessage::too_much_work, kMostWork),
                   file_.name(), std::nullopt});
  for (const std::string& name : node.inputs)
    if (!name.empty() && !scope.find(name))
      return refuse({ErrorCode::malformed,
                     message(OnnxMessage::value_missing, printable(node.op), node_name(node),
                             printable(name)),
                     file_.name(), std::nullopt});
  if (const OnnxFunction* f = function(node)) return call(*f, node, context, scope);
  auto version = context.opsets->find(node.domain);
  const std::int64_t v = version == context.opsets->end() ? 1 : version->second;
  if (Operator infer = find_operator(node.domain, node.op)) {
    Op op(*this, node, context, scope, v);
    infer(op);
    op.finish();
    return;
  }
  refuse({ErrorCode::unsupported,
          message(OnnxMessage::unknown_operator, printable(node.op),
                  node.domain.empty() ? std::string("ai.onnx") : printable(node.domain), v,
                  context.prefix + node_name(node)),
          file_.name(), std::nullopt});
}

void Importer::call(const OnnxFunction& f, const OnnxNode& node, const Context& context,
                    Scope& scope) {
  if (std::find(context.calls.begin(), context.calls.end(), &f) != context.calls.end() ||
      context.depth >= kMostDepth)
    return refuse({ErrorCode::malformed,
                   message(OnnxMessage::function_recursion, printable(f.name)), file_.name(),
                   std::nullopt});
  Context inside;
  inside.opsets = f.opsets.empty() ? context.opsets : &f.opsets;
  inside.prefix = inner_prefix(context.prefix + node_name(node));
  inside.repeat = context.repeat;
  inside.calls = context.calls;
  inside.calls.push_back(&f);
  inside.depth = context.depth + 1;
  for (const OnnxAttribute& a : f.defaults) inside.bound[a.name] = &a;
  for (const OnnxAttribute& a : node.attributes) {
    const OnnxAttribute* given = &a;
    if (!a.reference.empty()) {
      auto outer = context.bound.find(a.reference);
      if (outer == context.bound.end()) continue;
      given = outer->second;
    }
    inside.bound[a.name] = given;
  }
  Scope own;
  for (std::size_t i = 0; i < f.inputs.size() && i < node.inputs.size(); ++i)
    if (!node.inputs[i].empty()) own.values[f.inputs[i]] = *scope.find(node.inputs[i]);
  // A function's optional inputs may be absent: its nodes then lack them too.
  std::vector<OnnxNode> trimmed;
  const std::vector<OnnxNode>* body = &f.nodes;
  if (node.inputs.size() < f.inputs.size() ||
      std::find(node.inputs.begin(), node.inputs.end(), "") != node.inputs.end()) {
    trimmed = f.nodes;
    for (OnnxNode& n : trimmed)
      for (std::string& input : n.inputs)
        for (std::size_t i = 0; i < f.inputs.size(); ++i)
          if (input == f.inputs[i] && !own.values.count(input)) {
            input.clear();
            break;
          }
    body = &trimmed;
  }
  run(*body, inside, own);
  if (!ok()) return;
  for (std::size_t i = 0; i < f.outputs.size() && i < node.outputs.size(); ++i) {
    if (node.outputs[i].empty()) continue;
    const ValuePtr* v = own.find(f.outputs[i]);
    if (!v)
      return refuse({ErrorCode::malformed,
                     message(OnnxMessage::output_missing, printable(f.outputs[i])), file_.name(),
                     std::nullopt});
    scope.values[node.outputs[i]] = *v;
  }
}

std::vector<ValuePtr> Importer::run_inside(const OnnxGraph& g, const Context& context,
                                           Scope& scope) {
  if (context.depth >= kMostDepth) {
    refuse({ErrorCode::malformed, message(OnnxMessage::too_deep, kMostDepth), file_.name(),
            std::nullopt});
    return {};
  }
  add_initializers(g, scope);
  run(g.nodes, context, scope);
  std::vector<ValuePtr> out;
  for (const OnnxValueInfo& o : g.outputs) {
    if (!ok()) return {};
    const ValuePtr* v = scope.find(o.name);
    if (!v)
      refuse({ErrorCode::malformed, message(OnnxMessage::output_missing, printable(o.name)),
              file_.name(), std::nullopt});
    else
      out.push_back(*v);
  }
  return out;
}

Importer::Mark Importer::mark() {
  // Trying a branch takes time in proportion to what is there already.
  work_ += static_cast<std::int64_t>((graph_.weights.size() + constants_.size()) / 64);
  Mark m{graph_.nodes.size(), graph_.values.size(), graph_.weights.size(),
         constants_.size(),   notes_.size(),        {}};
  for (const GraphWeight& w : graph_.weights) m.trains.push_back(w.trains);
  return m;
}

void Importer::back_to(const Mark& m) {
  graph_.nodes.resize(m.nodes);
  graph_.values.resize(m.values);
  graph_.weights.resize(m.weights);
  constants_.resize(m.constants);
  notes_.resize(m.notes);
  for (std::size_t i = 0; i < m.weights; ++i) graph_.weights[i].trains = m.trains[i];
  for (Constant& c : constants_)
    if (c.weight && *c.weight >= m.weights) c.weight.reset();
}

Graph Importer::finish(const std::vector<ValuePtr>& outputs) {
  Graph out;
  std::vector<bool> value_used(graph_.values.size()), node_used(graph_.nodes.size());
  std::vector<std::optional<WeightId>> weight(graph_.weights.size());
  for (const ValuePtr& v : outputs)
    if (v->id) {
      value_used[*v->id] = true;
      out.outputs.push_back(*v->id);
    }
  // What no output needs is not run.
  for (std::size_t i = graph_.nodes.size(); i-- > 0;) {
    const GraphNode& n = graph_.nodes[i];
    for (ValueId v : n.outputs) node_used[i] = node_used[i] || value_used[v];
    if (node_used[i])
      for (ValueId v : n.inputs) value_used[v] = true;
  }
  for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
    if (!node_used[i]) continue;
    GraphNode n = std::move(graph_.nodes[i]);
    for (WeightId& w : n.weights) {
      if (!weight[w]) {
        out.weights.push_back(std::move(graph_.weights[w]));
        weight[w] = static_cast<WeightId>(out.weights.size() - 1);
      }
      w = *weight[w];
    }
    out.nodes.push_back(std::move(n));
  }
  out.values = std::move(graph_.values);
  out.inputs = std::move(graph_.inputs);
  return out;
}

}  // namespace trigon::onnx
