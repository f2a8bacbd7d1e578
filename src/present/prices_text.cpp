#include <algorithm>

#include "present/catalog_report.hpp"
#include "present/numbers.hpp"
#include "present/page.hpp"

namespace trigon {
namespace {

template <class Q>
std::string money(const std::optional<PriceQuote<Q>>& q, double factor,
                  Q Estimate<Q>::*which = &Estimate<Q>::value) {
  return q ? significant((q->price.*which).in_base() * factor) : std::string("-");
}

template <class Q>
JsonNode quote_json(const std::optional<PriceQuote<Q>>& q, double factor) {
  if (!q) return {};
  JsonNode providers = JsonNode::array(), notes = JsonNode::array();
  for (const std::string& p : q->providers) providers.add(p);
  for (const Message& m : q->notes) notes.add(message_json(m));
  const Estimate<Q>& e = q->price;
  return JsonNode::object()
      .set("usd", json_of(Estimate<double>{e.value.in_base() * factor, e.low.in_base() * factor,
                                           e.high.in_base() * factor, e.basis}))
      .set("offers", q->offers)
      .set("providers", providers)
      .set("oldest", q->oldest)
      .set("newest", q->newest)
      .set("notes", notes);
}

}  // namespace

std::string prices_text(const std::vector<CardPrices>& cards, const std::string& as_of,
                        const TextStyle& style) {
  Language l = style.language;
  Page page(style);
  page.paragraph(say(PresentMessage::prices_per_card, l, {as_of}));
  page.blank();
  auto name = [&](PresentMessage id) { return std::string(label(id, l)); };
  Table t({{name(PresentMessage::col_gpu)},
           {name(PresentMessage::col_price) + " USD/h", true},
           {name(PresentMessage::col_rent_low) + " USD/h", true, 3},
           {name(PresentMessage::col_rent_high) + " USD/h", true, 3},
           {name(PresentMessage::col_spot) + " USD/h", true, 2},
           {name(PresentMessage::col_purchase) + " USD", true},
           {name(PresentMessage::col_offers), true, 4},
           {name(PresentMessage::col_newest), false, 1}});
  for (const CardPrices& c : cards) {
    std::string newest = c.rent ? c.rent->newest : c.buy ? c.buy->newest : std::string();
    t.row({c.accelerator->id, money(c.rent, 3600),
           money(c.rent, 3600, &Estimate<DollarsPerSecond>::low),
           money(c.rent, 3600, &Estimate<DollarsPerSecond>::high), money(c.spot, 3600),
           money(c.buy, 1), c.rent ? std::to_string(c.rent->offers) : std::string("-"),
           newest.empty() ? std::string("-") : newest});
  }
  page.table(t, 0, style.top);
  return page.finish();
}

std::string offers_text(const CardPrices& card, const std::vector<const PriceRow*>& offers,
                        const TextStyle& style) {
  Language l = style.language;
  Page page(style);
  if (offers.empty()) {
    page.paragraph(say(PresentMessage::prices_none, l, {card.accelerator->id}));
    return page.finish();
  }
  page.paragraph(card.accelerator->id, Tone::strong);
  auto line = [&](PresentMessage what, const std::string& text) {
    page.paragraph(std::string(label(what, l)) + ": " + text, Tone::plain, 2, 2);
  };
  if (card.rent)
    line(PresentMessage::col_price,
         money(card.rent, 3600) + " USD/h (" +
             money(card.rent, 3600, &Estimate<DollarsPerSecond>::low) + " to " +
             money(card.rent, 3600, &Estimate<DollarsPerSecond>::high) + ")");
  if (card.spot) line(PresentMessage::col_spot, money(card.spot, 3600) + " USD/h");
  if (card.buy) line(PresentMessage::col_purchase, money(card.buy, 1) + " USD");
  std::vector<Message> notes;
  if (card.rent) notes = card.rent->notes;
  if (card.buy) notes.insert(notes.end(), card.buy->notes.begin(), card.buy->notes.end());
  for (const Message& m : notes) page.paragraph("- " + render(m, l), Tone::plain, 2, 2);
  page.blank();
  auto name = [&](PresentMessage id) { return std::string(label(id, l)); };
  Table t({{name(PresentMessage::col_kind)},
           {"USD", true},
           {name(PresentMessage::col_count), true, 3},
           {name(PresentMessage::col_provider), false, 1, 8},
           {name(PresentMessage::col_region), false, 4, 8},
           {name(PresentMessage::col_instance), false, 5, 8},
           {name(PresentMessage::col_date)},
           {name(PresentMessage::col_source), false, 6, 20}});
  for (const PriceRow* r : offers)
    t.row({name_of(r->kind), significant(r->usd), trimmed_number(r->count), printable(r->provider),
           printable(r->region), printable(r->instance), r->date.empty() ? "-" : printable(r->date),
           printable(r->sheet->source)});
  page.table(t, 0, style.top);
  return page.finish();
}

JsonNode prices_json(const std::vector<CardPrices>& cards) {
  JsonNode out = JsonNode::array();
  for (const CardPrices& c : cards)
    out.add(JsonNode::object()
                .set("accelerator", c.accelerator->id)
                .set("on_demand_per_hour", quote_json(c.rent, 3600))
                .set("spot_per_hour", quote_json(c.spot, 3600))
                .set("purchase", quote_json(c.buy, 1)));
  return out;
}

JsonNode offers_json(const std::vector<const PriceRow*>& offers) {
  JsonNode out = JsonNode::array();
  for (const PriceRow* r : offers)
    out.add(JsonNode::object()
                .set("accelerators", r->accelerators)
                .set("kind", name_of(r->kind))
                .set("usd", r->usd)
                .set("count", r->count)
                .set("provider", r->provider)
                .set("region", r->region)
                .set("instance", r->instance)
                .set("date", r->date)
                .set("accelerator_only", r->accelerator_only)
                .set("source", r->sheet->source));
  return out;
}

}  // namespace trigon
