// Build-time program: reads every fact sheet under data/ and data/aliases.csv, checks them, and
// writes the packed text that the library embeds. A contradiction stops the build.
//
// usage: trigon_pack_facts DATA_DIRECTORY OUTPUT

#include <cstdio>
#include <fstream>
#include <sstream>

#include "hardware/aliases.hpp"
#include "hardware/checks.hpp"

namespace {

// `present` comes after this program in the build, so the rooms' texts are read here directly.
const char* text_of(trigon::MessageId id) {
  static const char* const base[] = {
#define TRIGON_MESSAGE(id, english) english,
#include "base/messages.def"
  };
  static const char* const hardware[] = {
#include "hardware/messages.def"
#undef TRIGON_MESSAGE
  };
  if (id.room == trigon::Room::base && id.index < std::size(base)) return base[id.index];
  if (id.room == trigon::Room::hardware && id.index < std::size(hardware))
    return hardware[id.index];
  return "{0} {1} {2} {3}";
}

void print(const trigon::Error& e) {
  std::string text = text_of(e.what.id);
  for (std::size_t i = 0; i < e.what.args.size(); ++i) {
    std::string mark = "{" + std::to_string(i) + "}", value;
    if (auto s = std::get_if<std::string>(&e.what.args[i])) value = *s;
    if (auto n = std::get_if<double>(&e.what.args[i])) value = std::to_string(*n);
    if (auto at = text.find(mark); at != text.npos) text.replace(at, mark.size(), value);
  }
  std::fprintf(stderr, "%s: error: %s\n", e.where.c_str(), text.c_str());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: trigon_pack_facts DATA_DIRECTORY OUTPUT\n");
    return 2;
  }
  auto store = trigon::FactStore::from_directory(argv[1]);
  if (!store) {
    print(store.error());
    return 1;
  }
  std::string path = std::string(argv[1]) + "/aliases.csv";
  if (std::ifstream in(path, std::ios::binary); in) {
    std::ostringstream csv;
    csv << in.rdbuf();
    auto aliases = trigon::read_alias_table(csv.str(), "aliases.csv");
    if (!aliases) {
      print(aliases.error());
      return 1;
    }
    store->add(std::move(*aliases));
  }
  auto wrong = trigon::hardware_contradictions(*store);
  for (const auto& e : wrong) print(e);
  if (!wrong.empty()) return 1;
  std::ofstream out(argv[2], std::ios::binary);
  out << store->packed();
  out.close();
  return out ? 0 : 1;
}
