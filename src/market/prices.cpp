#include "market/prices.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>

namespace trigon {
namespace {

constexpr std::array<std::string_view, 5> kKinds = {"on_demand", "spot", "reserved", "marketplace",
                                                    "purchase"};
constexpr int kRecentDays = 548;  // 18 months
constexpr int kOldDays = 365;

std::string_view trimmed(std::string_view s) {
  while (!s.empty() && s.front() == ' ') s.remove_prefix(1);
  while (!s.empty() && s.back() == ' ') s.remove_suffix(1);
  return s;
}

std::optional<double> number_of(std::string_view s) {
  double v = 0;
  auto r = std::from_chars(s.data(), s.data() + s.size(), v);
  if (r.ec != std::errc() || r.ptr != s.data() + s.size()) return std::nullopt;
  return v;
}

Result<PriceRow> read_row(std::string_view text, const FactSheet& sheet,
                          std::string_view provider) {
  std::array<std::string_view, 8> f;
  std::size_t n = 0;
  std::string_view rest = text;
  while (true) {
    auto at = rest.find('|');
    if (n < f.size()) f[n] = trimmed(rest.substr(0, at));
    ++n;
    if (at == rest.npos) break;
    rest.remove_prefix(at + 1);
  }
  PriceRow p;
  auto kind = std::find(kKinds.begin(), kKinds.end(), f[1]);
  auto usd = number_of(f[2]), count = number_of(f[3]);
  bool dated = f[5].empty() || day_number(f[5]);
  if (n != f.size() || f[0].empty() || kind == kKinds.end() || !usd || *usd <= 0 || !count ||
      *count <= 0 || !dated || (f[6] != "all" && f[6] != "accelerator_only"))
    return fail(ErrorCode::malformed, message(MarketMessage::bad_price_row, text),
                sheet.where.empty() ? sheet.fact_id("rows") : sheet.where);
  p.accelerators = f[0];
  p.kind = static_cast<PriceKind>(kind - kKinds.begin());
  p.usd = *usd;
  p.count = *count;
  p.region = f[4];
  p.date = f[5];
  p.accelerator_only = f[6] == "accelerator_only";
  p.instance = f[7];
  p.provider = provider;
  p.sheet = &sheet;
  return p;
}

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  std::size_t n = v.size();
  return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

template <class Q>
PriceQuote<Q> quote_of(const std::vector<const PriceRow*>& offers, const Accelerator& a,
                       std::string_view as_of, Q (*unit)(double)) {
  std::map<std::string, std::vector<double>> by_provider;
  PriceQuote<Q> q;
  bool several = false, bare = false;
  for (const PriceRow* p : offers) {
    by_provider[std::string(p->provider)].push_back(p->usd);
    ++q.offers;
    several |= !p->exact();
    bare |= p->accelerator_only;
    if (p->date.empty()) continue;
    if (q.newest.empty() || p->date > q.newest) q.newest = p->date;
    if (q.oldest.empty() || p->date < q.oldest) q.oldest = p->date;
  }
  std::vector<double> medians;
  for (auto& [provider, prices] : by_provider) {
    q.providers.push_back(provider);
    medians.push_back(median(prices));
  }
  auto [low, high] = std::minmax_element(medians.begin(), medians.end());
  q.price = {unit(median(medians)), unit(*low), unit(*high), Basis::measured};
  auto now = day_number(as_of), then = day_number(q.newest);
  if (now && then) q.age_days = std::max(0, *now - *then);
  q.old = !q.age_days || *q.age_days > kOldDays;
  if (!q.age_days)
    q.notes.push_back(message(MarketMessage::undated_price, a.id));
  else if (q.old)
    q.notes.push_back(message(MarketMessage::old_price, a.id, q.newest, *q.age_days, as_of));
  if (several) q.notes.push_back(message(MarketMessage::price_of_several_cards, a.id));
  if (bare) q.notes.push_back(message(MarketMessage::price_without_machine, a.id));
  return q;
}

// Keeps those for which `keep` holds, unless that leaves none.
template <class F>
void prefer(std::vector<const PriceRow*>& v, F keep) {
  std::vector<const PriceRow*> kept;
  std::copy_if(v.begin(), v.end(), std::back_inserter(kept), keep);
  if (!kept.empty()) v = std::move(kept);
}

}  // namespace

std::string_view name_of(PriceKind k) { return kKinds[static_cast<std::size_t>(k)]; }

bool PriceRow::names(std::string_view id) const {
  std::string_view rest = accelerators;
  while (true) {
    auto at = rest.find(',');
    if (rest.substr(0, at) == id) return true;
    if (at == rest.npos) return false;
    rest.remove_prefix(at + 1);
  }
}

std::optional<int> day_number(std::string_view d) {
  int part[3] = {0, 7, 1};
  std::size_t n = 0;
  std::size_t given = 0;
  while (n < 3 && !d.empty()) {
    auto r = std::from_chars(d.data(), d.data() + d.size(), part[n]);
    std::size_t digits = static_cast<std::size_t>(r.ptr - d.data());
    if (r.ec != std::errc() || digits != (n == 0 ? 4u : 2u)) return std::nullopt;
    d.remove_prefix(digits);
    given = ++n;
    if (d.empty()) break;
    if (d[0] != '-') return std::nullopt;
    d.remove_prefix(1);
    if (d.empty()) return std::nullopt;
  }
  if (given == 0 || !d.empty()) return std::nullopt;
  if (given == 2) part[2] = 15;
  int y = part[0], m = part[1], day = part[2];
  constexpr int lengths[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  bool leap = y % 4 == 0 && (y % 100 != 0 || y % 400 == 0);
  if (m < 1 || m > 12 || day < 1 || day > lengths[m - 1] + (m == 2 && leap ? 1 : 0))
    return std::nullopt;
  // Days of the proleptic Gregorian calendar, years counted from March.
  int yy = m <= 2 ? y - 1 : y, mm = m <= 2 ? m + 9 : m - 3;
  return 365 * yy + yy / 4 - yy / 100 + yy / 400 + (153 * mm + 2) / 5 + day - 1 - 719468;
}

Result<PriceBook> PriceBook::from(const FactStore& store) {
  PriceBook book;
  for (const FactSheet* s : store.of_kind("prices")) {
    const Fact* provider = s->find("provider");
    const Fact* rows = s->find("rows");
    auto name = provider ? std::get_if<std::string>(&provider->value) : nullptr;
    auto list = rows ? std::get_if<std::vector<std::string>>(&rows->value) : nullptr;
    if (!name) return tl::unexpected(s->missing("provider"));
    if (!list) return tl::unexpected(s->missing("rows"));
    for (const std::string& text : *list) {
      auto row = read_row(text, *s, *name);
      if (!row) return tl::unexpected(row.error());
      if (row->date > book.snapshot_) book.snapshot_ = row->date;
      book.rows_.push_back(*row);
    }
  }
  return book;
}

std::vector<const PriceRow*> PriceBook::offers(const Accelerator& a, PriceKind kind,
                                               std::string_view as_of) const {
  std::vector<const PriceRow*> found;
  auto now = day_number(as_of);
  for (const PriceRow& p : rows_) {
    if (p.kind != kind || !p.names(a.id)) continue;
    auto then = day_number(p.date);
    if (now && then && *then > *now) continue;
    found.push_back(&p);
  }
  prefer(found, [&](const PriceRow* p) {
    auto then = day_number(p->date);
    return now && then && *now - *then <= kRecentDays;
  });
  prefer(found, [](const PriceRow* p) { return !p->accelerator_only; });
  prefer(found, [](const PriceRow* p) { return p->exact(); });
  return found;
}

std::optional<RentQuote> PriceBook::rent(const Accelerator& a, PriceKind kind,
                                         std::string_view as_of) const {
  if (as_of.empty()) as_of = snapshot_;
  auto found = offers(a, kind, as_of);
  if (found.empty() || kind == PriceKind::purchase) return std::nullopt;
  return quote_of<DollarsPerSecond>(found, a, as_of, &dollars_per_hour);
}

std::optional<PurchaseQuote> PriceBook::buy(const Accelerator& a, std::string_view as_of) const {
  if (as_of.empty()) as_of = snapshot_;
  auto found = offers(a, PriceKind::purchase, as_of);
  if (found.empty()) return std::nullopt;
  auto q = quote_of<Dollars>(found, a, as_of, &dollars);
  if (q.providers.size() == 1 && q.providers[0] == "purchase at launch")
    q.notes.push_back(message(MarketMessage::launch_price_only, a.id));
  return q;
}

DollarsPerSecond hourly_cost_of_ownership(const Ownership& o) {
  constexpr double seconds_per_year = 365 * 86400.0;
  DollarsPerSecond capital = o.price / seconds(o.service_years * seconds_per_year * o.utilisation);
  DollarsPerSecond energy = DollarsPerSecond::base(
      (o.power * o.pue).in_base() / kilowatt_hours(1).in_base() * o.per_kilowatt_hour.in_base());
  return capital + energy;
}

Result<OwnershipDefaults> ownership_defaults(const FactStore& store) {
  const FactSheet* s = store.find("ownership", "default");
  if (!s)
    return fail(ErrorCode::missing_fact, message(BaseMessage::missing_fact, "ownership", "default"),
                "ownership/default");
  auto pue = s->number("pue"), kwh = s->number("usd_per_kwh"),
       years = s->number("service_life_years");
  if (!pue) return tl::unexpected(s->missing("pue"));
  if (!kwh) return tl::unexpected(s->missing("usd_per_kwh"));
  if (!years) return tl::unexpected(s->missing("service_life_years"));
  return OwnershipDefaults{*pue, *years, dollars(*kwh), s};
}

}  // namespace trigon
