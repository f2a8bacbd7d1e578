#include "evidence/engine_fit.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <thread>

#include "evidence/engine_priors.hpp"

namespace trigon {
namespace {

// An effect needs a few rows before it is worth a line in the sheet.
constexpr std::int64_t kFewestRows = 3;
constexpr double kNoise = 0.1;       // log error of a row that a good fit leaves
constexpr double kDifference = 0.1;  // step of the slopes, in logarithms
constexpr double kLongestStep = 1.0;

using Slopes = std::array<double, kEngineParameters>;

class Fit {
 public:
  Fit(const FitProblem& problem, EngineKind kind, const std::vector<bool>& seen)
      : problem_(problem), kind_(kind), neutral_(neutral_coefficients(kind)) {
    for (std::size_t i = 0; i < problem.subjects.size(); ++i)
      if (seen[i]) rows_.push_back(i);
    std::map<std::string, std::int64_t, std::less<>> count;
    std::vector<std::array<std::string, kEngineLevels>> keys(rows_.size());
    for (std::size_t r = 0; r < rows_.size(); ++r)
      for (std::size_t l = 0; l < kEngineLevels; ++l) {
        keys[r][l] = effect_key(problem.subjects[rows_[r]], static_cast<EngineLevel>(l));
        ++count[keys[r][l]];
      }
    for (std::size_t l = 0; l < kEngineLevels; ++l)
      for (std::size_t r = 0; r < rows_.size(); ++r) {
        const std::string& key = keys[r][l];
        if (key.empty() || (count[key] < kFewestRows && l > 0)) continue;
        if (index_.emplace(key, names_.size()).second) {
          names_.push_back(key);
          levels_.push_back(static_cast<EngineLevel>(l));
          counts_.push_back(count[key]);
        }
      }
    effects_of_.resize(rows_.size());
    members_.resize(names_.size());
    for (std::size_t r = 0; r < rows_.size(); ++r)
      for (std::size_t l = 0; l < kEngineLevels; ++l)
        if (const auto it = index_.find(keys[r][l]); it != index_.end()) {
          effects_of_[r].push_back(it->second);
          members_[it->second].push_back(r);
        }
    std::set<std::vector<std::size_t>> chains;
    for (std::size_t r = 0; r < rows_.size(); ++r)
      if (timed_by_tables(kind, problem.subjects[rows_[r]])) chains.insert(effects_of_[r]);
    chains_.assign(chains.begin(), chains.end());
    x_.assign(names_.size() * kEngineParameters, 0);
    hold_.assign(x_.size(), 0);
    for (std::size_t e = 0; e < names_.size(); ++e)
      for (std::size_t p = 0; p < kEngineParameters; ++p) {
        hold_[e * kEngineParameters + p] =
            hold_of(kind, levels_[e], static_cast<EngineParameter>(p));
      }
    for (std::size_t p = 0; p < kEngineParameters; ++p)
      free_[p] = fitted_parameter(kind, static_cast<EngineParameter>(p));
    error_.assign(rows_.size(), 0);
    slopes_.resize(rows_.size());
  }

  // What all engines share; finer effects start at one, so that none remembers a row left out.
  void start_from(const std::map<std::string, EngineEffect, std::less<>>& other) {
    for (std::size_t e = 0; e < names_.size(); ++e)
      if (levels_[e] > EngineLevel::weight_class)
        continue;
      else if (const auto it = other.find(names_[e]); it != other.end())
        for (std::size_t p = 0; p < kEngineParameters; ++p) {
          if (!free_[p]) continue;
          const double unit = levels_[e] == EngineLevel::kind ? neutral(p) : 1;
          x_[e * kEngineParameters + p] = std::log(it->second.factor[p] / unit);
        }
  }

