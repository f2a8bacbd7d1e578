#include "onnx/onnx_model.hpp"

#include <algorithm>

#include "model/json_value.hpp"
#include "onnx/fuse_attention.hpp"
#include "onnx/importer.hpp"
#include "onnx/messages.hpp"

namespace trigon {
namespace onnx {
namespace {

const char* type_name(std::int32_t type) {
  switch (type) {
    case kFloat:
      return "float32";
    case kUint8:
      return "uint8";
    case kInt8:
      return "int8";
    case kUint16:
      return "uint16";
    case kInt16:
      return "int16";
    case kInt32:
      return "int32";
    case kInt64:
      return "int64";
    case kString:
      return "string";
    case kBool:
      return "bool";
    case kFloat16:
      return "float16";
    case kDouble:
      return "float64";
    case kUint32:
      return "uint32";
    case kUint64:
      return "uint64";
    case kComplex64:
      return "complex64";
    case kComplex128:
      return "complex128";
    case kBfloat16:
      return "bfloat16";
    case kFloat8E4M3FN:
      return "float8_e4m3fn";
    case kFloat8E4M3FNUZ:
      return "float8_e4m3fnuz";
    case kFloat8E5M2:
      return "float8_e5m2";
    case kFloat8E5M2FNUZ:
      return "float8_e5m2fnuz";
    case kUint4:
      return "uint4";
    case kInt4:
      return "int4";
    case kFloat4E2M1:
      return "float4_e2m1";
    case kFloat8E8M0:
      return "float8_e8m0";
    case kUint2:
      return "uint2";
    case kInt2:
      return "int2";
    default:
      return "";
  }
}

// Every tensor that the file stores, those of nested graphs too.
class Tensors {
 public:
  explicit Tensors(std::string file) : file_(std::move(file)) {}
  void graph(const OnnxGraph& g) {
    for (const OnnxTensor& t : g.initializers) add(t, t.name);
    nodes(g.nodes);
  }
  void nodes(const std::vector<OnnxNode>& all) {
    for (const OnnxNode& n : all)
      for (const OnnxAttribute& a : n.attributes) {
        if (a.tensor) add(*a.tensor, node_name(n));
        if (a.graph) graph(*a.graph);
      }
  }
  std::vector<Tensor> list;
  std::int64_t elsewhere = 0;

