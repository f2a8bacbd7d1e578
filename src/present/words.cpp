#include "present/words.hpp"

#include <algorithm>

#include "present/numbers.hpp"
#include "present/screen.hpp"
#include "present/translation.hpp"

namespace trigon {
namespace {

struct Text {
  std::string_view name, english;
};

#define TRIGON_MESSAGE(id, english) Text{#id, english},
// A room without messages has an empty table; the sentinel keeps the array from being empty.
#define TRIGON_ROOM_BEGIN(room) constexpr Text k_##room[] = {
#define TRIGON_ROOM_END \
  Text {}               \
  }

TRIGON_ROOM_BEGIN(base)
#include "base/messages.def"
TRIGON_ROOM_END;
TRIGON_ROOM_BEGIN(hardware)
#include "hardware/messages.def"
TRIGON_ROOM_END;
TRIGON_ROOM_BEGIN(model)
#if __has_include("model/messages.def")
#include "model/messages.def"
#endif
TRIGON_ROOM_END;
TRIGON_ROOM_BEGIN(network)
#include "network/messages.def"
TRIGON_ROOM_END;
TRIGON_ROOM_BEGIN(onnx)
#include "onnx/messages.def"
TRIGON_ROOM_END;
TRIGON_ROOM_BEGIN(library)
#if __has_include("library/messages.def")
#include "library/messages.def"
#endif
TRIGON_ROOM_END;
TRIGON_ROOM_BEGIN(engine)
#include "engine/messages.def"
TRIGON_ROOM_END;
TRIGON_ROOM_BEGIN(job)
#include "job/messages.def"
TRIGON_ROOM_END;
TRIGON_ROOM_BEGIN(plan)
#include "plan/messages.def"
TRIGON_ROOM_END;
TRIGON_ROOM_BEGIN(memory)
#include "memory/messages.def"
TRIGON_ROOM_END;
TRIGON_ROOM_BEGIN(lower)
#include "lower/messages.def"
TRIGON_ROOM_END;
TRIGON_ROOM_BEGIN(cost)
#include "cost/messages.def"
TRIGON_ROOM_END;
TRIGON_ROOM_BEGIN(step)
#include "step/messages.def"
TRIGON_ROOM_END;
TRIGON_ROOM_BEGIN(serving)
#if __has_include("serving/messages.def")
#include "serving/messages.def"
#endif
TRIGON_ROOM_END;
TRIGON_ROOM_BEGIN(market)
#include "market/messages.def"
TRIGON_ROOM_END;
TRIGON_ROOM_BEGIN(search)
#include "search/messages.def"
TRIGON_ROOM_END;
TRIGON_ROOM_BEGIN(decide)
#include "decide/messages.def"
TRIGON_ROOM_END;
TRIGON_ROOM_BEGIN(evidence)
#include "evidence/messages.def"
TRIGON_ROOM_END;
TRIGON_ROOM_BEGIN(present)
#include "present/messages.def"
TRIGON_ROOM_END;
TRIGON_ROOM_BEGIN(app)
#include "present/app_messages.def"
TRIGON_ROOM_END;
#undef TRIGON_MESSAGE

struct RoomTexts {
  Room room;
  std::string_view name;
  const Text* texts;
  std::size_t count;
};
template <std::size_t N>
constexpr RoomTexts texts_of(Room room, std::string_view name, const Text (&texts)[N]) {
  return {room, name, texts, N - 1};
}
constexpr RoomTexts kRooms[] = {
    texts_of(Room::base, "base", k_base),          texts_of(Room::hardware, "hardware", k_hardware),
    texts_of(Room::model, "model", k_model),       texts_of(Room::network, "network", k_network),
    texts_of(Room::onnx, "onnx", k_onnx),          texts_of(Room::library, "library", k_library),
    texts_of(Room::engine, "engine", k_engine),    texts_of(Room::job, "job", k_job),
    texts_of(Room::plan, "plan", k_plan),          texts_of(Room::memory, "memory", k_memory),
    texts_of(Room::lower, "lower", k_lower),       texts_of(Room::cost, "cost", k_cost),
    texts_of(Room::step, "step", k_step),          texts_of(Room::serving, "serving", k_serving),
    texts_of(Room::market, "market", k_market),    texts_of(Room::search, "search", k_search),
    texts_of(Room::decide, "decide", k_decide),    texts_of(Room::evidence, "evidence", k_evidence),
    texts_of(Room::present, "present", k_present), texts_of(Room::app, "app", k_app)};

const RoomTexts* room_texts(Room room) {
  for (const RoomTexts& r : kRooms)
    if (r.room == room) return &r;
  return nullptr;
}

struct Writer {
  std::string operator()(const std::string& s) const { return printable(s); }
  std::string operator()(std::int64_t v) const { return whole(v); }
  std::string operator()(double v) const { return in_words(v, ""); }
  std::string operator()(Bytes v) const { return in_words(v.in_base(), "B"); }
  std::string operator()(Seconds v) const { return in_words(v.in_base(), "s"); }
  std::string operator()(Dollars v) const { return in_words(v.in_base(), "USD"); }
  std::string operator()(Flops v) const { return in_words(v.in_base(), "FLOP"); }
  std::string operator()(BytesPerSecond v) const { return in_words(v.in_base(), "B/s"); }
  std::string operator()(FlopsPerSecond v) const { return in_words(v.in_base(), "FLOP/s"); }
  std::string operator()(Watts v) const { return in_words(v.in_base(), "W"); }
  std::string operator()(Tokens v) const { return in_words(v.in_base(), "tokens"); }
  std::string operator()(TokensPerSecond v) const { return in_words(v.in_base(), "tokens/s"); }
  std::string operator()(DollarsPerSecond v) const { return in_words(v.in_base() * 3600, "USD/h"); }
};

}  // namespace

