#include "evidence/comparisons.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <numeric>
#include <utility>

#include "evidence/statistics.hpp"

namespace trigon {
namespace {

// What makes a job: the model, its numbers and lengths, the program and the machine.
constexpr const char* kJob[] = {"date",      "gpu",     "gpu_mem_gb", "intra_link", "model",
                                "layers",    "hidden",  "heads",      "kv_heads",   "ffn",
                                "vocab",     "experts", "top_k",      "precision",  "quant",
                                "framework", "method",  "lora_rank",  "seq_len",    "source_len",
                                "image",     "layout",  "optimizer",  "offload",    "metric"};
constexpr const char* kMachine[] = {"n_gpus", "gpus_per_node", "inter_link", "inter_gbps"};
constexpr const char* kPlan[] = {"tp",         "pp",          "vpp",       "cp",        "ep",
                                 "zero_stage", "micro_batch", "recompute", "grad_accum"};

template <std::size_t N>
void add(std::string& key, const Row& row, const char* const (&columns)[N]) {
  for (const char* c : columns) key.append(row.text(c)).push_back('\x1f');
}

// Average ranks, from 1.
std::vector<double> ranks(const std::vector<double>& v) {
  std::vector<std::size_t> order(v.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return v[a] < v[b]; });
  std::vector<double> out(v.size());
  for (std::size_t i = 0, j = 0; i < order.size(); i = j) {
    while (j < order.size() && v[order[j]] == v[order[i]]) ++j;
    for (std::size_t k = i; k < j; ++k)
      out[order[k]] = (static_cast<double>(i) + static_cast<double>(j) + 1) / 2;
  }
  return out;
}

double mean(const std::vector<double>& v) {
  return std::accumulate(v.begin(), v.end(), 0.0) / static_cast<double>(v.size());
}

std::optional<double> mean_or_none(const std::vector<double>& v) {
  if (v.empty()) return std::nullopt;
  return mean(v);
}

// Rows of the same configuration are one: sums of logarithms.
struct Mean {
  double measured = 0, predicted = 0, rows = 0;
  void add(const PlacedRow& r) {
    measured += std::log(r.measured);
    predicted += std::log(r.predicted);
    ++rows;
  }
};

int sign(double x) { return x > 0 ? 1 : x < 0 ? -1 : 0; }

}  // namespace

RowPlace place_of(Schema schema, const Row& row) {
  RowPlace p;
  if (schema != Schema::train) return p;
  p.source = row.repository();
  p.cards = row.whole("n_gpus").value_or(0);
  const auto batch = row.whole("global_batch");
  std::string common = p.source + '\x1f';
  add(common, row, kJob);
  if (batch) {
    p.job = common;
    add(p.job, row, kMachine);
    p.job += std::to_string(*batch);
    add(p.plan, row, kPlan);
  }
  // Of rows without a global batch the micro-batch and how many are accumulated say it.
  if (p.cards < 1 || (!batch && row.text("micro_batch").empty())) return p;
  p.share = common;
  add(p.share, row, kPlan);
  if (batch) {
    char each[32];
    std::snprintf(each, sizeof each, "%.6g",
                  static_cast<double>(*batch) / static_cast<double>(p.cards));
    p.share += each;
  }
  return p;
}

std::optional<double> spearman(const std::vector<double>& a, const std::vector<double>& b) {
  const std::vector<double> x = ranks(a), y = ranks(b);
  if (x.empty()) return std::nullopt;
  const double mx = mean(x), my = mean(y);
  double xy = 0, xx = 0, yy = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    xy += (x[i] - mx) * (y[i] - my);
    xx += (x[i] - mx) * (x[i] - mx);
    yy += (y[i] - my) * (y[i] - my);
  }
  if (xx == 0 || yy == 0) return std::nullopt;
  return xy / std::sqrt(xx * yy);
}

std::optional<double> kendall(const std::vector<double>& a, const std::vector<double>& b) {
  double both = 0, in_a = 0, in_b = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) {
      const int x = sign(a[i] - a[j]), y = sign(b[i] - b[j]);
      both += x * y;
      in_a += x * x;
      in_b += y * y;
    }
  if (in_a == 0 || in_b == 0) return std::nullopt;
  return both / std::sqrt(in_a * in_b);
}