 private:
  void add(const OnnxTensor& t, const std::string& name) {
    Tensor out;
    out.name = printable(name, 400);
    out.format = format_of_type(t.type).value_or(Format::unknown);
    out.stored_type = type_name(t.type);
    if (out.stored_type.empty()) out.stored_type = "type " + std::to_string(t.type);
    out.shape = t.dims;
    if (auto n = checked_elements(t.dims); n && bits_of(t.type) > 0)
      out.bytes = ByteCount((*n * bits_of(t.type) + 7) / 8);
    out.file = t.elsewhere ? printable(*t.elsewhere, 400) : file_;
    elsewhere += t.elsewhere.has_value();
    list.push_back(std::move(out));
  }
  std::string file_;
};

bool is_picture(const InputSizes& v, std::size_t& height) {
  if (v.shape.size() != 4) return false;
  auto channels = [](std::int64_t n) { return n == 1 || n == 3 || n == 4; };
  height = channels(v.shape[1]) ? 2 : 1;
  return channels(v.shape[1]) || channels(v.shape[3]);
}

// Names that exporters give to sound and what is computed from it.
bool is_sound(const std::string& name) {
  for (const char* known :
       {"audio", "audio_signal", "input_features", "input_values", "mel", "melspectrogram", "pcm",
        "speech", "speech_features", "waveform", "waveforms", "wav"})
    if (name == known) return true;
  return false;
}

Item item_of(const std::vector<InputSizes>& inputs) {
  std::size_t height = 0;
  for (const InputSizes& v : inputs) {
    if (is_picture(v, height)) return {WorkUnit::image, {v.shape[height], v.shape[height + 1]}};
    if (v.shape.size() == 5) return {WorkUnit::volume, {v.shape.begin() + 2, v.shape.end()}};
  }
  for (const InputSizes& v : inputs)
    if (is_sound(v.name)) return {WorkUnit::utterance, item_shape(v.shape)};
  for (const InputSizes& v : inputs)
    if (v.shape.size() == 2 && (v.type == kInt64 || v.type == kInt32))
      return {WorkUnit::sequence, {v.shape[1]}};
  return {WorkUnit::sample, inputs.empty() ? TensorShape{} : item_shape(inputs.front().shape)};
}

}  // namespace

Result<Imported> import_graph(const ByteSource& source, const OnnxFile& file,
                              const std::vector<InputSizes>& inputs,
                              const std::map<std::string, OnnxTensor>& contents) {
  Importer importer(source, file);
  Scope scope;
  importer.add_initializers(file.graph, scope);
  for (const InputSizes& v : inputs) {
    ValuePtr value = importer.add_input(v.type, v.shape, v.name);
    if (auto known = contents.find(v.name); known != contents.end()) {
      auto with = std::make_shared<Value>(*value);
      with->integers = integer_contents(source, known->second);
      with->reals = real_contents(source, known->second);
      value = with;
    }
    scope.values.emplace(v.name, value);
  }
  Context context;
  context.opsets = &file.opsets;
  if (importer.ok()) importer.run(file.graph.nodes, context, scope);
  std::vector<ValuePtr> outputs;
  Imported out;
  for (const OnnxValueInfo& o : file.graph.outputs) {
    if (!importer.ok()) break;
    const ValuePtr* v = scope.find(o.name);
    if (!v) {
      importer.refuse({ErrorCode::malformed,
                       message(OnnxMessage::output_missing, printable(o.name)), source.name(),
                       std::nullopt});
      break;
    }
    outputs.push_back(*v);
    out.outputs.push_back({o.name, (*v)->type, (*v)->shape, (*v)->items.has_value()});
  }
  if (!importer.ok()) return tl::unexpected(*importer.error());
  out.graph = importer.finish(outputs);
  fuse_attention(out.graph);
  out.notes = std::move(importer.notes());
  return out;
}

}  // namespace onnx

Result<Model> read_onnx(const ByteSource& file, const ItemOptions& item) {
  using namespace onnx;
  auto read = read_onnx_file(file);
  if (!read) return tl::unexpected(read.error());
  Model m;
  auto inputs = resolve_inputs(*read, item, file.name(), m.notes);
  if (!inputs) return tl::unexpected(inputs.error());
  auto imported = import_graph(file, *read, inputs->sizes);
  if (!imported) {
    Error e = imported.error();
    if (inputs->fixed_batch > 1 && !e.hint)
      e.hint = message(OnnxMessage::fixed_batch, inputs->fixed_batch);
    return tl::unexpected(e);
  }
  const std::string path = file.name();
  m.id = printable(path.substr(path.rfind('/') + 1), 200);
  const std::string maker =
      read->producer + (read->producer_version.empty() ? "" : " " + read->producer_version);
  m.architecture = printable(read->graph.name.empty() ? std::string("ONNX") : read->graph.name, 80);
  if (!maker.empty()) m.architecture += " (" + printable(maker, 60) + ")";
  m.source = printable(path, 400);
  m.item = item_of(inputs->sizes);
  Tensors tensors(m.source);
  tensors.graph(read->graph);
  for (const OnnxFunction& f : read->functions) tensors.nodes(f.nodes);
  std::int64_t stored = 0;
  for (const Tensor& t : tensors.list)
    stored = checked_add(stored, t.bytes.value_or(ByteCount()).value()).value_or(INT64_MAX);
  m.stored_bytes = ByteCount(stored);
  m.tensors = std::move(tensors.list);
  if (tensors.elsewhere > 0)
    m.notes.push_back(message(OnnxMessage::note_external, tensors.elsewhere));
  m.notes.insert(m.notes.end(), imported->notes.begin(), imported->notes.end());
  std::map<Format, std::int64_t> bytes;
  for (const GraphWeight& w : imported->graph.weights)
    bytes[w.format] += bytes_of(w.format, 1, elements(w.shape)).value_or(ByteCount()).value();
  m.weight_format = Format::f32;
  std::int64_t most = 0;
  for (const auto& [format, n] : bytes)
    if (n > most) {
      most = n;
      m.weight_format = format;
    }
  imported->graph.source = m.source;
  m.components.push_back({m.id, ComponentRole::network, std::move(imported->graph)});
  return m;
}

Result<Model> open_onnx_file(const std::string& path, const ItemOptions& item) {
  auto source = ByteSource::open(path);
  if (!source) return tl::unexpected(source.error());
  return read_onnx(*source, item);
}

}  // namespace trigon