  // Levenberg-Marquardt steps with the Cauchy scale `scale`, until they no longer help.
  void improve(double scale, int steps) {
    double now = objective(x_, scale), damping = 1e-3;
    for (int k = 0; k < steps; ++k) {
      find_slopes();
      bool better = false, small = false;
      for (int tries = 0; tries < 6 && !better; ++tries) {
        const std::vector<double> step = solve(scale, damping);
        std::vector<double> trial = x_;
        for (std::size_t j = 0; j < trial.size(); ++j)
          trial[j] += std::clamp(step[j], -kLongestStep, kLongestStep);
        const std::vector<double> errors = error_;
        const double then = objective(trial, scale);
        if (then < now) {
          small = now - then < 3e-4 * now;
          now = then;
          x_ = std::move(trial);
          better = true;
          damping = std::max(1e-4, damping / 5);
        } else {
          error_ = errors;
          damping *= 10;
        }
      }
      if (!better || small) break;
    }
  }

  // Below the time of what it bounds an overhead changes nothing and has no slope: some jumps.
  void jump(double scale) {
    for (std::size_t e = 0; e < names_.size(); ++e) {
      if (levels_[e] != EngineLevel::kind && levels_[e] != EngineLevel::library &&
          levels_[e] != EngineLevel::engine && levels_[e] != EngineLevel::engine_class)
        continue;
      for (std::size_t p = 0; p < kEngineParameters; ++p) {
        const auto parameter = static_cast<EngineParameter>(p);
        const bool core = parameter == EngineParameter::core_stream;
        if (!free_[p] || (!is_overhead(parameter) && !core) || !knows(kind_, levels_[e], parameter))
          continue;
        double& value = x_[e * kEngineParameters + p];
        const double hold = hold_[e * kEngineParameters + p], before = value;
        double best = part_of_objective(e, scale) + hold * before * before / 2, at = before;
        for (const double far : {-1.5, 1.5, 3.0}) {
          const double shift = core ? far / 2 : far;
          value = before + shift;
          const double then = part_of_objective(e, scale) + hold * value * value / 2;
          if (then < best) best = then, at = value;
        }
        value = at;
      }
    }
  }

  std::map<std::string, EngineEffect, std::less<>> effects() const {
    std::map<std::string, EngineEffect, std::less<>> out;
    for (std::size_t e = 0; e < names_.size(); ++e) {
      EngineEffect effect;
      effect.rows = counts_[e];
      for (std::size_t p = 0; p < kEngineParameters; ++p) {
        const double unit = levels_[e] == EngineLevel::kind ? neutral(p) : 1;
        effect.factor[p] = unit * std::exp(x_[e * kEngineParameters + p]);
      }
      out.emplace(names_[e], effect);
    }
    return out;
  }

 private:
  double highest(std::size_t r, std::size_t p) const {
    return largest(problem_.subjects[rows_[r]], static_cast<EngineParameter>(p));
  }
  // Its effects ask for more than is possible: a little more or less of them changes nothing.
  bool beyond(std::size_t r, std::size_t p) const {
    double sum = 0;
    for (const std::size_t e : effects_of_[r]) sum += x_[e * kEngineParameters + p];
    return neutral(p) * std::exp(sum) > highest(r, p) * std::exp(kDifference);
  }
  double neutral(std::size_t p) const { return neutral_.*engine_parameters()[p].field; }

  EngineCoefficients at(std::size_t r, const std::vector<double>& x) const {
    EngineCoefficients c = neutral_;
    for (std::size_t p = 0; p < kEngineParameters; ++p) {
      if (!free_[p]) continue;
      const ParameterInfo& info = engine_parameters()[p];
      double sum = 0;
      for (const std::size_t e : effects_of_[r]) sum += x[e * kEngineParameters + p];
      c.*info.field = std::clamp(neutral(p) * std::exp(sum), info.low, highest(r, p));
    }
    return c;
  }

  template <class F>
  void for_rows(F&& f) const {
    const unsigned n = std::max(1u, std::thread::hardware_concurrency());
    std::vector<std::thread> pool;
    const auto work = [&](unsigned k) {
      for (std::size_t r = k; r < rows_.size(); r += n) f(r);
    };
    for (unsigned k = 1; k < n; ++k) pool.emplace_back(work, k);
    work(0);
    for (std::thread& t : pool) t.join();
  }

