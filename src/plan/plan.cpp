#include "plan/plan.hpp"

namespace trigon {

std::string write_plan(const Plan& p) {
  std::string out;
  auto add = [&](const char* name, std::int32_t v, bool always = false) {
    if (v == 1 && !always) return;
    if (!out.empty()) out += ' ';
    out += name + std::to_string(v);
  };
  add("tp", p.tensor, p.ranks() == 1);
  add("pp", p.pipeline);
  add("vpp", p.virtual_stages);
  add("dp", p.data);
  add("cp", p.context);
  add("ep", p.expert);
  if (p.zero > 0) out += " zero" + std::to_string(p.zero);
  if (!out.empty() && out[0] == ' ') out.erase(0, 1);
  return out;
}

}  // namespace trigon
