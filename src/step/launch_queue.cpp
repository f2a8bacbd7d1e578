#include "step/launch_queue.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace trigon {
namespace {

// Longer prompts repeat what their first passes do.
constexpr std::size_t kPlayed = 64;

// Starts of all passes on one device.
class Device {
 public:
  explicit Device(double each) : each_(each) {}
  // When so many passes are done.
  double done(double passes) const {
    if (passes <= 0) return 0;
    const double whole = std::ceil(passes);
    return starts_[static_cast<std::size_t>(whole) - 1] + (passes - (whole - 1)) * each_;
  }
  void start(double at) { starts_.push_back(at); }
  double end() const { return starts_.empty() ? 0 : starts_.back() + each_; }
  double each() const { return each_; }

 private:
  double each_;
  std::vector<double> starts_;
};

double play(const LaunchQueue& q, std::size_t passes, double inside) {
  std::vector<Device> devices(q.work.begin(), q.work.end());
  double host = 0;
  for (std::size_t i = 0; i < passes; ++i) {
    double before = 0;  // when the pass leaves the device before
    const double pass = static_cast<double>(i);
    for (Device& d : devices) {
      // Passes of this device that its queue holds.
      const double launches = q.share * d.each();
      const double room = launches > 0 ? 1 / launches : pass + 1;
      host = std::max({host, d.done(pass + 1 - inside), d.done(pass - room)});
      d.start(std::max({host, before, d.end()}));
      before = d.end();
      host = std::max(host, d.done(pass + 1 - room));
    }
  }
  return devices.back().end();
}

}  // namespace

double queued_span(const LaunchQueue& q) {
  const double inside = std::max(1.0, q.inside);
  const auto passes = static_cast<std::size_t>(std::max(1.0, q.passes));
  if (passes <= kPlayed) return play(q, passes, inside);
  const double half = play(q, kPlayed / 2, inside);
  const double all = play(q, kPlayed, inside);
  return all + (all - half) / (kPlayed / 2.0) * static_cast<double>(passes - kPlayed);
}

}  // namespace trigon
