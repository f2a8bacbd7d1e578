#include "market/prices.hpp"

#include <gtest/gtest.h>

#include "hardware/catalog.hpp"

namespace trigon {
namespace {

const FactStore& facts() {
  static const FactStore store = FactStore::embedded().value();
  return store;
}
const AcceleratorCatalog& cards() {
  static const AcceleratorCatalog c = AcceleratorCatalog::from(facts()).value();
  return c;
}
const PriceBook& book() {
  static const PriceBook b = PriceBook::from(facts()).value();
  return b;
}
const Accelerator& card(std::string_view name) { return **cards().find(name); }
double per_hour(DollarsPerSecond v) { return v.in_base() * 3600; }

// A book of exactly these rows, all of one provider.
struct Made {
  FactStore store;
  PriceBook book;
  explicit Made(std::vector<std::vector<std::string>> providers) {
    int n = 0;
    for (auto& rows : providers) {
      FactSheet s;
      s.kind = "prices";
      s.id = "p" + std::to_string(n);
      s.source = s.date = "test";
      s.facts.push_back({"provider", "provider " + std::to_string(n++), {}, {}});
      s.facts.push_back({"rows", std::move(rows), {}, {}});
      store.add(std::move(s));
    }
    book = PriceBook::from(store).value();
  }
};

TEST(Prices, Dates) {
  EXPECT_EQ(day_number("1970-01-01"), 0);
  EXPECT_EQ(day_number("2024-02-29"), 19782);
  EXPECT_EQ(*day_number("2026-03-01") - *day_number("2026-02-28"), 1);
  EXPECT_EQ(day_number("2025-03"), day_number("2025-03-15"));
  EXPECT_EQ(day_number("2025"), day_number("2025-07-01"));
  for (const char* bad : {"", "25", "2025-13", "2025-00", "2025-02-30", "2025-1", "2025-01-01x",
                          "2025-", "last year"})
    EXPECT_FALSE(day_number(bad)) << bad;
}

TEST(Prices, EveryRowNamesCardsOfTheCatalogue) {
  EXPECT_GT(book().rows().size(), 1000u);
  for (const PriceRow& p : book().rows()) {
    std::string_view rest = p.accelerators;
    while (!rest.empty()) {
      auto at = rest.find(',');
      EXPECT_TRUE(cards().by_id(rest.substr(0, at))) << p.accelerators;
      rest.remove_prefix(at == rest.npos ? rest.size() : at + 1);
    }
    EXPECT_LT(p.usd, p.kind == PriceKind::purchase ? 60000 : 30) << p.accelerators;
  }
  EXPECT_EQ(book().snapshot_date(), "2026-10-19");
}

TEST(Prices, AQuoteIsTheSpreadOverProviders) {
  Made m({{"l4 | on_demand | 1 | 1 | a | 2026-01-01 | all | x",
           "l4 | on_demand | 3 | 1 | b | 2026-01-01 | all | x",
           "l4 | on_demand | 100 | 1 | b | 2026-01-01 | all | x"},
          {"l4 | on_demand | 5 | 1 | a | 2026-02-01 | all | y"},
          {"l4 | on_demand | 2 | 1 | a | 2025-12-01 | all | z"}});
  auto q = m.book.rent(card("l4"), PriceKind::on_demand, "2026-02-11");
  ASSERT_TRUE(q);
  EXPECT_DOUBLE_EQ(per_hour(q->price.value), 3);
  EXPECT_DOUBLE_EQ(per_hour(q->price.low), 2);
  EXPECT_DOUBLE_EQ(per_hour(q->price.high), 5);
  EXPECT_EQ(q->offers, 5);
  EXPECT_EQ(q->providers.size(), 3u);
  EXPECT_EQ(*q->age_days, 10);
  EXPECT_FALSE(q->old);
  EXPECT_FALSE(m.book.rent(card("l4"), PriceKind::spot));
  EXPECT_FALSE(m.book.rent(card("t4"), PriceKind::on_demand));
}

TEST(Prices, RecentExactAndWholeOffersComeFirst) {
  Made m({{"l4 | on_demand | 9 | 1 | a | 2020-01-01 | all | x",
           "l4 | on_demand | 1 | 1 | a | 2026-01-01 | all | x",
           "l4 | on_demand | 7 | 1 | a | 2027-01-01 | all | x",
           "l4 | on_demand | 0.5 | 1 | a | 2026-01-01 | accelerator_only | ",
           "l4,t4 | on_demand | 4 | 1 | a | 2026-01-01 | all | x"}});
  EXPECT_DOUBLE_EQ(
      per_hour(m.book.rent(card("l4"), PriceKind::on_demand, "2026-06-01")->price.value), 1);
  // Only the old one is not in the future.
  auto old = m.book.rent(card("l4"), PriceKind::on_demand, "2024-01-01");
  EXPECT_DOUBLE_EQ(per_hour(old->price.value), 9);
  EXPECT_TRUE(old->old);
  ASSERT_FALSE(old->notes.empty());
  EXPECT_EQ(old->notes[0].id, message_id(MarketMessage::old_price));
  auto shared = m.book.rent(card("t4"), PriceKind::on_demand, "2026-06-01");
  EXPECT_DOUBLE_EQ(per_hour(shared->price.value), 4);
  EXPECT_EQ(shared->notes[0].id, message_id(MarketMessage::price_of_several_cards));
}

TEST(Prices, BadRowsAreErrors) {
  for (const char* row :
       {"l4 | on_demand | 1", "l4 | gift | 1 | 1 | a | 2026 | all | x",
        "l4 | spot | -1 | 1 | a | 2026 | all | x", "l4 | spot | 1 | 1 | a | soon | all | x",
        "l4 | spot | 1 | 1 | a | 2026 | half | x"}) {
    FactStore store;
    FactSheet s;
    s.kind = "prices";
    s.id = "p";
    s.facts = {{"provider", std::string("p"), {}, {}},
               {"rows", std::vector<std::string>{row}, {}, {}}};
    store.add(s);
    auto b = PriceBook::from(store);
    ASSERT_FALSE(b) << row;
    EXPECT_EQ(b.error().where, "prices/p#rows");
  }
}

TEST(Prices, TheGatheredPricesAreSane) {
  auto h100 = book().rent(card("h100-sxm"), PriceKind::on_demand);
  ASSERT_TRUE(h100);
  EXPECT_GT(per_hour(h100->price.value), 1.5);
  EXPECT_LT(per_hour(h100->price.value), 6);
  EXPECT_FALSE(h100->old);
  // The machine of g2-standard-4 costs extra to its bare L4: the cheapest offer holds both.
  auto l4 = book().rent(card("l4"), PriceKind::on_demand, "2024-06-01");
  ASSERT_TRUE(l4);
  EXPECT_GT(per_hour(l4->price.low), 0.3);
  auto spot = book().rent(card("t4"), PriceKind::spot);
  ASSERT_TRUE(spot);
  EXPECT_TRUE(spot->old);
  auto bought = book().buy(card("rtx-4090"));
  ASSERT_TRUE(bought);
  EXPECT_DOUBLE_EQ(bought->price.value.in_base(), 1599);
  EXPECT_EQ(bought->notes.back().id, message_id(MarketMessage::launch_price_only));
  EXPECT_DOUBLE_EQ(book().buy(card("gaudi-3"))->price.value.in_base(), 125000.0 / 8);
}

TEST(Ownership, IsCapitalPlusEnergy) {
  Ownership o;
  o.price = dollars(8760);
  o.service_years = 1;
  o.power = watts(1000);
  o.pue = 1.5;
  o.per_kilowatt_hour = dollars(0.1);
  EXPECT_NEAR(per_hour(hourly_cost_of_ownership(o)), 1 + 0.15, 1e-12);
  o.utilisation = 0.5;  // half of the hours carry all of the capital
  EXPECT_NEAR(per_hour(hourly_cost_of_ownership(o)), 2 + 0.15, 1e-12);
}

TEST(Ownership, DefaultsHaveSources) {
  auto d = ownership_defaults(facts());
  ASSERT_TRUE(d);
  EXPECT_GT(d->pue, 1);
  EXPECT_GT(d->per_kilowatt_hour, dollars(0.02));
  EXPECT_LT(d->per_kilowatt_hour, dollars(0.5));
  for (const char* key : {"pue", "usd_per_kwh", "service_life_years"})
    EXPECT_FALSE(d->sheet->find(key)->source.empty()) << key;
}

}  // namespace
}  // namespace trigon
