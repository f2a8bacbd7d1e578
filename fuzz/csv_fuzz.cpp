// The reader of measurement tables: whatever it accepts must hold its own promises, and rows of
// accepted tables must become cases or refusals without a crash.

#include <cstdint>
#include <cstdlib>

#include "evidence/fake_names_test.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto table = trigon::parse_csv(text, "fuzz.csv");
  if (!table) {
    if (table.error().where.rfind("fuzz.csv:", 0) != 0) std::abort();
    return 0;
  }
  static const trigon::FakeWorld world;
  static const trigon::RowNames names = world.names();
  const auto schema = trigon::detect_schema(*table);
  std::string again;
  for (const trigon::CsvRow& fields : table->rows) {
    if (fields.fields.size() != table->columns.size()) std::abort();
    const trigon::Row row(*table, fields);
    if (schema) (void)trigon::read_case(*schema, row, names);
    for (const std::string& f : fields.fields) {
      // What was read can be written and read again.
      const auto back = trigon::parse_csv("a,b\n" + trigon::csv_field(f) + ",1\n", "back.csv");
      if (!back || back->rows.size() != 1 || back->rows[0].fields[0] != f) std::abort();
    }
  }
  return 0;
}
