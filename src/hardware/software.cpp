#include "hardware/software.hpp"

#include <algorithm>
#include <cmath>

#include "hardware/names.hpp"

namespace trigon {
namespace {

std::string_view text(const FactGroup& g, std::string_view key) {
  const Fact* f = find_fact(g.facts, key);
  auto t = f ? std::get_if<std::string>(&f->value) : nullptr;
  return t ? std::string_view(*t) : std::string_view();
}
std::optional<double> number(const FactGroup& g, std::string_view key) {
  const Fact* f = find_fact(g.facts, key);
  auto n = f ? std::get_if<double>(&f->value) : nullptr;
  if (!n) return std::nullopt;
  return *n;
}
const std::vector<std::string>* texts(const FactGroup& g, std::string_view key) {
  const Fact* f = find_fact(g.facts, key);
  return f ? std::get_if<std::vector<std::string>>(&f->value) : nullptr;
}

bool has(const std::vector<std::string>& list, std::string_view value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

// "gfx11xx" stands for every gfx11.. target: x is one digit.
bool gfx_matches(std::string_view pattern, std::string_view target) {
  if (pattern.size() != target.size()) return false;
  for (std::size_t i = 3; i < pattern.size(); ++i)
    if (pattern[i] != 'x' && target[i] != 'x' && pattern[i] != target[i]) return false;
  return true;
}

// All selectors of a statement must hold; one without selectors is about everything.
bool about(const FactGroup& g, const Accelerator& a) {
  constexpr std::string_view kinds[] = {"gpu", "apu", "cpu", "npu"};
  if (auto l = texts(g, "vendors"); l && !has(*l, a.vendor)) return false;
  if (auto l = texts(g, "kinds"); l && !has(*l, kinds[static_cast<std::size_t>(a.kind)]))
    return false;
  if (auto l = texts(g, "architectures"); l && !has(*l, a.architecture)) return false;
  if (auto l = texts(g, "families"); l && !has(*l, a.family)) return false;
  if (auto l = texts(g, "ids"); l && !has(*l, a.id)) return false;
  if (auto l = texts(g, "not_ids"); l && has(*l, a.id)) return false;
  if (auto l = texts(g, "gfx"))
    if (a.gfx.empty() || std::none_of(l->begin(), l->end(),
                                      [&](const std::string& p) { return gfx_matches(p, a.gfx); }))
      return false;
  const Fact* exact = find_fact(g.facts, "capabilities");
  auto low = number(g, "capability_min"), high = number(g, "capability_max"),
       other = number(g, "capability_not");
  if (!exact && !low && !high && !other) return true;
  if (!a.compute_capability) return false;
  double have = std::round(*a.compute_capability * 10);
  if (low && have < *low) return false;
  if (high && have > *high) return false;
  if (other && have == *other) return false;
  if (exact) {
    auto list = std::get_if<std::vector<double>>(&exact->value);
    bool listed = list && std::find(list->begin(), list->end(), have) != list->end();
    // PTX of the last target also runs on later ones.
    auto also = number(g, "capability_min_also");
    if (!listed && !(also && have >= *also)) return false;
  }
  return true;
}

std::optional<Support> support_by_name(std::string_view s) {
  for (auto v : {Support::no, Support::partial, Support::yes})
    if (name_of(v) == s) return v;
  return std::nullopt;
}

}  // namespace

std::string_view name_of(Support s) {
  constexpr std::string_view names[] = {"no", "partial", "yes", "unknown"};
  return names[static_cast<std::size_t>(s)];
}

Result<SupportTable> SupportTable::from(const FactStore& store) {
  SupportTable t;
  for (const FactSheet* s : store.of_kind("support")) {
    Software w;
    w.id = s->id;
    for (const FactGroup& g : s->groups) {
      if (g.name != "entry") continue;
      Statement st;
      auto support = support_by_name(text(g, "supported"));
      st.answer.feature = text(g, "feature");
      if (!support || st.answer.feature.empty())
        return fail(ErrorCode::malformed,
                    message(BaseMessage::missing_key, support ? "feature" : "supported"), s->where);
      st.answer.support = *support;
      st.answer.detail = text(g, "detail");
      st.answer.version = text(g, "version");
      st.answer.source = text(g, "source");
      st.answer.hardware = text(g, "hardware");
      st.selectors = &g;
      w.statements.push_back(st);
    }
    t.all_.push_back(std::move(w));
  }
  return t;
}

const SupportTable::Software* SupportTable::find(std::string_view id) const {
  std::string key = normalised_name(id);
  for (const Software& w : all_)
    if (normalised_name(w.id) == key) return &w;
  return nullptr;
}

SupportAnswer SupportTable::supports(const Accelerator& a, std::string_view software,
                                     std::string_view feature) const {
  SupportAnswer answer;
  answer.feature = feature;
  const Software* w = find(software);
  if (!w) return answer;
  const Statement* refused = nullptr;  // the last "no" about everything
  bool said = false;
  for (const Statement& s : w->statements) {
    if (!about(*s.selectors, a)) continue;
    if (s.answer.feature == feature) {
      answer = s.answer;
      said = true;
    } else if (s.answer.feature == "any") {
      if (s.answer.support == Support::no && (!refused || !said)) refused = &s;
      if (s.answer.support != Support::no && !said) answer = s.answer;
    }
  }
  // What one version refuses another may have.
  if (refused && (!said || refused->answer.version == answer.version)) answer = refused->answer;
  return answer;
}

std::vector<SupportAnswer> SupportTable::statements(const Accelerator& a,
                                                    std::string_view software) const {
  std::vector<SupportAnswer> out;
  if (const Software* w = find(software))
    for (const Statement& s : w->statements)
      if (about(*s.selectors, a)) out.push_back(s.answer);
  return out;
}

std::vector<std::string_view> SupportTable::software() const {
  std::vector<std::string_view> out;
  for (const Software& w : all_) out.push_back(w.id);
  return out;
}

}  // namespace trigon
