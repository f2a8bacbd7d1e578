// calibrate --out FOLDER [--operators FOLDER] [FILE...]: coefficients fitted on measurements,
// written as fact sheets.

#include <algorithm>
#include <filesystem>

#include "evidence/calibrate_engines.hpp"
#include "evidence/calibrate_memory.hpp"
#include "evidence/calibrate_operators.hpp"
#include "evidence/catalogue_names.hpp"
#include "evidence/timed_operators.hpp"
#include "hardware/parse.hpp"
#include "present/app_messages.hpp"
#include "session.hpp"
#include "write_file.hpp"

namespace trigon {
namespace {

namespace fs = std::filesystem;

// The device that the folder's MANIFEST.csv names for a table of `folder` ("device=..." among its
// constant columns); empty when it says nothing.
std::string device_of(const CsvTable& manifest, const std::string& folder) {
  auto file = manifest.column("file"), constants = manifest.column("constant_columns");
  if (!file || !constants) return {};
  for (const CsvRow& row : manifest.rows) {
    if (row.fields[*file].rfind(folder + "/", 0) != 0) continue;
    for (std::string_view pair : split_words(row.fields[*constants], ';'))
      if (pair.rfind("device=", 0) == 0) return std::string(pair.substr(7));
  }
  return {};
}

// The tables of one device lie in a folder named after it; a MANIFEST.csv beside the folders may
// say more exactly which device it was.
Result<std::vector<OperatorTables>> operator_folders(const Catalogues& all,
                                                     const std::string& root) {
  std::vector<OperatorTables> out;
  std::error_code ec;
  CsvTable manifest;
  if (fs::path at = fs::path(root) / "MANIFEST.csv"; fs::exists(at, ec)) {
    auto read = read_csv(at);
    if (!read) return tl::unexpected(read.error());
    manifest = std::move(*read);
  }
  for (const auto& entry : fs::directory_iterator(root, ec)) {
    if (!entry.is_directory()) continue;
    std::string name = device_of(manifest, entry.path().filename().string());
    if (name.empty()) name = entry.path().filename().string();
    // Folders that are no device's hold tables that name one in each row, or of other kinds.
    auto card = all.hardware.accelerators.find(name);
    out.push_back({card ? (*card)->id : std::string(), entry.path()});
  }
  if (ec) return fail(ErrorCode::unreadable, message(BaseMessage::cannot_open, ec.message()), root);
  std::sort(out.begin(), out.end(),
            [](const auto& a, const auto& b) { return a.directory < b.directory; });
  return out;
}

Result<void> put(const fs::path& folder, const std::string& name, const std::string& text,
                 const std::string& where) {
  std::error_code ec;
  fs::create_directories((folder / name).parent_path(), ec);
  if (ec)
    return fail(ErrorCode::unreadable, message(AppMessage::cannot_write, name, ec.message()),
                where);
  return write_file((folder / name).string(), text, where);
}

// Fits operators and links and writes their sheets; returns the names of the files.
Result<std::string> put_operators(const Catalogues& all, const std::string& folder,
                                  const std::vector<CsvTable>& measured, const std::string& date,
                                  const Setting& out) {
  OperatorInputs in;
  auto tables = operator_folders(all, folder);
  if (!tables) return tl::unexpected(tables.error());
  in.tables = std::move(*tables);
  const RowNames names = row_names(all);
  for (const CsvTable& table : measured) {
    auto schema = detect_schema(table);
    if (!schema) return tl::unexpected(schema.error());
    auto& into = *schema == Schema::comm ? in.collectives : in.products;
    for (const CsvRow& row : table.rows) {
      auto read = read_case(*schema, Row(table, row), names);
      if (auto* c = std::get_if<Case>(&read)) into.push_back(std::move(*c));
    }
  }
  in.accelerator = [&all](std::string_view name) -> const Accelerator* {
    auto found = all.hardware.accelerators.find(name);
    return found ? *found : nullptr;
  };
  in.machine = [&all](const Accelerator& a, int ranks) -> Result<Cluster> {
    return make_cluster(all.hardware, a, ranks, 1);
  };
  auto fit = calibrate_operators(in);
  if (!fit) return tl::unexpected(fit.error());
  constexpr const char* kCommand =
      "trigon calibrate --operators FOLDER COMM.csv MATMUL.csv --out FOLDER";
  std::string said;
  auto put_one = [&](const std::string& name, const std::string& text) -> Result<void> {
    said += name + "\n";
    return put(out.text, name, text, out.origin);
  };
  for (const CoefficientSheet& s : fit->shipped)
    if (auto r = put_one(s.id + ".toml", write_sheet(s, "calibration", date, kCommand)); !r)
      return tl::unexpected(r.error());
  for (std::size_t k = 0; k < fit->unseen.size(); ++k)
    for (const CoefficientSheet& s : fit->unseen[k]) {
      const std::string at = "folds/operators-" + std::to_string(k) + "/" + s.id + ".toml";
      auto text = write_sheet(s, operator_fold_kind(static_cast<int>(k)), date, kCommand);
      if (auto r = put_one(at, text); !r) return tl::unexpected(r.error());
    }
  if (auto r = put_one("reports/operators.csv", write_left_out(fit->left_out)); !r)
    return tl::unexpected(r.error());
  return said;
}

}  // namespace

Result<Output> run_calibrate(Call& call) {
  const Setting* out = call.settings.find("out");
  const Setting* operators = call.settings.find("operators");
  if (!out || (call.line.arguments.empty() && !operators))
    return fail(ErrorCode::bad_argument,
                message(AppMessage::missing_argument, "calibrate", out ? "FILE" : "--out"), "",
                message(AppMessage::try_command, call.line.verb->examples.front()));
  auto loaded = load_catalogues(call);
  if (!loaded) return tl::unexpected(loaded.error());
  const Catalogues& all = **loaded;
  std::string date = all.prices.snapshot_date();
  if (const Setting* d = call.settings.find("as-of")) date = d->text;
  std::string said;
  std::vector<CsvTable> tables, measured;
  std::string source;
  for (const std::string& path : call.line.arguments) {
    auto table = read_csv(path);
    if (!table) return tl::unexpected(table.error());
    auto schema = detect_schema(*table);
    if (!schema) return tl::unexpected(schema.error());
    if (operators && (*schema == Schema::comm || *schema == Schema::matmul)) {
      measured.push_back(std::move(*table));
      continue;
    }
    tables.push_back(std::move(*table));
    source += (source.empty() ? "" : ", ") + fs::path(path).filename().string();
  }
  if (operators) {
    auto good = put_operators(all, operators->text, measured, date, *out);
    if (!good) return tl::unexpected(good.error());
    said += *good;
  }
  if (!tables.empty()) {
    bool times = false, memory = false;
    for (const CsvTable& table : tables) {
      const auto schema = detect_schema(table);
      (*schema == Schema::memory ? memory : times) = true;
    }
    constexpr const char* kCommand = "trigon calibrate FILE... --out FOLDER";
    std::vector<std::pair<std::string, std::string>> sheets;
    if (times) {
      auto fit = calibrate_engines(all, tables, row_names(all));
      if (!fit) return tl::unexpected(fit.error());
      sheets = write_engine_sheets(*fit, source, date, kCommand);
    }
    if (memory) {
      auto fit = calibrate_memory(all, tables, row_names(all));
      if (!fit) return tl::unexpected(fit.error());
      for (auto& s : write_memory_sheets(*fit, source, date, kCommand))
        sheets.push_back(std::move(s));
    }
    for (const auto& [name, text] : sheets) {
      auto good = put(out->text, name, text, out->origin);
      if (!good) return tl::unexpected(good.error());
      said += name + "\n";
    }
  }
  return Output{said, exit_done};
}

}  // namespace trigon
