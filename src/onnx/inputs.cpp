#include "onnx/inputs.hpp"

#include <algorithm>
#include <set>

#include "model/json_value.hpp"
#include "onnx/messages.hpp"
#include "onnx/value.hpp"

namespace trigon::onnx {
namespace {

constexpr std::size_t kMostListed = 6;

// "past + 1": the sum of bound symbols and numbers.
std::optional<std::int64_t> evaluate(const std::string& symbol,
                                     const std::map<std::string, std::int64_t>& bound) {
  std::int64_t sum = 0;
  std::size_t from = 0;
  while (true) {
    const auto plus = symbol.find(" + ", from);
    const std::string part =
        symbol.substr(from, plus == std::string::npos ? std::string::npos : plus - from);
    std::int64_t v = 0;
    if (auto it = bound.find(part); it != bound.end()) {
      v = it->second;
    } else {
      if (part.empty() || part.size() > 12 ||
          part.find_first_not_of("0123456789") != std::string::npos)
        return std::nullopt;
      v = std::stoll(part);
    }
    auto next = checked_add(sum, v);
    if (!next) return std::nullopt;
    sum = *next;
    if (plus == std::string::npos) return sum;
    from = plus + 3;
  }
}

class Resolver {
 public:
  Resolver(const OnnxFile& file, const ItemOptions& item, const std::string& where,
           std::vector<Message>& notes)
      : item_(item), where_(where), notes_(notes) {
    std::set<std::string> stored;
    for (const OnnxTensor& t : file.graph.initializers) stored.insert(t.name);
    for (const OnnxValueInfo& v : file.graph.inputs)
      if (!stored.count(v.name)) inputs_.push_back(v);
  }

  Result<Inputs> run() {
    if (item_.audio_seconds) return not_for("--audio");
    if (item_.steps) return not_for("--steps");
    if (item_.guidance) return not_for("--guidance");
    for (const OnnxValueInfo& v : inputs_)
      if (!v.tensor) return bad(message(OnnxMessage::input_without_type, printable(v.name)));
    if (auto e = said_shapes()) return tl::unexpected(*e);
    fixed_batches();
    batches();
    if (auto e = pixels()) return tl::unexpected(*e);
    if (auto e = tokens()) return tl::unexpected(*e);
    Inputs out;
    out.fixed_batch = fixed_;
    bool open = false;
    for (OnnxValueInfo& v : inputs_) {
      InputSizes s{v.name, v.type, {}};
      if (!v.shape) {
        open = true;
        continue;
      }
      for (OnnxDimension& d : *v.shape) {
        if (!d.value && !d.symbol.empty()) d.value = evaluate(d.symbol, bound_);
        open = open || !d.value;
        s.shape.push_back(d.value.value_or(1));
      }
      if (!checked_elements(s.shape))
        return bad(
            message(OnnxMessage::impossible_size, "input", printable(v.name), shape_text(s.shape)));
      out.sizes.push_back(std::move(s));
    }
    if (open) return ask();
    if (!batched_.empty()) notes_.push_back(message(OnnxMessage::note_batch, batched_));
    if (fixed_ > 1) notes_.push_back(message(OnnxMessage::note_fixed_batch, fixed_));
    return out;
  }

 private:
  Error error(Message what, std::optional<Message> hint = std::nullopt, std::string at = "") {
    return {ErrorCode::bad_argument, std::move(what), at.empty() ? where_ : at, std::move(hint)};
  }
  tl::unexpected<Error> bad(Message what) { return tl::unexpected<Error>(error(std::move(what))); }
  tl::unexpected<Error> not_for(const char* flag) {
    return tl::unexpected<Error>(
        error(message(OnnxMessage::option_not_for_onnx, flag, where_), std::nullopt, flag));
  }

  static std::string declared(const OnnxValueInfo& v) {
    if (!v.shape) return "?";
    std::string out;
    for (const OnnxDimension& d : *v.shape)
      out += (out.empty() ? "" : "x") + (d.value            ? std::to_string(*d.value)
                                         : d.symbol.empty() ? std::string("?")
                                                            : printable(d.symbol, 40));
    return out.empty() ? "scalar" : out;
  }

