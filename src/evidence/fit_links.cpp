#include <algorithm>
#include <cmath>

#include "evidence/fit.hpp"
#include "evidence/fit_grid.hpp"
#include "evidence/fit_operators.hpp"

namespace trigon {
namespace {

// In-switch reduction starts at five GPUs over NVLink 4 and at six over NVLink 5 (all-reduce tables
// of stas00/ml-engineering, network/README.md); older switches have none.
double switch_reduction_from(const std::string& link) {
  return link == "nvlink4" ? 5 : link == "nvlink5" || link == "nvlink6" ? 6 : 0;
}

bool crosses(const Bench& b, const CollectiveSample& s) {
  return s.ranks > b.machines[s.machine].device.per_node;
}

struct LinkFit {
  const Bench& bench;
  std::vector<Bench::Machine> machines;
  std::vector<const CollectiveSample*> rows;

  double seconds(const CollectiveSample& s) const {
    return collective_sample_seconds(machines[s.machine].device, s);
  }
  double loss(const std::vector<const CollectiveSample*>& of) const {
    double sum = 0, weight = 0;
    for (const CollectiveSample* s : of) {
      sum += s->weight * std::fabs(std::log(seconds(*s) / s->seconds));
      weight += s->weight;
    }
    return weight > 0 ? sum / weight : 0;
  }
};

CoefficientSheet sheet_of(const std::string& id, const LinkCoefficients& c, std::size_t rows) {
  CoefficientSheet s;
  s.id = "link/" + id;
  CoefficientBlock b{"",
                     {{"ceiling", c.ceiling},
                      {"half_bytes", c.half_bytes},
                      {"ramp", c.ramp},
                      {"sharing", c.sharing},
                      {"latency_seconds", c.latency_seconds},
                      {"start_seconds", c.start_seconds},
                      {"small_latency_seconds", c.small_latency_seconds}},
                     rows};
  if (c.host_launch_seconds > 0) b.values.push_back({"host_launch_seconds", c.host_launch_seconds});
  if (c.switch_reduction_ranks > 0) {
    b.values.push_back({"switch_reduction_ranks", c.switch_reduction_ranks});
    b.values.push_back({"switch_reduction_gain", c.switch_reduction_gain});
  }
  s.blocks.push_back(std::move(b));
  return s;
}

LinkGridKind grid_of(const CollectiveSample& s) {
  if (s.kernels == CollectiveKernels::one_shot) return LinkGridKind::one_shot;
  return s.collective == Collective::all_gather       ? LinkGridKind::all_gather
         : s.collective == Collective::reduce_scatter ? LinkGridKind::reduce_scatter
         : s.collective == Collective::all_to_all     ? LinkGridKind::all_to_all
                                                      : LinkGridKind::all_reduce;
}

void add_grids(const LinkFit& fit, CoefficientSheet& sheet) {
  std::array<std::vector<GridRow>, kLinkGridKinds> rows;
  std::array<UtilisationGrid, kLinkGridKinds> grids;
  for (UtilisationGrid& g : grids) g = UtilisationGrid(link_grid_axes());
  std::array<GridCorner, kGridCorners> c;
  for (const CollectiveSample* s : fit.rows) {
    if (s->host_launched || s->kernels == CollectiveKernels::library_rings ||
        crosses(fit.bench, *s))
      continue;
    const auto kind = static_cast<std::size_t>(grid_of(*s));
    GridRow row;
    const GridPoint at{std::log2(s->payload), std::log2(s->ranks), 0, 0};
    const std::size_t n = grids[kind].corners(at, c);
    row.corners.assign(c.begin(), c.begin() + static_cast<std::ptrdiff_t>(n));
    row.value = std::log(s->seconds / fit.seconds(*s));
    rows[kind].push_back(std::move(row));
  }
  for (std::size_t k = 0; k < kLinkGridKinds; ++k) {
    // Sizes continue each other, numbers of ranks hardly do.
    fit_grid(grids[k], rows[k], {{0.3, 0.01, 0, 0}, 0.15});
    if (!grids[k].empty())
      sheet.grids.push_back(
          {link_grid_name(static_cast<LinkGridKind>(k)), std::move(grids[k]), rows[k].size()});
  }
}

CoefficientSheet fit_inside(const std::string& id, LinkFit& fit, const LinkCoefficients& start,
                            LinkCoefficients& c) {
  c = start;
  std::vector<const CollectiveSample*> library, one_shot;
  for (const CollectiveSample* s : fit.rows) {
    // What the host adds is lost in large payloads.
    const bool launch =
        s->host_launched && (s->kernels == CollectiveKernels::one_shot || s->payload < 1 << 26);
    if (launch || crosses(fit.bench, *s)) continue;
    (s->kernels == CollectiveKernels::one_shot ? one_shot : library).push_back(s);
  }
  c.switch_reduction_ranks = switch_reduction_from(id);
  c.switch_reduction_gain = c.switch_reduction_ranks > 0 ? 1.2 : 1;
  auto apply = [&] {
    for (Bench::Machine& m : fit.machines) m.device.intra.c = c;
  };
  std::vector<FitParameter> p{{&c.ceiling, 0.02, 1.1}};
  // A handful of rows fits one number.
  if (library.size() >= 20) {
    p.insert(p.end(), {{&c.half_bytes, 1e3, 1e9},
                       {&c.ramp, 0.05, 1},
                       {&c.sharing, 0.01, 1.5},
                       {&c.latency_seconds, 1e-8, 1e-4},
                       {&c.start_seconds, 1e-7, 1e-4}});
    if (c.switch_reduction_ranks > 0) p.push_back({&c.switch_reduction_gain, 1, 2});
  }
  minimise(
      p,
      [&] {
        apply();
        return fit.loss(library);
      },
      2000, 7);
  if (one_shot.size() >= 20) {
    c.small_latency_seconds = 5e-6;
    minimise(
        {{&c.small_latency_seconds, 1e-7, 1e-4}},
        [&] {
          apply();
          return fit.loss(one_shot);
        },
        200, 7);
    // What the host needs to launch one: the middle of the smallest payloads.
    std::vector<double> launches;
    for (const CollectiveSample* s : fit.rows)
      if (s->host_launched && s->kernels == CollectiveKernels::one_shot && s->payload <= 65536)
        launches.push_back(s->seconds);
    std::sort(launches.begin(), launches.end());
    if (!launches.empty()) c.host_launch_seconds = launches[launches.size() / 2];
  }
  apply();
  return sheet_of(id, c, library.size() + one_shot.size());
}

}  // namespace

std::string link_sheet(const Link& link) {
  // All generations and widths of PCIe, and of xGMI, ramp up alike.
  for (const char* kind : {"pcie", "xgmi"})
    if (link.id.rfind(kind, 0) == 0) return kind;
  return link.id;
}

double collective_sample_seconds(const DeviceModel& d, const CollectiveSample& s) {
  const double t = collective_seconds(d, s.collective, s.payload, s.ranks, 1, s.kernels);
  return s.host_launched ? host_launched(d, t, s.payload, s.kernels) : t;
}

std::vector<CoefficientSheet> fit_links(const Bench& bench, const KeepCollective& keep,
                                        const KeepExchange& keep_exchange) {
  std::vector<CoefficientSheet> out;
  auto rows_of = [&](const std::function<bool(const CollectiveSample&)>& which) {
    LinkFit f{bench, bench.machines, {}};
    for (const CollectiveSample& s : bench.collectives)
      if (keep(s) && which(s)) f.rows.push_back(&s);
    return f;
  };
  auto source_of = [&](const std::string& link) {
    std::string text;
    for (const auto& [id, files] : bench.link_files)
      for (const std::string& f : files)
        if (link.empty() || id == link) text += (text.empty() ? "" : "; ") + f;
    return text.empty() ? std::string("measured/comm.csv") : text;
  };
  LinkCoefficients start;
  start.ceiling = 0.8, start.half_bytes = 1e6, start.ramp = 0.5, start.sharing = 0.05;
  start.latency_seconds = 1e-6, start.start_seconds = 5e-6;
  LinkFit all = rows_of([&](const CollectiveSample& s) { return !crosses(bench, s); });
  LinkCoefficients pooled;
  CoefficientSheet any = fit_inside("any-inside-node", all, start, pooled);
  fit_exchange(bench, keep_exchange, "", any);
  any.source = source_of("");
  out.push_back(std::move(any));
  std::map<std::string, std::size_t> links;
  for (const CollectiveSample& s : bench.collectives)
    if (keep(s) && !crosses(bench, s)) ++links[bench.machines[s.machine].link];
  std::map<std::string, LinkCoefficients> near;
  for (const auto& [link, count] : links) {
    LinkFit f = rows_of([&, name = link](const CollectiveSample& s) {
      return !crosses(bench, s) && bench.machines[s.machine].link == name;
    });
    CoefficientSheet s = fit_inside(link, f, pooled, near[link]);
    fit_exchange(bench, keep_exchange, link, s);
    add_grids(f, s);
    s.source = source_of(link);
    out.push_back(std::move(s));
  }
  LinkFit far = rows_of([&](const CollectiveSample& s) { return crosses(bench, s); });
  LinkCoefficients c = start;
  // Three machines: what a round costs and the share of the ports are all that they can tell, and
  // with these two each machine predicts the others best. A ramp takes the place of rounds and then
  // holds for one number of nodes only.
  c.start_seconds = 1e-6, c.sharing = 0.01, c.half_bytes = 1e3, c.ramp = 0.05;
  c.latency_seconds = 3e-5;
  for (Bench::Machine& m : far.machines)
    m.device.intra.c = near.count(m.link) ? near.at(m.link) : pooled;
  auto apply = [&] {
    for (Bench::Machine& m : far.machines)
      if (m.device.inter) m.device.inter->c = c;
  };
  if (far.rows.size() >= 5)
    minimise(
        {{&c.ceiling, 0.1, 1}, {&c.latency_seconds, 1e-7, 1e-3}},
        [&] {
          apply();
          return far.loss(far.rows);
        },
        2000, 7);
  c.sharing = 0;
  CoefficientSheet between = sheet_of("any-between-nodes", c, far.rows.size());
  between.source = "measured/comm.csv";
  out.push_back(std::move(between));
  return out;
}

}  // namespace trigon
