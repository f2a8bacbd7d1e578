#include "cost/calibration.hpp"

#include <cmath>
#include <initializer_list>
#include <iterator>
#include <set>

namespace trigon {
namespace {

constexpr const char* kPathNames[] = {"fp32", "tf32",      "half",      "fp8",      "int8",
                                      "fp4",  "fp8_block", "int8_only", "int4_only"};
static_assert(std::size(kPathNames) == kMatrixPaths);

// Whose coefficients a path takes that was never measured.
MatrixPath stand_in(MatrixPath p) {
  switch (p) {
    // Narrow classes on units of twice the rate and more reach a like share of it.
    case MatrixPath::fp8_block:
    case MatrixPath::fp4:
    case MatrixPath::int8:
      return MatrixPath::fp8;
    case MatrixPath::int4_only:
      return MatrixPath::int8_only;
    default:
      return MatrixPath::half;
  }
}

std::optional<double> at(const FactSheet* s, const std::string& key) {
  return s ? s->number(key) : std::nullopt;
}

// The first sheet that has `key`; sheets are tried nearest first.
const FactSheet* with_key(std::initializer_list<const FactSheet*> sheets, const std::string& key) {
  for (const FactSheet* s : sheets)
    if (s && s->number(key)) return s;
  return nullptr;
}

double or_zero(const FactSheet* s, const std::string& key) { return at(s, key).value_or(0); }

}  // namespace

// The first paths are the classes.
const char* math_class_name(MathClass c) { return kPathNames[static_cast<std::size_t>(c)]; }
const char* matrix_path_name(MatrixPath p) { return kPathNames[static_cast<std::size_t>(p)]; }

Result<Calibration> Calibration::load(const FactStore& store) {
  Calibration c;
  c.read_operators(store, "calibration");
  const FactSheet* engines = store.find("calibration", "engines");
  c.engines_ = std::make_shared<EngineTable>(engines ? read_engine_table(*engines) : EngineTable());
  if (const FactSheet* memory = store.find("memory_errors", "shipped"))
    c.memory_errors_ = std::make_shared<MemoryErrorTable>(read_memory_errors(*memory));
  return c;
}

namespace {

// What a memory is short of while its first bytes are on the way: bytes in flight over bandwidth
// are a time (J. Little, 1961), the same for fast and slow memories. Families that tables timed
// have 0.03 to 0.3 us in products and norms (their `half_bytes` over the bandwidth of the card that
// was timed), 0.1 in the geometric mean. One fit to all of them has one size in bytes for memories
// of 0.2 to 8 TB/s, 2 MB, which would be 2 to 10 us on a card of 0.2 to 1 TB/s.
constexpr double kRampSeconds = 1e-7;

// What was not timed on a device comes from those around it.
std::shared_ptr<const OperatorGrids> filled(std::shared_ptr<const OperatorGrids> own,
                                            const OperatorGrids& wider) {
  auto out = std::make_shared<OperatorGrids>(*own);
  for (std::size_t k = 0; k < kGridKinds; ++k)
    if (out->of[k].empty()) out->of[k] = wider.of[k];
  return out;
}

}  // namespace

void Calibration::read_operators(const FactStore& store, std::string_view kind) {
  operators_.clear(), links_.clear(), grids_.clear(), link_grids_.clear();
  for (const FactSheet* s : store.of_kind(kind)) {
    std::string_view id = s->id;
    auto under = [&](std::string_view prefix) {
      return id.substr(0, prefix.size()) == prefix ? std::string(id.substr(prefix.size())) : "";
    };
    if (std::string own = under("operators/"); !own.empty()) operators_.emplace(own, s);
    if (std::string own = under("grids/"); !own.empty())
      grids_.emplace(own, std::make_shared<OperatorGrids>(read_operator_grids(*s)));
    if (std::string own = under("link/"); !own.empty()) {
      links_.emplace(own, s);
      if (!s->groups.empty())
        link_grids_.emplace(own, std::make_shared<LinkGrids>(read_link_grids(*s)));
    }
  }
  // A device's from its family's, both from its vendor's.
  std::set<std::string> done;
  const auto accelerators = store.of_kind("accelerator");
  for (const char* from : {"vendor", "family"})
    for (const FactSheet* s : accelerators) {
      const bool whole = std::string_view(from) == "vendor";
      const auto wider = grids_.find(s->text(from).value_or(""));
      const std::string id = whole ? s->text("family").value_or("") : s->id;
      const auto own = grids_.find(id);
      if (wider == grids_.end() || own == grids_.end() || own == wider) continue;
      if (done.insert(id).second) own->second = filled(own->second, *wider->second);
    }
}

Calibration Calibration::with_operators(const FactStore& store, std::string_view kind) const {
  Calibration c = *this;
  c.read_operators(store, kind);
  return c;
}

Calibration Calibration::with_memory_errors(std::shared_ptr<const MemoryErrorTable> table) const {
  Calibration c = *this;
  c.memory_errors_ = std::move(table);
  return c;
}

Calibration Calibration::with_engines(std::shared_ptr<const EngineTable> table) const {
  Calibration c = *this;
  c.engines_ = std::move(table);
  return c;
}

std::string_view kernel_family(std::string_view family) {
  return family == "blackwell_ultra" ? "blackwell" : family;
}

Result<OperatorCoefficients> Calibration::operators(const Accelerator& a) const {
  auto sheet = [&](std::string_view id) {
    auto it = operators_.find(id);
    return it == operators_.end() ? nullptr : it->second;
  };
  const FactSheet* family = sheet(a.family);
  const FactSheet* kin = sheet(kernel_family(a.family));
  const FactSheet* vendor = sheet(a.kind == DeviceKind::cpu ? "cpu" : a.vendor);
  const FactSheet* any = sheet("any");
  if (!any)
    return fail(ErrorCode::missing_fact, message(CostMessage::no_calibration, a.name),
                "calibration/operators/any");
  double up[kErrorGroups];
  for (std::size_t g = 0; g < kErrorGroups; ++g) up[g] = shift_[g];
  auto moved_by = [&](double value, double error, ErrorGroup g) {
    double s = up[static_cast<std::size_t>(g)];
    return s >= 0 ? value * (1 + s * error) : value / (1 - s * error);
  };
  OperatorCoefficients out;
  out.sheet = (family ? family : kin ? kin : vendor ? vendor : any)->id;
  out.basis = family && family->number("half.ceiling") ? Basis::calibrated : Basis::analytic;
  for (std::size_t i = 0; i < kMatrixPaths; ++i) {
    std::string c = kPathNames[i];
    const FactSheet* s = with_key({family, kin, vendor, any}, c + ".ceiling");
    // A class never measured anywhere takes the 16-bit coefficients, with their error doubled.
    double widen = 1;
    for (MatrixPath p = static_cast<MatrixPath>(i); !s && p != MatrixPath::half;) {
      p = stand_in(p);
      c = matrix_path_name(p);
      widen = 2;
      s = with_key({family, kin, vendor, any}, c + ".ceiling");
    }
    if (!s) return tl::unexpected(any->missing("half.ceiling"));
    MatrixCoefficients& m = out.matrix[i];
    m.error = or_zero(s, c + ".error") * widen;
    m.ceiling = moved_by(or_zero(s, c + ".ceiling"), m.error, ErrorGroup::matrix);
    m.k_half = or_zero(s, c + ".k_half");
    m.wave_exponent = or_zero(s, c + ".wave_exponent");
    m.sharpness = at(s, c + ".sharpness").value_or(3);
    m.latency_seconds = or_zero(s, c + ".latency_seconds");
    m.widened_per_second = or_zero(s, c + ".widened_per_second");
    m.floor_seconds = or_zero(s, c + ".floor_seconds");
  }
  if (const FactSheet* s = with_key({family, kin, vendor, any}, "grouped.factor")) {
    out.grouped_latency_seconds = or_zero(s, "grouped.latency_seconds");
    out.grouped_error = or_zero(s, "grouped.error");
    out.grouped_factor =
        moved_by(or_zero(s, "grouped.factor"), out.grouped_error, ErrorGroup::matrix);
  }
  // Processors keep the size: what their operators wait for is threads, of which nothing was timed.
  const bool card = a.kind != DeviceKind::cpu;
  const double ramp = a.memory_bandwidth.in_base() * kRampSeconds;
  const FactSheet* stream = with_key({family, kin, vendor, any}, "stream.ceiling");
  if (!stream) return tl::unexpected(any->missing("stream.ceiling"));
  out.stream.error = or_zero(stream, "stream.error");
  out.stream.ceiling =
      moved_by(or_zero(stream, "stream.ceiling"), out.stream.error, ErrorGroup::stream);
  out.stream.half_bytes = card && stream == any ? ramp : or_zero(stream, "stream.half_bytes");
  out.stream.warm_speedup = at(stream, "stream.warm_speedup").value_or(1);
  // The family's own, or what its products say, before that of other families.
  if (const FactSheet* own = with_key({family, kin}, "stream.ceiling") &&
                                     !with_key({family, kin}, "elementwise.ceiling")
                                 ? nullptr
                                 : with_key({family, kin, vendor, any}, "elementwise.ceiling")) {
    ElementwiseCoefficients& e = out.elementwise;
    e.error = or_zero(own, "elementwise.error");
    e.ceiling = moved_by(or_zero(own, "elementwise.ceiling"), e.error, ErrorGroup::stream);
    e.half_bytes = card && own == any ? ramp : or_zero(own, "elementwise.half_bytes");
    e.timed_seconds = or_zero(own, "elementwise.timed_seconds");
  }
  const FactSheet* prefill = with_key({family, kin, vendor, any}, "attention.prefill_ceiling");
  const FactSheet* decode = with_key({family, kin, vendor, any}, "attention.decode_ceiling");
  if (!prefill || !decode) return tl::unexpected(any->missing("attention.prefill_ceiling"));
  AttentionCoefficients& t = out.attention;
  t.error = or_zero(prefill, "attention.error");
  t.prefill_ceiling =
      moved_by(or_zero(prefill, "attention.prefill_ceiling"), t.error, ErrorGroup::attention);
  t.keys_half = or_zero(prefill, "attention.keys_half");
  t.decode_ceiling =
      moved_by(or_zero(decode, "attention.decode_ceiling"), t.error, ErrorGroup::attention);
  t.half_bytes = or_zero(decode, "attention.half_bytes");
  t.warm_rate = or_zero(decode, "attention.warm_rate");
  t.prefill_latency_seconds = or_zero(prefill, "attention.prefill_latency_seconds");
  t.decode_latency_seconds = or_zero(decode, "attention.decode_latency_seconds");
  if (const FactSheet* s = with_key({family, kin, vendor, any}, "launch.seconds")) {
    out.launch_error = or_zero(s, "launch.error");
    // A cost, not a rate: what makes rates larger makes it smaller, by the same factor.
    out.launch_seconds =
        or_zero(s, "launch.seconds") / moved_by(1, out.launch_error, ErrorGroup::host);
  }
  // The nearest grids: those of the device, its family, the family whose kernels it runs, its
  // vendor.
  for (const std::string& id : {a.id, a.family, std::string(kernel_family(a.family)), a.vendor})
    if (auto it = grids_.find(id); !out.grids && it != grids_.end()) {
      out.grids = it->second;
      out.grid_basis = id == a.id || id == a.family ? Basis::interpolated : Basis::analytic;
    }
  return out;
}

Result<LinkCoefficients> Calibration::link(std::string_view id, bool between_nodes) const {
  auto it = links_.find(id);
  // All widths and generations of a host's bus, and of AMD's links, behave alike.
  for (std::string_view kind : {"pcie", "xgmi"})
    if (it == links_.end() && id.substr(0, kind.size()) == kind) it = links_.find(kind);
  bool own = it != links_.end();
  if (!own) it = links_.find(between_nodes ? "any-between-nodes" : "any-inside-node");
  if (it == links_.end())
    return fail(ErrorCode::missing_fact, message(CostMessage::no_calibration, id),
                "calibration/link/any");
  const FactSheet* s = it->second;
  LinkCoefficients c;
  c.error = or_zero(s, "error");
  double sigma = shift_[static_cast<std::size_t>(ErrorGroup::link)];
  double faster = sigma >= 0 ? 1 + sigma * c.error : 1 / (1 - sigma * c.error);
  c.ceiling = or_zero(s, "ceiling") * faster;
  c.half_bytes = or_zero(s, "half_bytes");
  c.ramp = at(s, "ramp").value_or(1);
  c.sharing = or_zero(s, "sharing");
  c.start_seconds = or_zero(s, "start_seconds") / faster;
  c.latency_seconds = or_zero(s, "latency_seconds") / faster;
  c.small_latency_seconds = or_zero(s, "small_latency_seconds") / faster;
  c.host_launch_seconds = or_zero(s, "host_launch_seconds");
  c.switch_reduction_ranks = or_zero(s, "switch_reduction_ranks");
  c.switch_reduction_gain = at(s, "switch_reduction_gain").value_or(1);
  // Kernels for experts were timed over few links: others take what any link has.
  const auto any = links_.find("any-inside-node");
  for (std::size_t k = 0; k < kExchangeKinds && !between_nodes; ++k) {
    const std::string name = exchange_name(static_cast<ExchangeKind>(k));
    const FactSheet* from =
        with_key({s, any == links_.end() ? nullptr : any->second}, name + ".ceiling");
    if (!from) continue;
    ExchangeCoefficients& x = c.exchange[k];
    x.ceiling = or_zero(from, name + ".ceiling") * faster;
    x.start_seconds = or_zero(from, name + ".start_seconds") / faster;
    x.expert_seconds = or_zero(from, name + ".expert_seconds") / faster;
    x.token_seconds = or_zero(from, name + ".token_seconds") / faster;
    x.copy_seconds = or_zero(from, name + ".copy_seconds") / faster;
    x.lane_rate = or_zero(from, name + ".lane_rate") * faster;
    x.rate = or_zero(from, name + ".rate") * faster;
    x.start_sharpness = at(from, name + ".start_sharpness").value_or(1);
    x.sharpness = at(from, name + ".sharpness").value_or(3);
    x.error = or_zero(from, name + ".error");
  }
  if (auto grids = link_grids_.find(it->first); grids != link_grids_.end()) c.grids = grids->second;
  c.basis = own ? Basis::calibrated : Basis::analytic;
  c.sheet = s->id;
  return c;
}

Result<EngineCoefficients> Calibration::engine(const EngineSubject& subject) const {
  auto c = engines_->of(subject);
  if (!c)
    return fail(ErrorCode::missing_fact, message(CostMessage::no_calibration, subject.engine),
                "calibration/engines");
  const double sigma = shift_[static_cast<std::size_t>(ErrorGroup::host)];
  if (sigma == 0) return *c;
  // Where arithmetic binds, times are as far off as compute_error says, elsewhere stream_error.
  const double compute = std::exp(sigma * c->compute_error);
  const double stream = std::exp(sigma * c->stream_error);
  c->compute_factor *= compute;
  c->convolution_factor *= compute;
  c->attention_factor *= stream;
  c->stream_factor *= stream;
  c->core_stream *= stream;
  c->fixed_factor /= stream;
  c->link_factor /= stream;
  c->operator_overhead_seconds /= stream;
  c->step_overhead_seconds /= stream;
  c->layer_overhead_seconds /= stream;
  c->request_overhead_seconds /= stream;
  return *c;
}

Calibration Calibration::moved(ErrorGroup group, double sigmas) const {
  Calibration c = *this;
  c.shift_[static_cast<std::size_t>(group)] = sigmas;
  return c;
}

}  // namespace trigon