  void bind(OnnxDimension& d, std::int64_t v) {
    if (!d.symbol.empty()) bound_.emplace(d.symbol, v);
    d.value = v;
  }

  std::optional<Error> said_shapes() {
    for (const auto& said : item_.shapes) {
      const std::string& name = said.first;
      const std::vector<std::int64_t>& sizes = said.second;
      auto it = std::find_if(inputs_.begin(), inputs_.end(),
                             [&](const OnnxValueInfo& v) { return v.name == name; });
      if (it == inputs_.end()) {
        std::string list;
        for (std::size_t i = 0; i < inputs_.size() && i < kMostListed; ++i)
          list += (list.empty() ? "" : ", ") + printable(inputs_[i].name);
        if (inputs_.size() > kMostListed) list += " ...";
        return error(message(OnnxMessage::no_such_input, printable(name), list), std::nullopt,
                     "--shape");
      }
      auto conflict = [&] {
        return error(
            message(OnnxMessage::shape_conflict, printable(name), declared(*it), shape_text(sizes)),
            std::nullopt, "--shape");
      };
      if (!it->shape) it->shape = std::vector<OnnxDimension>(sizes.size());
      if (it->shape->size() != sizes.size()) return conflict();
      for (std::size_t i = 0; i < sizes.size(); ++i) {
        OnnxDimension& d = (*it->shape)[i];
        const bool batch = i == 0 && sizes.size() > 1;
        if (d.value && *d.value != sizes[i] && !(batch && sizes[i] == 1)) return conflict();
        auto known = bound_.find(d.symbol);
        if (!d.symbol.empty() && known != bound_.end() && known->second != sizes[i])
          return conflict();
        if (batch && sizes.size() >= 4 && sizes[i] > 1)
          return error(message(OnnxMessage::batch_above_one, printable(name), sizes[i]),
                       std::nullopt, "--shape");
        if (batch && d.value && *d.value != sizes[i]) fixed_ = *d.value;
        bind(d, sizes[i]);
      }
    }
    for (OnnxValueInfo& v : inputs_)
      if (v.shape)
        for (OnnxDimension& d : *v.shape)
          if (!d.value && bound_.count(d.symbol)) d.value = bound_[d.symbol];
    return std::nullopt;
  }

  // Pictures and volumes whose batch the file fixes.
  void fixed_batches() {
    std::int64_t batch = 1;
    for (const OnnxValueInfo& v : inputs_) {
      if (!v.shape || v.shape->size() < 4 || v.shape->size() > 5) continue;
      const auto n = v.shape->front().value;
      if (!n || *n < 2) continue;
      if (batch != 1 && batch != *n) return;
      batch = *n;
    }
    if (batch == 1) return;
    for (OnnxValueInfo& v : inputs_)
      if (v.shape && !v.shape->empty() && v.shape->front().value == batch)
        v.shape->front().value = 1;
    fixed_ = batch;
  }

  // Symbols that exporters give to the batch, wherever it stands.
  static bool is_batch(const std::string& symbol) {
    for (const char* known : {"batch", "batch_size", "batchsize", "Batch", "N", "B", "bs", "bsz"})
      if (symbol == known) return true;
    return false;
  }

  // An open first dimension is the batch, unless its symbol also stands elsewhere.
  void batches() {
    std::set<std::string> leading, elsewhere;
    for (const OnnxValueInfo& v : inputs_) {
      if (!v.shape) continue;
      for (std::size_t i = 0; i < v.shape->size(); ++i) {
        const std::string& s = (*v.shape)[i].symbol;
        if (s.empty()) continue;
        if (i > 0)
          elsewhere.insert(s);
        else if (v.shape->size() > 1)
          leading.insert(s);
      }
    }
    for (OnnxValueInfo& v : inputs_) {
      if (!v.shape || v.shape->empty()) continue;
      bool found = false;
      for (std::size_t i = 0; i < v.shape->size(); ++i) {
        OnnxDimension& d = (*v.shape)[i];
        if (d.value) continue;
        const bool first = i == 0 && !elsewhere.count(d.symbol) &&
                           (v.shape->size() > 1 || leading.count(d.symbol));
        if (!first && !is_batch(d.symbol)) continue;
        bind(d, 1);
        found = true;
      }
      if (!found) continue;
      if (batched_.size() < 200) batched_ += (batched_.empty() ? "" : ", ") + printable(v.name);
    }
  }