  static double cauchy(double r, double scale) {
    return scale * scale / 2 * std::log1p(r * r / (scale * scale));
  }

  double objective(const std::vector<double>& x, double scale) {
    for_rows([&](std::size_t r) { error_[r] = problem_.log_error(rows_[r], at(r, x)); });
    double sum = 0;
    for (std::size_t r = 0; r < rows_.size(); ++r)
      if (std::isfinite(error_[r]))
        sum += problem_.weights[rows_[r]] * cauchy(error_[r], scale) / (kNoise * kNoise);
    for (std::size_t j = 0; j < x.size(); ++j) sum += hold_[j] * x[j] * x[j] / 2;
    for_chains([&](const Together& places) {
      const double together = sum_of(places, x);
      sum += kHoldTogether * together * together / 2;
    });
    return sum;
  }

  // What a chain makes of the rate of products, and of attention over prompts.
  using Together = std::vector<std::size_t>;  // places in x
  template <class F>
  void for_chains(F&& f) const {
    Together of;
    for (const std::vector<std::size_t>& chain : chains_)
      for (const bool products : {true, false}) {
        of.clear();
        for (const std::size_t e : chain) {
          const auto at = [&](EngineParameter p) {
            return e * kEngineParameters + static_cast<std::size_t>(p);
          };
          if (products) {
            of.push_back(at(EngineParameter::compute));
          } else {
            of.push_back(at(EngineParameter::attention));
            of.push_back(at(EngineParameter::prompt_attention));
          }
        }
        f(of);
      }
  }
  static double sum_of(const Together& places, const std::vector<double>& x) {
    double sum = 0;
    for (const std::size_t j : places) sum += x[j];
    return sum;
  }

  double part_of_objective(std::size_t effect, double scale) {
    double sum = 0;
    for (const std::size_t r : members_[effect]) {
      const double e = problem_.log_error(rows_[r], at(r, x_));
      if (std::isfinite(e))
        sum += problem_.weights[rows_[r]] * cauchy(e, scale) / (kNoise * kNoise);
    }
    return sum;
  }

  void find_slopes() {
    for_rows([&](std::size_t r) {
      const EngineCoefficients base = at(r, x_);
      error_[r] = problem_.log_error(rows_[r], base);
      for (std::size_t p = 0; p < kEngineParameters; ++p) {
        slopes_[r][p] = 0;
        if (!free_[p] || !std::isfinite(error_[r])) continue;
        // In inference of networks slopes at the limit predict unseen rows better (docs/cost.md).
        if (kind_ != EngineKind::serve_graph && beyond(r, p)) continue;
        const ParameterInfo& info = engine_parameters()[p];
        EngineCoefficients c = base;
        // Towards the inside of what is possible.
        double h =
            base.*info.field * std::exp(kDifference) > highest(r, p) ? -kDifference : kDifference;
        c.*info.field *= std::exp(h);
        const double e = problem_.log_error(rows_[r], c);
        if (std::isfinite(e)) slopes_[r][p] = (e - error_[r]) / h;
      }
    });
  }

