#include "onnx/proto.hpp"

#include "model/json_value.hpp"
#include "model/messages.hpp"
#include "onnx/messages.hpp"
#include "onnx/wire.hpp"

namespace trigon::onnx {
namespace {

// Graphs within graphs; real models nest two or three.
constexpr int kMostDepth = 24;

class Reader {
 public:
  explicit Reader(const ByteSource& file) : file_(file) {}
  WireFile& wire() { return file_; }

  OnnxFile model(Span s) {
    OnnxFile out;
    bool graph = false;
    for (Fields f(file_, s); f.next();) switch (f.number()) {
        case 1:
          out.ir_version = f.integer();
          break;
        case 2:
          out.producer = f.text();
          break;
        case 3:
          out.producer_version = f.text();
          break;
        case 7:
          if (!f.has_span()) return refuse_all();
          out.graph = this->graph(f.span(), 0);
          graph = true;
          break;
        case 8:
          opset(f.span(), out.opsets);
          break;
        case 25:
          if (file_.spend(1)) out.functions.push_back(function(f.span()));
          break;
        default:
          break;
      }
    if (!graph) return refuse_all();
    return out;
  }

  OnnxTensor tensor(Span s) {
    OnnxTensor t;
    for (Fields f(file_, s); f.next();) switch (f.number()) {
        case 1:
          append_integers(file_, f, t.dims, 64);
          break;
        case 2:
          t.type = static_cast<std::int32_t>(f.integer());
          break;
        case 4:
          t.typed += append_floats(file_, f, t.reals, 4, kMostContents);
          break;
        case 5:
        case 7:
        case 11:
          t.typed += append_integers(file_, f, t.integers, kMostContents);
          break;
        case 6:
          ++t.typed;
          break;
        case 8:
          t.name = f.text();
          break;
        case 9:
          t.raw_at = f.span().begin;
          t.raw_size = f.span().size();
          break;
        case 10:
          t.typed += append_floats(file_, f, t.reals, 8, kMostContents);
          break;
        case 13:
          external(f.span(), t);
          break;
        case 14:
          if (f.integer() == 1 && !t.elsewhere) t.elsewhere = "";
          break;
        default:
          break;
      }
    if (file_.ok()) check(t, s);
    return t;
  }

 private:
  OnnxFile refuse_all() {
    file_.refuse({ErrorCode::malformed, message(ModelMessage::not_this_format, "ONNX"),
                  file_.source().name(), message(ModelMessage::get_file_again)});
    return {};
  }

  void external(Span s, OnnxTensor& t) {
    std::string key, value;
    for (Fields f(file_, s); f.next();) {
      if (f.number() == 1) key = f.text();
      if (f.number() == 2) value = f.text();
    }
    if (key == "location") t.elsewhere = value;
  }

  // The shape is possible and the data, where it is in this file, has its size.
  void check(const OnnxTensor& t, Span s) {
    std::int64_t n = 1;
    bool possible = true;
    for (std::int64_t d : t.dims) {
      auto product = d < 0 ? std::nullopt : checked_mul(n, d);
      possible = possible && product;
      n = product.value_or(0);
    }
    auto bits = checked_mul(n, std::max<std::int64_t>(bits_of(t.type), 8));
    if (!possible || !bits || *bits > INT64_MAX - 7) {
      file_.refuse({ErrorCode::malformed,
                    message(ModelMessage::bad_tensor_shape, printable(t.name)),
                    file_.source().where(s.begin), std::nullopt});
      return;
    }
    const std::int64_t bytes = (n * bits_of(t.type) + 7) / 8;
    if (t.raw_size > 0 && bits_of(t.type) > 0 && t.raw_size != bytes)
      file_.refuse({ErrorCode::malformed,
                    message(ModelMessage::bad_tensor_size, printable(t.name), t.raw_size, bytes),
                    file_.source().where(s.begin), message(ModelMessage::get_file_again)});
  }

  void opset(Span s, std::map<std::string, std::int64_t>& out) {
    std::string domain;
    std::int64_t version = 0;
    for (Fields f(file_, s); f.next();) {
      if (f.number() == 1) domain = f.text();
      if (f.number() == 2) version = f.integer();
    }
    if (domain == "ai.onnx") domain.clear();
    if (file_.spend(1)) out[domain] = version;
  }

  OnnxFunction function(Span s) {
    OnnxFunction out;
    for (Fields f(file_, s); f.next();) switch (f.number()) {
        case 1:
          out.name = f.text();
          break;
        case 4:
          text(f, out.inputs);
          break;
        case 5:
          text(f, out.outputs);
          break;
        case 6:
          text(f, out.attributes);
          break;
        case 7:
          if (file_.spend(4)) out.nodes.push_back(node(f.span(), 0));
          break;
        case 9:
          opset(f.span(), out.opsets);
          break;
        case 10:
          out.domain = f.text();
          break;
        case 11:
          if (file_.spend(4)) out.defaults.push_back(attribute(f.span(), 0));
          break;
        case 13:
          out.overload = f.text();
          break;
        default:
          break;
      }
    if (out.domain == "ai.onnx") out.domain.clear();
    return out;
  }

  void text(Fields& f, std::vector<std::string>& out) {
    if (file_.spend(1)) out.push_back(f.text());
  }