std::vector<PlanChoice> plan_choices(const std::vector<PlacedRow>& rows) {
  std::map<std::string, std::map<std::string, Mean>> jobs;
  std::map<std::string, std::string> source_of;
  for (const PlacedRow& r : rows) {
    if (r.place.job.empty()) continue;
    jobs[r.place.job][r.place.plan].add(r);
    source_of[r.place.job] = r.place.source;
  }
  struct Tally {
    PlanChoice choice;
    std::vector<double> spearman, kendall, regret;
  };
  std::map<std::string, Tally> sources;
  for (const auto& [key, plans] : jobs) {
    if (plans.size() < kFewestPlans) continue;
    std::vector<double> measured, predicted;
    for (const auto& [plan, mean_of] : plans) {
      measured.push_back(std::exp(mean_of.measured / mean_of.rows));
      predicted.push_back(std::exp(mean_of.predicted / mean_of.rows));
    }
    Tally& t = sources[source_of[key]];
    ++t.choice.jobs;
    t.choice.plans += static_cast<std::int64_t>(plans.size());
    if (const auto v = spearman(measured, predicted)) t.spearman.push_back(*v);
    if (const auto v = kendall(measured, predicted)) t.kendall.push_back(*v);
    const auto ours = std::max_element(predicted.begin(), predicted.end()) - predicted.begin();
    const double best = *std::max_element(measured.begin(), measured.end());
    t.regret.push_back(best / measured[static_cast<std::size_t>(ours)] - 1);
  }
  std::vector<PlanChoice> out;
  for (auto& [name, t] : sources) {
    t.choice.source = name;
    t.choice.spearman = mean_or_none(t.spearman);
    t.choice.kendall = mean_or_none(t.kendall);
    t.choice.median_regret = quantile(t.regret, 0.5).value_or(0);
    t.choice.worst_regret = quantile(t.regret, 1).value_or(0);
    const auto found = std::count(t.regret.begin(), t.regret.end(), 0.0);
    t.choice.found = static_cast<double>(found) / static_cast<double>(t.regret.size());
    out.push_back(std::move(t.choice));
  }
  return out;
}

std::vector<ScalingStep> scaling_steps(const std::vector<PlacedRow>& rows) {
  std::map<std::string, std::map<std::int64_t, Mean>> jobs;
  for (const PlacedRow& r : rows) {
    if (r.place.share.empty() || !(r.measured > 0) || !(r.predicted > 0)) continue;
    jobs[r.place.share][r.place.cards].add(r);
  }
  struct Pair {
    double measured, predicted;
  };
  std::map<std::pair<std::int64_t, std::int64_t>, std::vector<Pair>> steps;
  for (const auto& [key, counts] : jobs)
    for (auto from = counts.begin(); from != counts.end(); ++from)
      for (auto to = std::next(from); to != counts.end(); ++to) {
        const Mean &a = from->second, &b = to->second;
        steps[{from->first, to->first}].push_back(
            {std::exp(b.measured / b.rows - a.measured / a.rows),
             std::exp(b.predicted / b.rows - a.predicted / a.rows)});
      }
  std::vector<Pair> few;
  std::vector<ScalingStep> out;
  const auto finish = [&](std::int64_t from, std::int64_t to, const std::vector<Pair>& pairs) {
    std::vector<double> measured, predicted, distance;
    double within = 0;
    for (const Pair& p : pairs) {
      measured.push_back(p.measured);
      predicted.push_back(p.predicted);
      distance.push_back(std::fabs(p.predicted - p.measured));
      within += distance.back() <= kScalingPoints ? 1 : 0;
    }
    out.push_back({from, to, static_cast<std::int64_t>(pairs.size()),
                   quantile(measured, 0.5).value_or(0), quantile(predicted, 0.5).value_or(0),
                   quantile(distance, 0.5).value_or(0),
                   within / static_cast<double>(pairs.size())});
  };
  for (const auto& [step, pairs] : steps) {
    if (static_cast<std::int64_t>(pairs.size()) < kFewestPairs)
      few.insert(few.end(), pairs.begin(), pairs.end());
    else
      finish(step.first, step.second, pairs);
  }
  if (!few.empty()) finish(0, 0, few);
  return out;
}

}  // namespace trigon