const std::vector<MessageEntry>& all_messages() {
  static const std::vector<MessageEntry> entries = [] {
    std::vector<MessageEntry> all;
    for (const RoomTexts& r : kRooms)
      for (std::size_t i = 0; i < r.count; ++i)
        all.push_back(
            {{r.room, static_cast<std::uint16_t>(i)}, r.name, r.texts[i].name, r.texts[i].english});
    return all;
  }();
  return entries;
}

std::string message_name(MessageId id) {
  const RoomTexts* r = room_texts(id.room);
  if (!r || id.index >= r->count) return {};
  return std::string(r->name) + "." + std::string(r->texts[id.index].name);
}

std::string_view message_text(MessageId id, Language language) {
  const RoomTexts* r = room_texts(id.room);
  if (!r || id.index >= r->count) return {};
  if (language == Language::chinese) {
    std::string_view translated = chinese(message_name(id));
    if (!translated.empty()) return translated;
  }
  return r->texts[id.index].english;
}

std::string render(const Message& m, Language language) {
  std::string_view text = message_text(m.id, language);
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    std::size_t close = text[i] == '{' ? text.find('}', i) : std::string_view::npos;
    if (close == std::string_view::npos) {
      out += text[i];
      continue;
    }
    std::size_t n = 0;
    for (std::size_t k = i + 1; k < close; ++k)
      n = n * 10 + static_cast<std::size_t>(text[k] - '0');
    out += n < m.args.size() ? std::visit(Writer{}, m.args[n]) : std::string("?");
    i = close;
  }
  return out;
}

std::string render_error(const Error& e, Language language) {
  std::string out = render(e.what, language);
  if (!e.where.empty()) out += " (" + printable(e.where) + ")";
  if (e.hint)
    out += "\n  " + std::string(label(PresentMessage::hint, language)) + " " +
           render(*e.hint, language);
  return out;
}

}  // namespace trigon
