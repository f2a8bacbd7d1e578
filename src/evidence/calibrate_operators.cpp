#include "evidence/calibrate_operators.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "evidence/csv.hpp"
#include "evidence/fit.hpp"
#include "evidence/operator_samples.hpp"

namespace trigon {
namespace {

DeviceModel bare_device(const Accelerator& a) {
  DeviceModel d;
  d.accelerator = &a;
  fill_units(d, a);
  for (MatrixCoefficients& m : d.operators.matrix) m = {0.8, 150, 0.5, 3, 1e-7, 0};
  d.operators.stream = {0.8, 1e5, 0};
  d.operators.attention = {0.5, 500, 1e-5, 0.8, 1e5, 5e-6, 0};
  d.operators.grouped_latency_seconds = 2e-5;
  d.operators.launch_seconds = 3e-6;
  d.per_node = 8;
  d.intra.one_way = a.peer_link.one_way.in_base();
  if (d.intra.one_way <= 0 && a.pcie_one_way) d.intra.one_way = a.pcie_one_way->in_base();
  d.intra.topology = PeerTopology::fabric_switch;
  return d;
}

double predicted(const DeviceModel& d, const Sample& s) {
  double t = 0;
  for (const Operator& op : s.ops) t += operator_time(d, op).seconds;
  return t;
}

double log_error(double a, double b) { return std::fabs(std::log(a / b)); }

// Half width of the central 68 % of the held-out log errors.
template <class F>
double held_out_error(std::size_t n, F&& error) {
  std::vector<double> e;
  for (std::size_t i = 0; i < n; ++i)
    if (double v = error(i); v >= 0) e.push_back(v);
  if (e.empty()) return 0;
  std::sort(e.begin(), e.end());
  return e[std::min(e.size() - 1, e.size() * 68 / 100)];
}

// Fits one block; `apply` copies trial coefficients into every device.
double fit_block(Bench& bench, const std::string& block, OperatorCoefficients& trial,
                 std::vector<FitParameter> parameters, int iterations) {
  const std::vector<Sample>& all = bench.samples[block];
  auto loss = [&] {
    for (DeviceModel& d : bench.devices) d.operators = trial;
    double sum = 0;
    std::size_t n = 0;
    for (const Sample& s : all)
      if (!s.held_out) sum += log_error(predicted(bench.devices[s.device], s), s.seconds), ++n;
    return n ? sum / static_cast<double>(n) : 0;
  };
  minimise(parameters, loss, iterations, 20240607);
  loss();
  return held_out_error(all.size(), [&](std::size_t i) {
    return all[i].held_out
               ? log_error(predicted(bench.devices[all[i].device], all[i]), all[i].seconds)
               : -1;
  });
}

CoefficientBlock matrix_block(const std::string& name, const MatrixCoefficients& m,
                              std::size_t rows) {
  return {name,
          {{"ceiling", m.ceiling},
           {"k_half", m.k_half},
           {"wave_exponent", m.wave_exponent},
           {"sharpness", m.sharpness},
           {"latency_seconds", m.latency_seconds},
           {"error", m.error}},
          rows};
}

CoefficientSheet fit_family(const std::string& family, Bench& bench) {
  CoefficientSheet sheet;
  sheet.id = "operators/" + family;
  for (const std::string& f : bench.files) sheet.source += (sheet.source.empty() ? "" : "; ") + f;
  OperatorCoefficients c = bench.devices[0].operators;
  auto matrix_parameters = [&](MathClass cls) {
    MatrixCoefficients& m = c.matrix[static_cast<std::size_t>(cls)];
    return std::vector<FitParameter>{{&m.ceiling, 0.05, 1.0},
                                     {&m.k_half, 1, 4000},
                                     {&m.wave_exponent, 0.01, 1},
                                     {&m.sharpness, 1, 10},
                                     {&m.latency_seconds, 1e-8, 1e-4}};
  };
  auto rows = [&](const char* block) { return bench.samples[block].size(); };
  if (rows("half")) {
    auto p = matrix_parameters(MathClass::half);
    p.push_back({&c.stream.ceiling, 0.2, 1.0});
    p.push_back({&c.stream.half_bytes, 1, 4e6});
    p.push_back({&c.launch_seconds, 5e-7, 2e-5});
    double error = fit_block(bench, "half", c, p, 2500);
    MatrixCoefficients& m = c.matrix[static_cast<std::size_t>(MathClass::half)];
    m.error = error;
    sheet.blocks.push_back(matrix_block("half", m, rows("half")));
    sheet.blocks.push_back(
        {"stream",
         {{"ceiling", c.stream.ceiling}, {"half_bytes", c.stream.half_bytes}, {"error", error}},
         rows("half")});
    sheet.blocks.push_back(
        {"launch", {{"seconds", c.launch_seconds}, {"error", error}}, rows("half")});
  }
  for (auto [block, cls] : {std::pair<const char*, MathClass>{"fp8", MathClass::fp8},
                            {"fp4", MathClass::fp4},
                            {"int8", MathClass::int8}}) {
    if (!rows(block)) continue;
    double error = fit_block(bench, block, c, matrix_parameters(cls), 1500);
    MatrixCoefficients& m = c.matrix[static_cast<std::size_t>(cls)];
    m.error = error;
    sheet.blocks.push_back(matrix_block(block, m, rows(block)));
  }
  if (rows("attention_prefill") && rows("attention_decode")) {
    AttentionCoefficients& a = c.attention;
    double pe = fit_block(bench, "attention_prefill", c,
                          {{&a.prefill_ceiling, 0.02, 1},
                           {&a.keys_half, 1, 20000},
                           {&a.prefill_latency_seconds, 1e-7, 1e-4}},
                          800);
    double de = fit_block(bench, "attention_decode", c,
                          {{&a.decode_ceiling, 0.05, 1},
                           {&a.half_bytes, 1, 5e7},
                           {&a.decode_latency_seconds, 1e-7, 5e-5}},
                          800);
    sheet.blocks.push_back({"attention",
                            {{"prefill_ceiling", a.prefill_ceiling},
                             {"keys_half", a.keys_half},
                             {"decode_ceiling", a.decode_ceiling},
                             {"half_bytes", a.half_bytes},
                             {"prefill_latency_seconds", a.prefill_latency_seconds},
                             {"decode_latency_seconds", a.decode_latency_seconds},
                             {"error", std::max(pe, de)}},
                            rows("attention_prefill") + rows("attention_decode")});
  }
  if (rows("grouped")) {
    double error =
        fit_block(bench, "grouped", c,
                  {{&c.grouped_factor, 0.1, 1.5}, {&c.grouped_latency_seconds, 1e-6, 2e-4}}, 600);
    sheet.blocks.push_back({"grouped",
                            {{"factor", c.grouped_factor},
                             {"latency_seconds", c.grouped_latency_seconds},
                             {"error", error}},
                            rows("grouped")});
  }
  return sheet;
}

CoefficientSheet fit_link(const std::string& link, DeviceModel d, const Bench& bench) {
  const auto& large = bench.links.at(link);
  LinkCoefficients& c = d.intra.c;
  c.ceiling = 0.8, c.half_bytes = 1e6, c.ramp = 0.5, c.sharing = 0.05;
  c.latency_seconds = 1e-6, c.start_seconds = 5e-6;
  auto error_of = [&](const CollectiveSample& s) {
    return log_error(collective_seconds(d, s.collective, s.payload, s.ranks), s.seconds);
  };
  auto loss_of = [&](const std::vector<CollectiveSample>& all) {
    double sum = 0;
    std::size_t n = 0;
    for (const CollectiveSample& s : all)
      if (!s.held_out) sum += error_of(s), ++n;
    return n ? sum / static_cast<double>(n) : 0;
  };
  minimise(
      {{&c.ceiling, 0.02, 1.1},
       {&c.half_bytes, 1e3, 1e9},
       {&c.ramp, 0.05, 1},
       {&c.sharing, 0.01, 1.5},
       {&c.latency_seconds, 1e-8, 1e-4},
       {&c.start_seconds, 1e-7, 1e-4}},
      [&] { return loss_of(large); }, 3000, 7);
  auto small = bench.links.find("small/" + link);
  if (small != bench.links.end()) {
    c.small_latency_seconds = 5e-6;
    minimise(
        {{&c.small_latency_seconds, 1e-7, 1e-4}}, [&] { return loss_of(small->second); }, 200, 7);
  }
  double small_latency = c.small_latency_seconds;
  c.small_latency_seconds = 0;  // the library's own collectives are judged without it
  double error = held_out_error(
      large.size(), [&](std::size_t i) { return large[i].held_out ? error_of(large[i]) : -1; });
  CoefficientSheet sheet;
  sheet.id = "link/" + link;
  for (const std::string& f : bench.files) sheet.source += (sheet.source.empty() ? "" : "; ") + f;
  sheet.blocks.push_back({"",
                          {{"ceiling", c.ceiling},
                           {"half_bytes", c.half_bytes},
                           {"ramp", c.ramp},
                           {"sharing", c.sharing},
                           {"latency_seconds", c.latency_seconds},
                           {"start_seconds", c.start_seconds},
                           {"small_latency_seconds", small_latency},
                           {"error", error}},
                          large.size()});
  return sheet;
}

// Geometric mean over families, block by block; the error is how far the families lie from it.
CoefficientSheet mean_sheet(const std::string& id, const std::vector<CoefficientSheet>& sheets) {
  CoefficientSheet out;
  out.id = id;
  out.source = "geometric mean over:";
  std::map<std::string, std::map<std::string, std::vector<double>>> values;
  for (const CoefficientSheet& s : sheets) {
    out.source += " " + s.id;
    for (const CoefficientBlock& b : s.blocks)
      for (const auto& [k, v] : b.values) values[b.name][k].push_back(std::max(v, 1e-12));
  }
  for (const auto& [block, keys] : values) {
    CoefficientBlock b{block, {}, 0};
    double spread = 0;
    for (const auto& [k, v] : keys) {
      double sum = 0;
      for (double x : v) sum += std::log(x);
      double mean = sum / static_cast<double>(v.size());
      if (k == "ceiling" || k == "prefill_ceiling" || k == "factor" || k == "seconds")
        for (double x : v) spread = std::max(spread, std::fabs(std::log(x) - mean));
      b.values.push_back({k, std::exp(mean)});
      b.rows = v.size();
    }
    for (auto& [k, v] : b.values)
      if (k == "error") v = std::sqrt(v * v + std::max(spread, 0.15) * std::max(spread, 0.15));
    out.blocks.push_back(std::move(b));
  }
  return out;
}

}  // namespace

Result<std::vector<CoefficientSheet>> calibrate_operators(
    const std::vector<const Accelerator*>& devices, const std::vector<OperatorTables>& tables) {
  std::map<std::string, Bench> families;
  std::map<std::string, Bench> links;
  for (const OperatorTables& t : tables) {
    auto it = std::find_if(devices.begin(), devices.end(),
                           [&](const Accelerator* a) { return a->id == t.accelerator; });
    if (it == devices.end())
      return fail(ErrorCode::unknown_name,
                  message(BaseMessage::unknown_name, "accelerator", t.accelerator),
                  t.directory.string());
    const Accelerator& a = **it;
    Bench& bench = families[a.family];
    std::size_t device = bench.devices.size();
    bench.devices.push_back(bare_device(a));
    std::string link = a.peer_link.type.empty() ? "pcie" : a.peer_link.type;
    Bench& wires = links[link];
    wires.link_device.emplace(link, bare_device(a));
    std::vector<std::filesystem::path> files;
    std::error_code ec;
    for (const auto& entry : std::filesystem::directory_iterator(t.directory, ec))
      files.push_back(entry.path());
    if (ec)
      return fail(ErrorCode::unreadable, message(BaseMessage::cannot_open, ec.message()),
                  t.directory.string());
    std::sort(files.begin(), files.end());
    double l2 = a.l2 ? a.l2->in_base() : 0;
    for (const auto& file : files) {
      std::string name = file.filename().string();
      if (file.extension() != ".csv") continue;
      auto table = read_csv(file);
      if (!table) return tl::unexpected(table.error());
      add_samples(*table, name, device, l2, link, bench, wires);
    }
  }
  std::vector<CoefficientSheet> out, operators, near;
  for (auto& [family, bench] : families)
    if (!bench.samples.empty()) operators.push_back(fit_family(family, bench));
  for (auto& [link, bench] : links)
    if (bench.links.count(link)) near.push_back(fit_link(link, bench.link_device.at(link), bench));
  out = operators;
  out.push_back(mean_sheet("operators/any", operators));
  out.insert(out.end(), near.begin(), near.end());
  out.push_back(mean_sheet("link/any-inside-node", near));
  // Networks are taken to ramp up and start as links inside nodes do until one is measured.
  out.push_back(mean_sheet("link/any-between-nodes", near));
  return out;
}

std::string write_sheet(const CoefficientSheet& s, const std::string& date,
                        const std::string& command) {
  std::string out = "# Written by `" + command + "`; run it again instead of editing.\n";
  std::string source;
  for (char c : s.source) source += c == '"' || c == '\\' ? '\'' : c;
  out += fmt::format("kind = \"calibration\"\nid = \"{}\"\nsource = \"{}\"\ndate = \"{}\"\n", s.id,
                     source, date);
  for (const CoefficientBlock& b : s.blocks) {
    if (!b.name.empty()) out += "\n[" + b.name + "]\n";
    for (const auto& [k, v] : b.values) out += fmt::format("{} = {:.4g}\n", k, v);
    out += fmt::format("rows = {}\n", b.rows);
  }
  return out;
}

}  // namespace trigon