  OnnxNode node(Span s, int depth) {
    OnnxNode n;
    for (Fields f(file_, s); f.next();) switch (f.number()) {
        case 1:
          text(f, n.inputs);
          break;
        case 2:
          text(f, n.outputs);
          break;
        case 3:
          n.name = f.text();
          break;
        case 4:
          n.op = f.text();
          break;
        case 5:
          if (file_.spend(4)) n.attributes.push_back(attribute(f.span(), depth));
          break;
        case 7:
          n.domain = f.text();
          break;
        case 8:
          n.overload = f.text();
          break;
        default:
          break;
      }
    if (n.domain == "ai.onnx") n.domain.clear();
    return n;
  }

  OnnxAttribute attribute(Span s, int depth) {
    OnnxAttribute a;
    for (Fields f(file_, s); f.next();) switch (f.number()) {
        case 1:
          a.name = f.text();
          break;
        case 2:
          a.real = float_of(f.raw());
          break;
        case 3:
          a.integer = f.integer();
          break;
        case 4:
          a.text = f.span().size() <= 65535 ? f.text() : std::string();
          break;
        case 5:
          a.tensor = std::make_shared<OnnxTensor>(tensor(f.span()));
          break;
        case 6:
          if (depth >= kMostDepth) {
            file_.refuse({ErrorCode::unsupported, message(OnnxMessage::too_deep, kMostDepth),
                          file_.source().where(f.span().begin), std::nullopt});
          } else if (file_.spend(4)) {
            a.graph = std::make_shared<OnnxGraph>(graph(f.span(), depth + 1));
          }
          break;
        case 7:
          append_floats(file_, f, a.reals, 4, kMostContents);
          a.list = true;
          break;
        case 8:
          append_integers(file_, f, a.integers, kMostContents);
          a.list = true;
          break;
        case 9:
          // Texts of classifiers and tokenizers can be long; only their number matters.
          if (file_.spend(1)) a.texts.push_back(f.span().size() <= 64 ? f.text() : std::string());
          a.list = true;
          break;
        case 21:
          a.reference = f.text();
          break;
        case 22:
          a.tensor = std::make_shared<OnnxTensor>(sparse(f.span()));
          break;
        default:
          break;
      }
    return a;
  }

  // The dense tensor it stands for; its data stays where it is.
  OnnxTensor sparse(Span s) {
    OnnxTensor out;
    for (Fields f(file_, s); f.next();) {
      if (f.number() == 1) {
        OnnxTensor values = tensor(f.span());
        out.name = values.name;
        out.type = values.type;
      }
      if (f.number() == 3) append_integers(file_, f, out.dims, 64);
    }
    if (file_.ok()) check(out, s);
    return out;
  }

  OnnxGraph graph(Span s, int depth) {
    OnnxGraph g;
    for (Fields f(file_, s); f.next();) switch (f.number()) {
        case 1:
          if (file_.spend(4)) g.nodes.push_back(node(f.span(), depth));
          break;
        case 2:
          g.name = f.text();
          break;
        case 5:
          if (file_.spend(4)) g.initializers.push_back(tensor(f.span()));
          break;
        case 11:
          if (file_.spend(4)) g.inputs.push_back(value_info(f.span()));
          break;
        case 12:
          if (file_.spend(4)) g.outputs.push_back(value_info(f.span()));
          break;
        case 15:
          if (file_.spend(4)) g.initializers.push_back(sparse(f.span()));
          break;
        default:
          break;
      }
    return g;
  }

  OnnxValueInfo value_info(Span s) {
    OnnxValueInfo v;
    for (Fields f(file_, s); f.next();) {
      if (f.number() == 1) v.name = f.text();
      if (f.number() == 2)
        for (Fields t(file_, f.span()); t.next();)
          if (t.number() == 1) tensor_type(t.span(), v);
    }
    return v;
  }

  void tensor_type(Span s, OnnxValueInfo& v) {
    v.tensor = true;
    for (Fields f(file_, s); f.next();) {
      if (f.number() == 1) v.type = static_cast<std::int32_t>(f.integer());
      if (f.number() != 2) continue;
      v.shape.emplace();
      for (Fields d(file_, f.span()); d.next();) {
        if (d.number() != 1 || !file_.spend(1)) continue;
        OnnxDimension dimension;
        for (Fields x(file_, d.span()); x.next();) {
          if (x.number() == 1) dimension.value = x.integer();
          if (x.number() == 2) dimension.symbol = x.text();
        }
        v.shape->push_back(std::move(dimension));
      }
    }
  }

  WireFile file_;
};

}  // namespace

const OnnxAttribute* OnnxNode::attribute(std::string_view key) const {
  for (const OnnxAttribute& a : attributes)
    if (a.name == key) return &a;
  return nullptr;
}

Result<OnnxFile> read_onnx_file(const ByteSource& file) {
  Reader r(file);
  OnnxFile out = r.model({0, file.size()});
  if (!r.wire().ok()) return tl::unexpected(*r.wire().error());
  return out;
}

Result<OnnxTensor> read_tensor_file(const ByteSource& file) {
  Reader r(file);
  OnnxTensor out = r.tensor({0, file.size()});
  if (!r.wire().ok()) return tl::unexpected(*r.wire().error());
  return out;
}

}  // namespace trigon::onnx
