#pragma once
// One fit of the operator model on part of the measured rows. Used by calibrate_operators.

#include <functional>
#include <map>
#include <string>

#include "evidence/calibrate_operators.hpp"
#include "evidence/operator_samples.hpp"

namespace trigon {

using KeepSample = std::function<bool(const Sample&)>;

// Sheets of every family, of all devices ("any") and the grids of devices, families and vendors.
// Where `family` is given, of its devices alone and of what stands in for them.
std::vector<CoefficientSheet> fit_operators(const Bench& bench, const KeepSample& keep,
                                            const std::string& family = "");
// Sheets of every kind of link and of what stands in for the others.
using KeepCollective = std::function<bool(const CollectiveSample&)>;
using KeepExchange = std::function<bool(const ExchangeSample&)>;
std::vector<CoefficientSheet> fit_links(const Bench& bench, const KeepCollective& keep,
                                        const KeepExchange& keep_exchange);
// Adds blocks of the kernels for experts, of rows over one link or (empty) over any.
void fit_exchange(const Bench& bench, const KeepExchange& keep, const std::string& link,
                  CoefficientSheet& sheet);

// A device of the bench before anything is fitted.
DeviceModel bare_device(const Accelerator& a);
double sample_seconds(const DeviceModel& d, const Sample& s);
// "gemm.half" of a grid, else the sample's block.
std::string sample_block(const DeviceModel& d, const Sample& s);
double collective_sample_seconds(const DeviceModel& d, const CollectiveSample& s);
// Sheets of a link for each device and link of the bench: "pcie" of "pcie4x16".
std::string link_sheet(const Link& link);

}  // namespace trigon
