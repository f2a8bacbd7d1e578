#include "engine/catalog.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>

#include "base/fact_values.hpp"
#include "engine/policy_sheet.hpp"

namespace trigon {
namespace {

std::string folded(std::string_view s) {
  std::string out;
  for (char c : s) out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      std::size_t above = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1])});
      diagonal = above;
    }
  }
  return row[b.size()];
}

}  // namespace

std::vector<std::int64_t> parse_version(std::string_view text) {
  std::vector<std::int64_t> out;
  if (!text.empty() && !std::isdigit(static_cast<unsigned char>(text[0]))) text.remove_prefix(1);
  std::size_t i = 0;
  while (i < text.size() && std::isdigit(static_cast<unsigned char>(text[i]))) {
    std::int64_t n = 0;
    std::size_t digits = 0;
    while (i < text.size() && std::isdigit(static_cast<unsigned char>(text[i])) && digits < 15) {
      n = n * 10 + (text[i] - '0');
      ++i;
      ++digits;
    }
    out.push_back(n);
    if (i >= text.size() || text[i] != '.') break;
    ++i;
  }
  // What follows a number may be a suffix ("rc3", ".post1", "-dev"), not more of a commit.
  if (i < text.size() && std::isalnum(static_cast<unsigned char>(text[i])) && out.size() < 2)
    return {};
  return out;
}

Result<EngineCatalog> EngineCatalog::from(const FactStore& store) {
  EngineCatalog c;
  c.sheets_ = store.of_kind("engine");
  for (const FactSheet* s : c.sheets_) {
    std::vector<const FactGroup*> all;
    for (const FactGroup& g : s->groups) all.push_back(&g);
    if (auto p = policy_from(*s, all); !p) return tl::unexpected(p.error());
  }
  return c;
}

std::vector<std::string> EngineCatalog::ids() const {
  std::vector<std::string> out;
  for (const FactSheet* s : sheets_) out.push_back(s->id);
  return out;
}

Result<EnginePolicy> EngineCatalog::find(std::string_view name, std::string_view version,
                                         std::string_view date) const {
  const std::string wanted = folded(name);
  const FactSheet* sheet = nullptr;
  std::string nearest;
  std::size_t nearest_distance = 1000;
  for (const FactSheet* s : sheets_) {
    std::vector<std::string> names = s->texts("aliases");
    names.push_back(s->id);
    for (const std::string& n : names) {
      const std::string known = folded(n);
      if (known == wanted) sheet = s;
      std::size_t distance = edit_distance(known, wanted);
      if (distance < nearest_distance) {
        nearest_distance = distance;
        nearest = s->id;
      }
    }
  }
  if (!sheet) {
    std::optional<Message> hint;
    if (nearest_distance <= 3 && !wanted.empty())
      hint = message(BaseMessage::nearest_name, nearest);
    else {
      std::string all;
      for (const std::string& id : ids()) all += (all.empty() ? "" : ", ") + id;
      hint = message(BaseMessage::choose_one_of, all);
    }
    return fail(ErrorCode::unknown_name, message(BaseMessage::unknown_name, "engine", name),
                "--engine", hint);
  }

  // "V0" and "V1" name vLLM's engines, not versions; sheets translate such words.
  std::string resolved(version);
  std::vector<std::string> words = sheet->texts("version_words");
  for (std::size_t i = 0; i + 1 < words.size(); i += 2)
    if (folded(words[i]) == folded(version)) resolved = words[i + 1];
  while (!resolved.empty() && (resolved[0] == '>' || resolved[0] == '=' || resolved[0] == ' '))
    resolved.erase(0, 1);

  std::vector<Message> assumptions;
  std::vector<std::int64_t> asked;
  if (!resolved.empty()) {
    asked = parse_version(resolved);
    if (asked.empty())
      assumptions.push_back(message(EngineMessage::version_not_understood, sheet->id, version));
  }
  std::vector<const FactGroup*> entries;
  std::string current, current_date, first;
  for (const FactGroup& g : sheet->groups) {
    const std::string since = text_of(g, "since"), since_date = text_of(g, "since_date");
    bool taken;
    if (since.empty() && since_date.empty()) {
      taken = true;
    } else if (!asked.empty() && !since.empty()) {
      taken = parse_version(since) <= asked;
    } else if (!date.empty() && !since_date.empty()) {
      // Compare what both dates state: "2024-05" covers the whole month.
      std::size_t n = std::min(date.size(), since_date.size());
      taken = since_date.substr(0, n) <= date.substr(0, n);
    } else {
      taken = true;
    }
    if (first.empty()) first = since;
    if (!taken) continue;
    entries.push_back(&g);
    // Entries stand in any order: the latest names what is known.
    if (!since.empty() && (current.empty() || parse_version(current) <= parse_version(since)))
      current = since;
    if (!since_date.empty()) current_date = since_date;
  }
  auto p = policy_from(*sheet, entries);
  if (!p) return p;
  p->version = asked.empty() ? current : std::string(resolved);
  if (asked.empty()) {
    if (!date.empty() && !current.empty())
      assumptions.push_back(
          message(EngineMessage::version_current_at_date, sheet->id, current, date));
    else if (!current.empty() || !current_date.empty())
      assumptions.push_back(message(EngineMessage::version_newest, sheet->id,
                                    current.empty() ? current_date : current));
  } else if (current.empty() && !first.empty()) {
    assumptions.push_back(message(EngineMessage::version_before_first, sheet->id, resolved, first));
  }
  p->assumptions = std::move(assumptions);
  return p;
}

Result<EnginePolicy> EngineCatalog::default_for(EngineTask task, const Accelerator& card,
                                                const Model& model) const {
  const bool serving = task == EngineTask::serve || task == EngineTask::batch;
  const bool gguf = info(model.weight_format).gguf;
  // In order of preference; the first that runs on the card is taken.
  std::vector<const char*> order;
  const bool graphs = model.item && !language_stack(model);
  if (graphs)
    order = card.kind == DeviceKind::cpu ? std::vector<const char*>{"onnxruntime", "pytorch"}
            : serving ? std::vector<const char*>{"tensorrt", "pytorch", "onnxruntime"}
                      : std::vector<const char*>{"pytorch", "tensorflow"};
  else if (serving)
    order = gguf || card.unified_memory || card.kind != DeviceKind::gpu
                ? std::vector<const char*>{"llama.cpp", "vllm", "transformers"}
                : std::vector<const char*>{"vllm", "sglang", "llama.cpp", "transformers"};
  else if (task == EngineTask::train)
    order = {"megatron-lm", "torchtitan", "fsdp", "transformers"};
  else
    order = {"transformers", "fsdp"};
  for (const char* id : order) {
    auto p = find(id);
    if (!p) continue;
    if (serving ? !p->serves : !p->trains) continue;
    if (p->runs_on(card)) return p;
  }
  return fail(ErrorCode::unsupported, message(EngineMessage::no_engine_for, card.id), "--engine");
}

}  // namespace trigon
