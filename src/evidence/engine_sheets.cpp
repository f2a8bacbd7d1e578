// What a fit of the engines found, as sheets.

#include <array>
#include <cmath>

#include <fmt/format.h>

#include "evidence/calibrate_engines.hpp"

namespace trigon {

std::vector<std::pair<std::string, std::string>> write_engine_sheets(const EngineFit& fit,
                                                                     const std::string& source,
                                                                     const std::string& date,
                                                                     const std::string& command) {
  const auto head = [&](const std::string& kind, const std::string& id) {
    return fmt::format(
        "# Written by `{}`; run it again instead of editing.\nkind = \"{}\"\nid = \"{}\"\n"
        "source = \"{}\"\ndate = \"{}\"\n",
        command, kind, id, source, date);
  };
  const auto parts = [](const std::string& key) {
    std::array<std::string, 5> p;
    std::size_t at = 0;
    for (std::string& part : p) {
      const std::size_t end = std::min(key.find('/', at), key.size());
      part = key.substr(std::min(at, key.size()), end - std::min(at, key.size()));
      at = end + 1;
    }
    return p;
  };
  const auto sheet = [&](const std::string& kind, const std::string& id, const EngineTable& t) {
    std::string out = head(kind, id);
    for (const auto& [key, e] : t.effects) {
      const auto p = parts(key);
      out += fmt::format("\n[[effect]]\nkind = \"{}\"\n", p[0]);
      constexpr const char* names[] = {"kind", "engine", "scope", "class", "format"};
      for (std::size_t k = 1; k < p.size(); ++k)
        if (!p[k].empty()) out += fmt::format("{} = \"{}\"\n", names[k], p[k]);
      for (std::size_t i = 0; i < kEngineParameters; ++i)
        if (std::fabs(e.factor[i] - 1) > 5e-4)
          out += fmt::format("{} = {:.4g}\n", engine_parameters()[i].name, e.factor[i]);
      out += fmt::format("rows = {}\n", e.rows);
    }
    for (const auto& [name, errors] : {std::pair{"error", &t.errors}, {"strange", &t.strange}})
      for (const auto& [key, e] : *errors) {
        const auto p = parts(key);
        out += fmt::format("\n[[{}]]\nkind = \"{}\"\n", name, p[0]);
        if (!p[1].empty()) out += fmt::format("engine = \"{}\"\n", p[1]);
        if (!p[2].empty()) out += fmt::format("family = \"{}\"\n", p[2]);
        out += fmt::format("compute = {:.4g}\nstream = {:.4g}\nrows = {}\n", e.compute, e.stream,
                           e.rows);
      }
    return out;
  };
  std::vector<std::pair<std::string, std::string>> out;
  out.emplace_back("engines.toml", sheet("calibration", "engines", *fit.shipped));
  for (std::size_t k = 0; k < fit.unseen.size(); ++k)
    out.emplace_back(fmt::format("folds/engines-{}.toml", k),
                     sheet("calibration_fold", std::to_string(k), *fit.unseen[k]));
  std::string report = head("calibration_report", "engines");
  for (const LeftOutFigures& f : fit.figures)
    report += fmt::format(
        "\n[[left_out]]\nwhat = \"{}\"\nkind = \"{}\"\nrows = {}\nmedian_error = {:.4g}\n"
        "median_of_group_medians = {:.4g}\n",
        f.what, f.kind, f.rows, f.median, f.median_of_groups);
  out.emplace_back("reports/engines.toml", report);
  return out;
}

}  // namespace trigon
