#pragma once
// Rows of measured operator tables as the operators and collectives that they timed.

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
  bool held_out = false;
};

struct CollectiveSample {
  Collective collective = Collective::all_reduce;
  double payload = 0;
  int ranks = 2;
  double seconds = 0;
  bool held_out = false;
};

// Everything measured on the devices of one family, or on one kind of link.
struct Bench {
  std::vector<DeviceModel> devices;
  std::map<std::string, std::vector<Sample>> samples;  // by block
  std::map<std::string, std::vector<CollectiveSample>> links;
  std::map<std::string, DeviceModel> link_device;
  std::vector<std::string> files;
};

// Adds the rows of one table, known by its file name ("gemm_perf...", "nccl_perf..."): operators to
// `bench` as of `device`, collectives over `link` to `wires`. False for a table of another kind.
bool add_samples(const CsvTable& table, const std::string& name, std::size_t device,
                 double l2_bytes, const std::string& link, Bench& bench, Bench& wires);

}  // namespace trigon
