#pragma once
// Rows of measured operator tables as the operators and collectives that they timed.

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "cost/device_model.hpp"
#include "evidence/csv.hpp"

namespace trigon {

// A measured operator (or the operators of one measured layer) on one device.
struct Sample {
  std::size_t device = 0;
  std::vector<Operator> ops;
  double seconds = 0;
  int fold = 0;                  // of its shape
  std::uint64_t hash = 0;        // of its row
  std::uint32_t shape_kind = 0;  // of the dimensions that a model fixes: n and k, heads, experts
  std::uint32_t source = 0;      // index of the framework that ran it
  std::string block;             // of the formula that it fits: "half", "attention_decode", ...
};

struct CollectiveSample {
  Collective collective = Collective::all_reduce;
  CollectiveKernels kernels = CollectiveKernels::library;
  bool host_launched = false;
  double payload = 0;
  int ranks = 2;
  double seconds = 0;
  int fold = 0;
  std::size_t machine = 0;  // of Bench::machines
  double weight = 1;
  std::uint32_t source = 0;
};

// Tokens on their way to experts or back.
struct ExchangeSample {
  ExpertExchange exchange;
  double seconds = 0;
  int fold = 0;
  std::uint64_t hash = 0;
  std::size_t machine = 0;
};

struct Bench {
  std::vector<DeviceModel> devices;
  std::vector<Sample> samples;
  std::vector<std::string> sources;                       // frameworks
  std::map<std::size_t, std::vector<std::string>> files;  // by device
  // Collectives: machines of some ranks by the kind of link that they fit.
  struct Machine {
    DeviceModel device;
    std::string link, accelerator;
  };
  std::vector<Machine> machines;
  std::vector<CollectiveSample> collectives;
  std::vector<ExchangeSample> exchanges;
  std::map<std::string, std::vector<std::string>> link_files;
};

// The device of a name in a table's own column; absent: skip its rows.
using DeviceNames = std::function<std::optional<std::size_t>(const std::string&)>;

// Tables of other kinds lie in the same folders.
bool reads_table(const std::string& name);
// Adds the rows of one table, known by its file name ("gemm_perf...", "nccl_perf..."): operators as
// of `device` (or of the table's column), collectives as of `machine`. False for a table of another
// kind.
bool add_samples(const CsvTable& table, const std::string& name, std::size_t device,
                 const DeviceNames& names, std::size_t machine, Bench& bench);

}  // namespace trigon
