// Every name of hardware in the gathered data resolves, or is known to lie outside the catalogue.
// Skipped where the gathered data is absent.

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include "hardware/catalog.hpp"

namespace trigon {
namespace {

namespace fs = std::filesystem;

fs::path gathered_data() {
  if (const char* s = std::getenv("TRIGON_SHARED")) return fs::path(s) / "data";
  return fs::path(TRIGON_SOURCE_DIR) / ".." / "shared" / "data";
}

// The values of one column; records may span lines inside quotes.
std::set<std::string> column(const fs::path& file, std::string_view name) {
  std::ifstream in(file, std::ios::binary);
  std::set<std::string> out;
  std::vector<std::string> record(1);
  std::size_t index = std::string::npos;
  bool quoted = false, first = true;
  auto finish = [&] {
    if (first)
      for (std::size_t i = 0; i < record.size(); ++i)
        if (record[i] == name) index = i;
    if (!first && index < record.size()) out.insert(record[index]);
    first = false;
    record.assign(1, "");
  };
  for (char c; in.get(c);) {
    if (c == '"')
      quoted = !quoted;  // doubled quotes toggle twice
    else if (c == ',' && !quoted)
      record.emplace_back();
    else if (c == '\n' && !quoted)
      finish();
    else if (c != '\r')
      record.back() += c;
  }
  EXPECT_NE(index, std::string::npos) << file << " has no column " << name;
  return out;
}

TEST(AliasCoverage, EveryNameInTheGatheredDataIsKnown) {
  fs::path data = gathered_data();
  if (!fs::exists(data / "measured" / "infer.csv")) GTEST_SKIP() << "gathered data absent";
  FactStore store = FactStore::embedded().value();
  AcceleratorCatalog catalog = AcceleratorCatalog::from(store).value();
  std::size_t names = 0;
  for (const char* file :
       {"measured/train.csv", "measured/infer.csv", "measured/memory.csv", "measured/serving.csv",
        "measured/comm.csv", "measured/matmul.csv", "measured/mlperf_time_to_train.csv",
        "prices/prices.csv", "ops/summary.csv", "hardware/systems.csv"}) {
    for (const std::string& name : column(data / file, "gpu")) {
      if (name.empty()) continue;
      ++names;
      auto r = catalog.resolve_all(name);
      bool known = r || r.error().what.id == message_id(HardwareMessage::outside_catalogue);
      EXPECT_TRUE(known) << file << ": " << name;
    }
  }
  EXPECT_GT(names, 300u);
}

}  // namespace
}  // namespace trigon
