// What does not fit on the cards whole: how much of it does, with the rest in host memory.

#include <algorithm>

#include "decide/best_plan.hpp"
#include "decide/report.hpp"
#include "decide/setup.hpp"
#include "decide/verbs.hpp"

namespace trigon {
namespace {

// The engine that may leave layers in host memory, where none was asked for.
constexpr const char* kHostEngine = "llama.cpp";

// Plans that leave more and more in host memory, judged one by one: what a card holds does not
// always shrink with its layers, as its compute buffer also serves those of the host.
class HostPart {
 public:
  HostPart(const Setup& s, const PlanRequest& asked, const Plan& plan, const Tables& tables)
      : s_(s),
        asked_(asked),
        plan_(plan),
        tables_(tables),
        errors_(s.calibration->memory_errors(s.engine.id, s.training)) {}

  std::optional<FittingChange> find(const std::string& engine) {
    const auto layers = static_cast<std::int32_t>(s_.stack->layers());
    const bool experts = has_experts(*s_.stack);
    Plan p = plan_;
    if (p.gpu_layers < 0 && p.experts_on_host == 0 && engine.size() && holds(p))
      return change(p, p, engine);
    if (experts && !asked_.gpu_layers) {
      for (p.experts_on_host = plan_.experts_on_host + 1; p.experts_on_host <= layers;
           ++p.experts_on_host)
        if (holds(p)) {
          Plan roomier = p;
          while (roomier.experts_on_host < layers && !roomy(roomier)) ++roomier.experts_on_host;
          return change(p, roomy(roomier) ? roomier : p, engine);
        }
      p.experts_on_host = layers;
    }
    const std::int32_t most = plan_.gpu_layers < 0 ? layers : plan_.gpu_layers - 1;
    for (p.gpu_layers = most; p.gpu_layers > 0; --p.gpu_layers)
      if (holds(p)) {
        Plan roomier = p;
        while (roomier.gpu_layers > 1 && !roomy(roomier)) --roomier.gpu_layers;
        return change(p, roomy(roomier) ? roomier : p, engine);
      }
    return std::nullopt;
  }

 private:
  bool holds(const Plan& p) const {
    const Evaluation e = evaluate(tables_, p);
    const auto& host = s_.cluster.host.memory;
    const Accelerator& card = *s_.cluster.accelerator;
    double beside = e.memory.host.total();
    if (host && beside > host->in_base()) return false;
    // One memory for both: labels count a GB of it as 2^30 bytes.
    if (card.unified_memory) beside += e.memory.total();
    return e.fits && (!card.unified_memory || beside <= card.memory_nominal.in_base() / 1e9 * kGi);
  }
  bool roomy(const Plan& p) const { return holds(p) && has_room(tables_.memory, errors_, p); }

  static std::string flags(const Plan& p, std::string out) {
    auto add = [&](const char* name, std::int32_t n) {
      out += (out.empty() ? "" : " ") + std::string(name) + " " + std::to_string(n);
    };
    if (p.gpu_layers >= 0) add("--gpu-layers", p.gpu_layers);
    if (p.experts_on_host > 0) add("--experts-on-host", p.experts_on_host);
    return out;
  }

  std::optional<FittingChange> change(const Plan& p, const Plan& roomier,
                                      const std::string& engine) const {
    PlanRequest asked = asked_;
    if (p.gpu_layers >= 0) asked.gpu_layers = p.gpu_layers;
    if (p.experts_on_host > 0) asked.experts_on_host = p.experts_on_host;
    auto report = make_report(s_, asked, p, nullptr);
    if (!report) return std::nullopt;
    FittingChange c{flags(p, engine), std::move(*report), flags(roomier, "")};
    if (c.roomier == flags(p, "")) c.roomier.clear();
    return c;
  }

  const Setup& s_;
  const PlanRequest& asked_;
  const Plan& plan_;
  const Tables& tables_;
  MemoryErrors errors_;
};

}  // namespace

std::optional<FittingChange> fit_on_host(const Catalogues& all, const Question& q,
                                         const Cluster& cluster, const FitAnswer& now) {
  if (now.rows.size() != 1 || now.rows.front().mark != FitMark::no) return std::nullopt;
  if (q.job.kind == JobKind::train || q.job.kind == JobKind::finetune) return std::nullopt;
  Question other = q;
  std::string engine;
  auto s = set_up(all, q, cluster);
  if (s && !s->engine.host_layers && q.engine.empty()) {
    other.engine = kHostEngine;
    engine = "--engine " + other.engine;
    s = set_up(all, other, cluster);
  }
  if (!s || !s->engine.host_layers || !s->stack || !s->stack->generates) return std::nullopt;
  auto best = best_plan(*s, other.plan, Filling::with_room);
  if (!best || !best->best) return std::nullopt;
  const Plan& plan = best->best->plan;
  auto tables = prepare_for(*s, domain_of(*s, other.plan, plan));
  if (!tables) return std::nullopt;
  return HostPart(*s, other.plan, plan, *tables).find(engine);
}

}  // namespace trigon