  // Where height and width are: 2 and 3 after the channels, 1 and 2 before them.
  static std::size_t height_of(const OnnxValueInfo& v) {
    if (!v.shape || v.shape->size() != 4) return 0;
    auto channels = [&](std::size_t i) {
      const auto n = (*v.shape)[i].value;
      return n && (*n == 1 || *n == 3 || *n == 4);
    };
    if (channels(1)) return 2;
    if (channels(3)) return 1;
    return 2;
  }

  std::optional<Error> pixels() {
    if (item_.size.empty()) return std::nullopt;
    bool found = false;
    for (OnnxValueInfo& v : inputs_) {
      const std::size_t at = height_of(v);
      if (at == 0) continue;
      OnnxDimension &h = (*v.shape)[at], &w = (*v.shape)[at + 1];
      const std::int64_t height = item_.size.front(), width = item_.size.back();
      if (h.value && w.value && (*h.value != height || *w.value != width)) {
        if (item_.shapes.count(v.name) || inputs_.size() > 1) continue;
        return error(message(OnnxMessage::shape_conflict, printable(v.name), declared(v),
                             shape_text({height, width})),
                     std::nullopt, "--image");
      }
      found = true;
      if (!h.value) bind(h, height);
      if (!w.value) bind(w, width);
    }
    if (!found) return error(message(OnnxMessage::no_open_image, where_), std::nullopt, "--image");
    return std::nullopt;
  }

  std::optional<Error> tokens() {
    if (!item_.tokens) return std::nullopt;
    bool found = false;
    std::string symbol;
    // The first input of tokens and those of the same length; others (with a past) are asked for.
    for (OnnxValueInfo& v : inputs_) {
      if (!v.shape || v.shape->size() != 2 || (v.type != kInt64 && v.type != kInt32)) continue;
      OnnxDimension& d = (*v.shape)[1];
      if (d.value && *d.value != *item_.tokens) continue;
      if (d.symbol.find(" + ") != std::string::npos) continue;
      if (found && d.symbol != symbol) continue;
      symbol = d.symbol;
      bind(d, *item_.tokens);
      found = true;
    }
    if (!found)
      return error(message(OnnxMessage::no_open_tokens, where_), std::nullopt, "--tokens-per-item");
    return std::nullopt;
  }

  tl::unexpected<Error> ask() {
    std::string open, hint;
    std::set<std::string> covered;
    std::size_t listed = 0;
    for (const OnnxValueInfo& v : inputs_) {
      bool unknown = !v.shape, fresh = !v.shape;
      std::string example;
      const std::size_t height = height_of(v);
      for (std::size_t i = 0; v.shape && i < v.shape->size(); ++i) {
        const OnnxDimension& d = (*v.shape)[i];
        std::int64_t n =
            d.value.value_or(height > 0 && (i == height || i == height + 1) ? 224 : 128);
        example += (i ? "x" : "") + std::to_string(n);
        if (d.value) continue;
        unknown = true;
        fresh = fresh || d.symbol.empty() || covered.insert(d.symbol).second;
      }
      if (!unknown) continue;
      if (++listed <= kMostListed)
        open += (open.empty() ? "" : ", ") + printable(v.name) + " (" + declared(v) + ")";
      if (fresh && listed <= kMostListed)
        hint += (hint.empty() ? "" : " ") +
                ("--shape " + printable(v.name) + "=" + (v.shape ? example : "1x128"));
    }
    if (listed > kMostListed) open += " ...";
    return tl::unexpected<Error>(
        error(message(OnnxMessage::open_dimensions, open), message(OnnxMessage::say_shapes, hint)));
  }

  const ItemOptions& item_;
  std::string where_;
  std::vector<Message>& notes_;
  std::vector<OnnxValueInfo> inputs_;
  std::map<std::string, std::int64_t> bound_;
  std::string batched_;
  std::int64_t fixed_ = 1;
};

}  // namespace

Result<Inputs> resolve_inputs(const OnnxFile& file, const ItemOptions& item,
                              const std::string& where, std::vector<Message>& notes) {
  return Resolver(file, item, where, notes).run();
}

}  // namespace trigon::onnx