  // (J' W J + hold) step = -(J' W e + hold x), by conjugate gradients.
  std::vector<double> solve(double scale, double damping) const {
    const std::size_t n = x_.size();
    std::vector<double> w(rows_.size(), 0);
    for (std::size_t r = 0; r < rows_.size(); ++r)
      if (std::isfinite(error_[r]))
        w[r] = problem_.weights[rows_[r]] / (1 + error_[r] * error_[r] / (scale * scale)) /
               (kNoise * kNoise);
    const auto add_row = [&](std::size_t r, double by, std::vector<double>& to) {
      for (const std::size_t e : effects_of_[r])
        for (std::size_t p = 0; p < kEngineParameters; ++p)
          to[e * kEngineParameters + p] += by * slopes_[r][p];
    };
    std::vector<double> scale_of(n);
    const auto times = [&](const std::vector<double>& v) {
      std::vector<double> out(n);
      for (std::size_t j = 0; j < n; ++j) out[j] = (hold_[j] + damping * scale_of[j]) * v[j];
      for (std::size_t r = 0; r < rows_.size(); ++r) {
        if (w[r] == 0) continue;
        double dot = 0;
        for (const std::size_t e : effects_of_[r])
          for (std::size_t p = 0; p < kEngineParameters; ++p)
            dot += slopes_[r][p] * v[e * kEngineParameters + p];
        add_row(r, w[r] * dot, out);
      }
      for_chains([&](const Together& places) {
        const double by = kHoldTogether * sum_of(places, v);
        for (const std::size_t j : places) out[j] += by;
      });
      return out;
    };
    std::vector<double> b(n, 0);
    for (std::size_t r = 0; r < rows_.size(); ++r)
      if (w[r] != 0) add_row(r, -w[r] * error_[r], b);
    for (std::size_t j = 0; j < n; ++j) b[j] -= hold_[j] * x_[j], scale_of[j] = hold_[j];
    for_chains([&](const Together& places) {
      const double by = kHoldTogether * sum_of(places, x_);
      for (const std::size_t j : places) b[j] -= by, scale_of[j] += kHoldTogether;
    });
    for (std::size_t r = 0; r < rows_.size(); ++r)
      for (const std::size_t e : effects_of_[r])
        for (std::size_t p = 0; p < kEngineParameters; ++p)
          scale_of[e * kEngineParameters + p] += w[r] * slopes_[r][p] * slopes_[r][p];
    const auto dot = [&](const std::vector<double>& a, const std::vector<double>& c) {
      double s = 0;
      for (std::size_t j = 0; j < n; ++j) s += a[j] * c[j];
      return s;
    };
    std::vector<double> step(n, 0), left = b, z(n), d(n);
    for (std::size_t j = 0; j < n; ++j) z[j] = left[j] / scale_of[j];
    d = z;
    double old = dot(left, z);
    const double enough = 1e-8 * old;
    for (int k = 0; k < 300 && old > enough && old > 0; ++k) {
      const std::vector<double> q = times(d);
      const double by = old / dot(d, q);
      for (std::size_t j = 0; j < n; ++j) step[j] += by * d[j], left[j] -= by * q[j];
      for (std::size_t j = 0; j < n; ++j) z[j] = left[j] / scale_of[j];
      const double now = dot(left, z);
      for (std::size_t j = 0; j < n; ++j) d[j] = z[j] + now / old * d[j];
      old = now;
    }
    return step;
  }

  const FitProblem& problem_;
  EngineKind kind_;
  EngineCoefficients neutral_;
  std::array<bool, kEngineParameters> free_{};
  std::vector<std::size_t> rows_;  // seen, as indices of the problem's
  std::map<std::string, std::size_t, std::less<>> index_;
  std::vector<std::string> names_;  // of effects
  std::vector<EngineLevel> levels_;
  std::vector<std::int64_t> counts_;
  std::vector<std::vector<std::size_t>> effects_of_, members_;  // of a row; of an effect
  std::vector<std::vector<std::size_t>> chains_;                // effects that meet in a row
  std::vector<double> x_, hold_;                                // [effect][parameter]
  std::vector<double> error_;
  std::vector<Slopes> slopes_;
};

}  // namespace

std::map<std::string, EngineEffect, std::less<>> fit_effects(
    const FitProblem& problem, EngineKind kind, const std::vector<bool>& seen,
    const std::map<std::string, EngineEffect, std::less<>>* start) {
  Fit fit(problem, kind, seen);
  constexpr double kScale = 0.35;  // of the Cauchy weights: half weight at this log error
  constexpr int kSteps = 8;
  if (start)
    fit.start_from(*start);
  else
    fit.improve(1.5, kSteps);
  fit.jump(kScale);
  fit.improve(kScale, kSteps);
  fit.jump(kScale);
  fit.improve(kScale, kSteps);
  return fit.effects();
}

}  // namespace trigon
