#include "step/schedule_events.hpp"

#include <algorithm>
#include <map>
#include <queue>
#include <tuple>

namespace trigon {
namespace {

// What a stage does, one after the other.
std::vector<StageEvent> gpipe_list(int s, int m) {
  std::vector<StageEvent> out;
  for (int i = 0; i < m; ++i) out.push_back({PassKind::forward, s, 0, i, 0, 0});
  for (int i = 0; i < m; ++i) out.push_back({PassKind::backward, s, 0, i, 0, 0});
  return out;
}

std::vector<StageEvent> one_by_one_list(int s, int p, int m, bool split) {
  std::vector<StageEvent> out;
  const int warm = std::min(p - 1 - s, m);
  int forward = 0, weight = 0;
  for (; forward < warm; ++forward) out.push_back({PassKind::forward, s, 0, forward, 0, 0});
  for (int i = 0; i < m; ++i) {
    if (forward < m) out.push_back({PassKind::forward, s, 0, forward++, 0, 0});
    out.push_back({PassKind::backward, s, 0, i, 0, 0});
    if (split && i >= s) out.push_back({PassKind::weight, s, 0, weight++, 0, 0});
  }
  while (split && weight < m) out.push_back({PassKind::weight, s, 0, weight++, 0, 0});
  return out;
}

std::vector<StageEvent> interleaved_list(int s, int p, int v, int m, int group) {
  std::vector<StageEvent> forward, backward, out;
  for (int begin = 0; begin < m; begin += group) {
    const int end = std::min(m, begin + group);
    for (int k = 0; k < v; ++k)
      for (int i = begin; i < end; ++i) {
        forward.push_back({PassKind::forward, s, k, i, 0, 0});
        backward.push_back({PassKind::backward, s, v - 1 - k, i, 0, 0});
      }
  }
  const int warming = 2 * (p - s - 1) + (v - 1) * group;
  const auto warm = static_cast<std::size_t>(warming);
  for (std::size_t i = 0; i < forward.size() + warm; ++i) {
    if (i < forward.size()) out.push_back(forward[i]);
    if (i >= warm) out.push_back(backward[i - warm]);
  }
  return out;
}

struct Player {
  const PipelineWork& w;
  int blocks;
  std::vector<std::vector<StageEvent>> lists;
  std::vector<std::size_t> next;
  std::vector<double> free;
  std::map<std::tuple<PassKind, int, int>, double> done;  // by kind, block, micro-batch

  explicit Player(const PipelineWork& work) : w(work), blocks(work.stages * work.virtual_stages) {}

  int block_of(const StageEvent& e) const { return e.chunk * w.stages + e.stage; }

  double seconds(const StageEvent& e) const {
    const BlockTime& t = w.blocks[static_cast<std::size_t>(block_of(e))];
    if (e.kind == PassKind::forward) return t.forward;
    if (e.kind == PassKind::weight) return t.weight;
    return w.schedule == Schedule::zero_bubble ? t.input : t.input + t.weight;
  }

  // When what the pass needs is there; negative: not yet.
  double ready(const StageEvent& e) const {
    const int block = block_of(e);
    std::tuple<PassKind, int, int> needs;
    if (e.kind == PassKind::forward) {
      if (block == 0) return 0;
      needs = {PassKind::forward, block - 1, e.micro_batch};
    } else if (e.kind == PassKind::weight) {
      needs = {PassKind::backward, block, e.micro_batch};
    } else if (block + 1 < blocks) {
      needs = {PassKind::backward, block + 1, e.micro_batch};
    } else {
      needs = {PassKind::forward, block, e.micro_batch};
    }
    const auto found = done.find(needs);
    return found == done.end() ? -1 : found->second;
  }
};

}  // namespace

std::vector<StageEvent> play_pipeline(const PipelineWork& w) {
  Player play(w);
  const int m = w.micro_batches;
  std::size_t all = 0;
  for (int s = 0; s < w.stages; ++s) {
    const bool split = w.schedule == Schedule::zero_bubble;
    if (w.schedule == Schedule::gpipe)
      play.lists.push_back(gpipe_list(s, m));
    else if (w.schedule == Schedule::interleaved)
      play.lists.push_back(
          interleaved_list(s, w.stages, w.virtual_stages, m, w.group > 0 ? w.group : w.stages));
    else
      play.lists.push_back(one_by_one_list(s, w.stages, m, split));
    all += play.lists.back().size();
  }
  play.next.assign(play.lists.size(), 0);
  play.free.assign(play.lists.size(), 0);
  // Passes that may start, by when and where; a stage offers only the next of its list.
  using Start = std::pair<double, int>;
  std::priority_queue<Start, std::vector<Start>, std::greater<>> starts;
  std::vector<char> offered(play.lists.size(), 0);
  auto offer = [&](int s) {
    const auto i = static_cast<std::size_t>(s);
    if (offered[i] || play.next[i] >= play.lists[i].size()) return;
    const double ready = play.ready(play.lists[i][play.next[i]]);
    if (ready < 0) return;
    offered[i] = 1;
    starts.push({std::max(ready, play.free[i]), s});
  };
  for (int s = 0; s < w.stages; ++s) offer(s);
  std::vector<StageEvent> out;
  while (!starts.empty()) {
    const auto [begin, s] = starts.top();
    starts.pop();
    const auto i = static_cast<std::size_t>(s);
    StageEvent e = play.lists[i][play.next[i]++];
    e.begin = begin;
    e.end = play.free[i] = begin + play.seconds(e);
    play.done[{e.kind, play.block_of(e), e.micro_batch}] = e.end;
    offered[i] = 0;
    out.push_back(e);
    for (int other = 0; other < w.stages; ++other) offer(other);
  }
  if (out.size() != all) return {};
  std::stable_sort(out.begin(), out.end(),
                   [](const StageEvent& a, const StageEvent& b) { return a.begin < b.begin; });
  return out;
}

}  // namespace trigon
