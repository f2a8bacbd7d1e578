#include "evidence/calibrate_operators.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include <fmt/format.h>

#include "evidence/csv.hpp"
#include "evidence/fit_operators.hpp"
#include "evidence/statistics.hpp"
#include "evidence/timed_operators.hpp"

namespace trigon {
namespace {

constexpr const char* kScratch = "calibration";

Calibration calibration_of(FactStore& store, const Bench& bench,
                           const std::vector<CoefficientSheet>& sheets) {
  for (const DeviceModel& d : bench.devices)
    if (d.accelerator->sheet) store.add(*d.accelerator->sheet);
  for (const CoefficientSheet& s : sheets)
    if (auto sheet = parse_fact_sheet(write_sheet(s, kScratch, "2000-01-01", ""), s.id))
      store.add(std::move(*sheet));
  auto c = Calibration::load(store);
  return c ? std::move(*c) : Calibration();
}

// Predictions of a fit for rows that it has not seen: ln(predicted / measured) by device and block.
struct Errors {
  std::map<std::pair<std::string, std::string>, std::vector<double>> of;

  void add(const std::string& device, const std::string& block, double predicted, double measured) {
    if (predicted > 0) of[{device, block}].push_back(std::log(predicted / measured));
  }
  void add(const Errors& other) {
    for (const auto& [key, logs] : other.of)
      of[key].insert(of[key].end(), logs.begin(), logs.end());
  }
  // Sums do not depend on which job ended first.
  void sort() {
    for (auto& [key, logs] : of) std::sort(logs.begin(), logs.end());
  }
  void report(const std::string& left_out, std::vector<LeftOutError>& out) const {
    for (const auto& [key, logs] : of) {
      LeftOutError e{left_out, key.first, key.second, logs.size(), 0, 0, 0};
      std::vector<double> off;
      for (double l : logs) off.push_back(std::fabs(std::exp(l) - 1)), e.bias += l;
      std::sort(off.begin(), off.end());
      e.median = off[off.size() / 2];
      e.p90 = off[off.size() * 9 / 10];
      e.bias = std::exp(e.bias / static_cast<double>(logs.size())) - 1;
      out.push_back(std::move(e));
    }
  }
  // Half width of the central 68 % of log errors of the rows that `which` selects.
  double sigma(const std::function<bool(const std::string&, const std::string&)>& which) const {
    std::vector<double> off;
    for (const auto& [key, logs] : of)
      if (which(key.first, key.second))
        for (double l : logs) off.push_back(std::fabs(l));
    if (off.empty()) return 0;
    std::sort(off.begin(), off.end());
    return off[off.size() * 68 / 100];
  }
};

void run_all(const std::vector<std::function<void()>>& jobs) {
  std::atomic<std::size_t> next{0};
  auto work = [&] {
    for (std::size_t i; (i = next.fetch_add(1)) < jobs.size();) jobs[i]();
  };
  std::vector<std::thread> pool;
  for (unsigned t = 1; t < std::thread::hardware_concurrency(); ++t) pool.emplace_back(work);
  work();
  for (std::thread& t : pool) t.join();
}

// Vendors without tables: the ceiling of 16-bit products from the most that their devices reached,
// everything else as for any device. `fold` is left out; -1: none is.
void add_vendor_ceilings(const Bench& bench, const std::vector<Case>& products, int fold,
                         std::vector<CoefficientSheet>& sheets) {
  std::set<std::string> timed;
  for (const DeviceModel& d : bench.devices) timed.insert(d.accelerator->vendor);
  FactStore store;
  const Calibration any = calibration_of(store, bench, sheets);
  std::map<std::string, std::vector<double>> logs;
  for (const Case& c : products) {
    if (!c.timed || c.timed->at_peak_of || c.hardware.empty() || c.fold % kTimedFolds == fold)
      continue;
    const Accelerator& a = *c.hardware.front().accelerator;
    if (timed.count(a.vendor) || c.timed->operators.front().weights != Format::bf16) continue;
    TimedCase asked = *c.timed;
    asked.calibration = &any;
    if (const auto p = predict_timed(asked, c.hardware.front()))
      logs[a.vendor].push_back(std::log(c.measured / p->value));
  }
  const auto formulas = std::find_if(sheets.begin(), sheets.end(),
                                     [](const auto& s) { return s.id == "operators/any"; });
  const auto half = std::find_if(formulas->blocks.begin(), formulas->blocks.end(),
                                 [](const auto& b) { return b.name == "half"; });
  if (half == formulas->blocks.end()) return;
  const CoefficientBlock base = *half;
  for (auto& [vendor, of] : logs) {
    double sum = 0;
    for (double l : of) sum += l;
    CoefficientSheet s;
    s.id = "operators/" + vendor;
    s.source = "measured/matmul.csv";
    s.blocks.push_back(base);
    s.blocks[0].rows = of.size();
    for (auto& [key, value] : s.blocks[0].values)
      if (key == "ceiling")
        value = std::min(1.0, value * std::exp(sum / static_cast<double>(of.size())));
    sheets.push_back(std::move(s));
  }
}

void predict_operators(const Bench& bench, const std::vector<CoefficientSheet>& sheets,
                       const KeepSample& judged, Errors& errors) {
  FactStore store;
  const Calibration c = calibration_of(store, bench, sheets);
  std::vector<std::optional<DeviceModel>> devices;
  for (const DeviceModel& bare : bench.devices) {
    auto ops = c.operators(*bare.accelerator);
    devices.emplace_back();
    if (!ops) continue;
    devices.back() = bare;
    devices.back()->operators = *ops;
  }
  for (const Sample& s : bench.samples)
    if (const auto& d = devices[s.device]; d && judged(s))
      errors.add(d->accelerator->id, sample_block(*d, s), sample_seconds(*d, s), s.seconds);
}

const char* collective_name(const CollectiveSample& s) {
  if (s.kernels == CollectiveKernels::one_shot) return "one_shot";
  constexpr const char* names[] = {"all_reduce", "all_gather", "reduce_scatter", "all_to_all",
                                   "send"};
  return names[static_cast<std::size_t>(s.collective)];
}

void predict_collectives(const Bench& bench, const std::vector<CoefficientSheet>& sheets,
                         const KeepCollective& judged, Errors& errors) {
  FactStore store;
  const Calibration c = calibration_of(store, bench, sheets);
  std::vector<DeviceModel> machines;
  for (const Bench::Machine& m : bench.machines) {
    machines.push_back(m.device);
    if (auto near = c.link(m.link, false)) machines.back().intra.c = *near;
    if (machines.back().inter)
      if (auto far = c.link("", true)) machines.back().inter->c = *far;
  }
  for (const CollectiveSample& s : bench.collectives) {
    if (!judged(s)) continue;
    const Bench::Machine& m = bench.machines[s.machine];
    const bool far = s.ranks > m.device.per_node;
    const char* size = s.payload >= 1048576 ? " >= 1 MiB" : " < 1 MiB";
    errors.add(far ? "between nodes" : m.accelerator, collective_name(s) + std::string(size),
               collective_sample_seconds(machines[s.machine], s), s.seconds);
  }
}

void predict_exchanges(const Bench& bench, const std::vector<CoefficientSheet>& sheets,
                       const KeepExchange& judged, Errors& errors) {
  FactStore store;
  const Calibration c = calibration_of(store, bench, sheets);
  for (const ExchangeSample& s : bench.exchanges) {
    if (!judged(s)) continue;
    const Bench::Machine& m = bench.machines[s.machine];
    DeviceModel d = m.device;
    if (auto near = c.link(m.link, false)) d.intra.c = *near;
    errors.add(m.accelerator, exchange_name(s.exchange.kind), exchange_seconds(d, s.exchange),
               s.seconds);
  }
}

// The errors of unseen rows go into the sheets whose numbers made them.
void put_errors(const Bench& bench, const Errors& shapes, const Errors& devices,
                const Errors& collectives, std::vector<CoefficientSheet>& sheets) {
  std::map<std::string, std::string> family;
  std::set<std::string> vendors;
  for (const DeviceModel& d : bench.devices) {
    family[d.accelerator->id] = d.accelerator->family;
    vendors.insert(d.accelerator->vendor);
  }
  auto starts = [](const std::string& s, const std::string& with) { return s.rfind(with, 0) == 0; };
  for (CoefficientSheet& s : sheets) {
    const std::string name = s.id.substr(s.id.find('/') + 1);
    const bool shared = name == "any" || vendors.count(name) > 0;
    const Errors& from = shared ? devices : shapes;
    auto mine = [&](const std::string& device) {
      return shared || device == name || (family.count(device) && family.at(device) == name);
    };
    if (starts(s.id, "link/")) {
      const double e = collectives.sigma([&](const std::string& device, const std::string&) {
        if (name == "any-between-nodes") return device == "between nodes";
        if (name == "any-inside-node") return device != "between nodes";
        return std::any_of(bench.machines.begin(), bench.machines.end(), [&](const auto& m) {
          return m.link == name && m.accelerator == device;
        });
      });
      // Links nobody measured are further off than the measured ones are from their own curves.
      s.blocks[0].values.push_back({"error", std::max(e, starts(name, "any-") ? 0.3 : 0.05)});
      for (CoefficientBlock& b : s.blocks)
        if (!b.name.empty())
          b.values.push_back(
              {"error", std::max(0.05, collectives.sigma([&](const auto&, const auto& block) {
                 return block == b.name;
               }))});
      for (GridBlock& g : s.grids)
        g.grid.error = collectives.sigma([&](const std::string& device, const std::string& block) {
          return starts(block, g.name) &&
                 std::any_of(bench.machines.begin(), bench.machines.end(), [&](const auto& m) {
                   return m.link == name && m.accelerator == device;
                 });
        });
      continue;
    }
    for (GridBlock& g : s.grids)
      g.grid.error =
          std::max(0.02, from.sigma([&](const std::string& device, const std::string& block) {
            return mine(device) && block == g.name;
          }));
    const bool borrowed = s.source == "measured/matmul.csv";
    for (CoefficientBlock& b : s.blocks) {
      // A vendor's own ceiling and nothing else: as far off as any unseen device.
      const double e =
          borrowed ? 0.3 : from.sigma([&](const std::string& device, const std::string& block) {
            if (!mine(device)) return false;
            if (b.name == "attention") return starts(block, "prefill") || starts(block, "decode");
            if (b.name == "grouped") return starts(block, "grouped");
            if (b.name == "elementwise") return block == "elementwise";
            if (b.name == "stream" || b.name == "launch") return block == "gemm.half";
            return block == "gemm." + b.name;
          });
      b.values.push_back({"error", std::max(e, 0.02)});
    }
  }
}

Result<Bench> read_bench(const OperatorInputs& in) {
  Bench bench;
  std::map<std::string, std::size_t> known;
  auto device = [&](const Accelerator& a) {
    auto [it, fresh] = known.emplace(a.id, bench.devices.size());
    if (fresh) bench.devices.push_back(bare_device(a));
    return it->second;
  };
  const DeviceNames by_name = [&](const std::string& name) -> std::optional<std::size_t> {
    const Accelerator* a = in.accelerator(name);
    if (!a) return std::nullopt;
    return device(*a);
  };
  auto machine = [&](const Cluster& cluster) {
    DeviceModel d = bare_device(*cluster.accelerator);
    d.per_node = cluster.per_node;
    d.intra.one_way = cluster.intra.one_way.in_base();
    d.intra.topology = cluster.intra.topology;
    d.intra.mesh = cluster.intra.mesh;
    if (cluster.inter)
      d.inter = DeviceModel::Wire{cluster.inter->one_way.in_base(), cluster.inter->topology, 0, {}};
    bench.machines.push_back({d, link_sheet(cluster.intra), cluster.accelerator->id});
    return bench.machines.size() - 1;
  };
  for (const OperatorTables& t : in.tables) {
    const Accelerator* a = t.accelerator.empty() ? nullptr : in.accelerator(t.accelerator);
    if (!t.accelerator.empty() && !a)
      return fail(ErrorCode::unknown_name,
                  message(BaseMessage::unknown_name, "accelerator", t.accelerator),
                  t.directory.string());
    std::vector<std::filesystem::path> files;
    std::error_code ec;
    for (const auto& entry : std::filesystem::directory_iterator(t.directory, ec))
      if (entry.path().extension() == ".csv") files.push_back(entry.path());
    if (ec)
      return fail(ErrorCode::unreadable, message(BaseMessage::cannot_open, ec.message()),
                  t.directory.string());
    std::sort(files.begin(), files.end());
    std::size_t of = 0, wires = 0;
    if (a) {
      of = device(*a);
      auto cluster = in.machine(*a, 8);
      if (!cluster) return tl::unexpected(cluster.error());
      wires = machine(*cluster);
    }
    for (const auto& file : files) {
      if (!reads_table(file.filename().string())) continue;
      auto table = read_csv(file);
      if (!table) return tl::unexpected(table.error());
      // Tables of a folder without a device name one in each row.
      if (!a && !table->column("Device")) continue;
      add_samples(*table, file.filename().string(), of, by_name, wires, bench);
    }
  }
  for (const Case& c : in.collectives) {
    if (!c.timed || !c.timed->operators.empty() || c.hardware.empty()) continue;
    CollectiveSample s;
    s.collective = c.timed->collective;
    s.kernels = c.timed->kernels;
    s.host_launched = c.timed->host_launched;
    s.payload = c.timed->payload;
    s.ranks = c.timed->ranks;
    s.seconds = wire_share(s.collective, s.ranks) * s.payload / c.measured;
    s.fold = c.fold % kTimedFolds;
    s.machine = machine(c.hardware.front());
    bench.collectives.push_back(s);
  }
  return bench;
}

}  // namespace

Result<OperatorCalibration> calibrate_operators(const OperatorInputs& inputs) {
  auto read = read_bench(inputs);
  if (!read) return tl::unexpected(read.error());
  const Bench& bench = *read;
  OperatorCalibration out;
  auto fit = [&](const KeepSample& ops, const KeepCollective& comm, const KeepExchange& experts) {
    std::vector<CoefficientSheet> sheets = fit_operators(bench, ops);
    for (CoefficientSheet& s : fit_links(bench, comm, experts)) sheets.push_back(std::move(s));
    return sheets;
  };
  Errors shapes, devices, dimensions, frameworks, collectives, links;
  // Each job fits without some rows and judges itself on them; they share nothing but the rows.
  std::vector<std::function<void()>> jobs;
  std::mutex adding;
  auto judge = [&](const std::vector<CoefficientSheet>& sheets, const KeepSample& rows,
                   Errors& into) {
    Errors own;
    predict_operators(bench, sheets, rows, own);
    const std::lock_guard<std::mutex> lock(adding);
    into.add(own);
  };
  auto judge_links = [&](const std::vector<CoefficientSheet>& sheets, const KeepCollective& rows,
                         Errors& into) {
    Errors own;
    predict_collectives(bench, sheets, rows, own);
    const std::lock_guard<std::mutex> lock(adding);
    into.add(own);
  };
  out.unseen.resize(kTimedFolds);
  for (int fold = 0; fold < kTimedFolds; ++fold)
    jobs.push_back([&, fold] {
      auto& sheets = out.unseen[static_cast<std::size_t>(fold)];
      sheets = fit([=](const Sample& s) { return s.fold != fold; },
                   [=](const CollectiveSample& s) { return s.fold != fold; },
                   [=](const ExchangeSample& s) { return s.fold != fold; });
      add_vendor_ceilings(bench, inputs.products, fold, sheets);
      judge(
          sheets, [=](const Sample& s) { return s.fold == fold; }, shapes);
      judge_links(
          sheets, [=](const CollectiveSample& s) { return s.fold == fold; }, collectives);
      Errors exchanges;
      predict_exchanges(
          bench, sheets, [=](const ExchangeSample& s) { return s.fold == fold; }, exchanges);
      const std::lock_guard<std::mutex> lock(adding);
      collectives.add(exchanges);
    });
  for (std::size_t d = 0; d < bench.devices.size(); ++d)
    jobs.push_back([&, d] {
      const Accelerator& a = *bench.devices[d].accelerator;
      const auto of = [&](const CollectiveSample& s) {
        return bench.machines[s.machine].accelerator == a.id;
      };
      judge(
          fit_operators(
              bench, [=](const Sample& s) { return s.device != d; }, a.family),
          [=](const Sample& s) { return s.device == d; }, devices);
      judge_links(fit_links(
                      bench, [&](const CollectiveSample& s) { return !of(s); },
                      [](const ExchangeSample&) { return false; }),
                  of, links);
    });
  // A quarter of the n x k, or of the heads, at a time.
  for (std::uint32_t part = 0; part < 4; ++part)
    jobs.push_back([&, part] {
      judge(
          fit_operators(bench, [=](const Sample& s) { return s.shape_kind % 4 != part; }),
          [=](const Sample& s) { return s.shape_kind % 4 == part; }, dimensions);
    });
  for (std::uint32_t f = 0; f < bench.sources.size(); ++f)
    jobs.push_back([&, f] {
      const auto of = [=](const Sample& s) { return s.source == f; };
      if (std::none_of(bench.samples.begin(), bench.samples.end(), of)) return;
      judge(fit_operators(bench, [=](const Sample& s) { return s.source != f; }), of, frameworks);
    });
  jobs.push_back([&] {
    out.shipped =
        fit([](const Sample&) { return true; }, [](const CollectiveSample&) { return true; },
            [](const ExchangeSample&) { return true; });
    add_vendor_ceilings(bench, inputs.products, -1, out.shipped);
  });
  run_all(jobs);
  for (Errors* e : {&shapes, &devices, &dimensions, &frameworks, &collectives, &links}) e->sort();
  put_errors(bench, shapes, devices, collectives, out.shipped);
  for (auto& sheets : out.unseen) put_errors(bench, shapes, devices, collectives, sheets);
  shapes.report("shape", out.left_out);
  collectives.report("shape", out.left_out);
  devices.report("device", out.left_out);
  links.report("device", out.left_out);
  dimensions.report("dimensions", out.left_out);
  frameworks.report("framework", out.left_out);
  return out;
}

std::string write_sheet(const CoefficientSheet& s, const std::string& kind, const std::string& date,
                        const std::string& command) {
  std::string out = "# Written by `" + command + "`; run it again instead of editing.\n";
  std::string source;
  for (char c : s.source) source += c == '"' || c == '\\' ? '\'' : c;
  out += fmt::format("kind = \"{}\"\nid = \"{}\"\nsource = \"{}\"\ndate = \"{}\"\n", kind, s.id,
                     source, date);
  for (const CoefficientBlock& b : s.blocks) {
    if (!b.name.empty()) out += "\n[" + b.name + "]\n";
    for (const auto& [k, v] : b.values) out += fmt::format("{} = {:.4g}\n", k, v);
    out += fmt::format("rows = {}\n", b.rows);
  }
  for (const GridBlock& g : s.grids) {
    out += fmt::format("\n[[grid]]\noperator = \"{}\"\nfitted_on = {}\nerror = {:.3g}\nrows = [\n",
                       g.name, g.rows, g.grid.error);
    for (const std::string& row : g.grid.rows()) out += "  \"" + row + "\",\n";
    out += "]\n";
  }
  return out;
}

std::string write_left_out(const std::vector<LeftOutError>& errors) {
  std::string out = "left_out,device,operator,rows,median_error,p90_error,bias\n";
  for (const LeftOutError& e : errors)
    out += fmt::format("{},{},{},{},{:.4f},{:.4f},{:+.4f}\n", e.left_out, e.group, e.block, e.rows,
                       e.median, e.p90, e.bias);
  return out;
}

}  // namespace trigon
