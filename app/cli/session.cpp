#include "session.hpp"

#include <algorithm>
#include <cstdio>

#include "combinations.hpp"
#include "hardware/names.hpp"
#include "hardware/parse.hpp"
#include "item.hpp"
#include "library/library.hpp"
#include "model/gguf_file_type.hpp"

namespace trigon {
namespace {

std::optional<std::filesystem::path> data_folder(const Call& call) {
  const Setting* s = call.settings.find("data");
  return s ? std::optional<std::filesystem::path>(s->text) : std::nullopt;
}

// Makers are known by the catalogue; a misspelt one would exclude everything in silence.
Result<void> check_vendors(const Session& s, const Settings& settings) {
  std::vector<std::string_view> known;
  for (const Accelerator& a : s.all->hardware.accelerators.all())
    if (std::find(known.begin(), known.end(), a.vendor) == known.end()) known.push_back(a.vendor);
  for (const std::string& v : s.asking.objective.vendors) {
    if (std::find(known.begin(), known.end(), v) != known.end()) continue;
    std::string list;
    for (std::string_view k : known) list += (list.empty() ? "" : ", ") + std::string(k);
    auto near = nearest_name(v, known);
    return fail(ErrorCode::unknown_name, message(BaseMessage::unknown_name, "vendor", v),
                settings.find("vendor")->origin,
                near ? message(BaseMessage::nearest_name, *near)
                     : message(BaseMessage::choose_one_of, list));
  }
  return {};
}

void with_host(const Session& s, Cluster& cluster) {
  if (s.asking.host_memory) cluster.host.memory = s.asking.host_memory;
  if (s.asking.host_bandwidth) cluster.host.bandwidth = s.asking.host_bandwidth;
  if (s.asking.loader_rate) cluster.host.items_per_second = s.asking.loader_rate;
  if (s.asking.disk) cluster.host.disk = s.asking.disk;
}

}  // namespace

Result<std::unique_ptr<const Catalogues>> load_catalogues(const Call& call) {
  return Catalogues::load(data_folder(call));
}

Result<Session> open_session(Call& call, const std::string& model) {
  Session s;
  auto asking = read_question(call.settings);
  if (!asking) return tl::unexpected(asking.error());
  s.asking = std::move(*asking);
  if (auto good = check_combinations(call.line, s.asking.job.kind); !good)
    return tl::unexpected(good.error());
  auto all = load_catalogues(call);
  if (!all) return tl::unexpected(all.error());
  s.all = std::move(*all);
  if (auto good = check_vendors(s, call.settings); !good) return tl::unexpected(good.error());
  if (const Setting* card = call.settings.find("why-not")) {
    auto found = s.all->hardware.accelerators.find(card->text, card->origin);
    if (!found) return tl::unexpected(found.error());
    s.asking.objective.why_not = (*found)->id;
    call.style.why_not = (*found)->id;
  }
  if (!model.empty()) {
    auto item = read_item(call.settings);
    if (!item) return tl::unexpected(item.error());
    auto opened = open_model(model, s.all->models, s.all->networks, *item);
    if (!opened) return tl::unexpected(opened.error());
    // A file type that mixes formats ("q4_k_m") is a property of the model.
    if (const Setting* quant = call.settings.find("quant"); quant && !format_by_name(quant->text))
      if (auto mixed = in_gguf_file_type(*opened, quant->text)) *opened = std::move(*mixed);
    s.model = std::make_unique<const Model>(std::move(*opened));
  }
  call.warnings.insert(call.warnings.end(), s.asking.warnings.begin(), s.asking.warnings.end());
  s.asked = asked_of(call);
  s.asked.model = s.model ? s.model->id : std::string();
  s.asked.engine = s.asking.engine;
  s.asked.plan = s.asking.plan;
  s.asked.objective = s.asking.objective;
  if (call.json) s.asked.data_version = data_version(s.all->facts);
  s.question.model = s.model.get();
  s.question.job = s.asking.job;
  s.question.plan = s.asking.plan;
  s.question.engine = s.asking.engine;
  s.question.explain = call.style.explain;
  return s;
}

Result<Cluster> hardware_of(const Session& s, const std::string& text, const std::string& where) {
  auto cluster = parse_hardware(text, s.all->hardware, where);
  if (!cluster) return cluster;
  with_host(s, *cluster);
  return cluster;
}

Result<std::vector<Cluster>> candidates_of(const Session& s, const std::string& text,
                                           const std::string& where) {
  auto clusters = parse_hardware_candidates(text, s.all->hardware, where);
  if (!clusters) return clusters;
  for (Cluster& c : *clusters) with_host(s, c);
  return clusters;
}

std::string data_version(const FactStore& facts) {
  std::string newest;
  for (const FactSheet& sheet : facts.sheets())
    if (sheet.date > newest) newest = sheet.date;
  std::uint64_t hash = 14695981039346656037u;  // FNV-1a
  for (char c : facts.packed()) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  char text[16];
  std::snprintf(text, sizeof text, "%08x", static_cast<unsigned>(hash ^ (hash >> 32)));
  return newest + "+" + text;
}

std::string data_version_of(const Call& call) {
  auto folder = data_folder(call);
  auto facts = folder ? FactStore::with_directory(*folder) : FactStore::embedded();
  return facts ? data_version(*facts) : std::string("-");
}

}  // namespace trigon
