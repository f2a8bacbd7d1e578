// Build-time program: reads every fact sheet under data/, checks it, and writes the packed text
// that the library embeds. A contradiction stops the build.
//
// usage: trigon_pack_facts DATA_DIRECTORY OUTPUT

#include <cstdio>
#include <fstream>

#include "base/facts.hpp"

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: trigon_pack_facts DATA_DIRECTORY OUTPUT\n");
    return 2;
  }
  auto store = trigon::FactStore::from_directory(argv[1]);
  if (!store) {
    std::fprintf(stderr, "%s: facts do not load (message %d of room %d", store.error().where.c_str(),
                 store.error().what.id.index, static_cast<int>(store.error().what.id.room));
    for (const auto& a : store.error().what.args)
      if (auto s = std::get_if<std::string>(&a)) std::fprintf(stderr, ", %s", s->c_str());
    std::fprintf(stderr, ")\n");
    return 1;
  }
  std::ofstream out(argv[2], std::ios::binary);
  out << store->packed();
  out.close();
  return out ? 0 : 1;
}
