#include "memory/ggml_graph.hpp"

#include <algorithm>
#include <cmath>

namespace trigon {

// Free blocks of one buffer in order of offset; the last one has no end.
class GgmlGraph::Arena {
 public:
  explicit Arena(double alignment) : alignment_(alignment) {}
  double most() const { return most_; }
  double aligned(double size) const { return std::ceil(size / alignment_) * alignment_; }

  double take(double size) {
    size = aligned(size);
    if (!(size > 0)) return 0;  // tensors without elements take no place
    std::size_t best = free_.size() - 1;
    double least = 0;
    for (std::size_t i = 0; i + 1 < free_.size(); ++i)
      if (free_[i].size >= size && (best == free_.size() - 1 || free_[i].size <= least))
        best = i, least = free_[i].size;
    Block& b = free_[best];
    const double offset = b.offset;
    b.offset += size;
    if (best + 1 < free_.size()) {
      b.size -= size;
      if (b.size <= 0) free_.erase(free_.begin() + static_cast<std::ptrdiff_t>(best));
    }
    most_ = std::max(most_, offset + size);
    return offset;
  }

  void give(double offset, double size) {
    size = aligned(size);
    if (!(size > 0)) return;
    auto next =
        std::find_if(free_.begin(), free_.end(), [&](const Block& b) { return b.offset > offset; });
    const bool last = next + 1 == free_.end();
    const bool joins_next = offset + size == next->offset;
    if (next != free_.begin() && (next - 1)->offset + (next - 1)->size == offset) {
      auto before = next - 1;
      before->size += size;
      if (!joins_next) return;
      if (last)
        next->offset = before->offset;
      else
        next->offset = before->offset, next->size += before->size;
      free_.erase(before);
      return;
    }
    if (joins_next) {
      next->offset = offset;
      if (!last) next->size += size;
      return;
    }
    free_.insert(next, {offset, size});
  }

 private:
  struct Block {
    double offset = 0, size = 0;
  };
  double alignment_;
  double most_ = 0;
  std::vector<Block> free_{{0, 0}};  // the last block's size is not counted
};

GgmlId GgmlGraph::add(Tensor t) {
  tensors_.push_back(t);
  return static_cast<GgmlId>(tensors_.size() - 1);
}

GgmlId GgmlGraph::outside(std::int8_t device) {
  Tensor t;
  t.device = device;
  t.outside = true;
  return add(t);
}

GgmlId GgmlGraph::copied_weight(GgmlShape shape, std::int8_t home) {
  Tensor t;
  t.shape = shape;
  t.device = home;
  t.weight = t.kept = true;
  return add(t);
}

GgmlId GgmlGraph::input(GgmlShape shape) {
  Tensor t;
  t.shape = shape;
  t.device = cpu();
  t.input = true;
  return add(t);
}

GgmlId GgmlGraph::arrives(GgmlShape shape, std::int8_t device) {
  Tensor t;
  t.shape = shape;
  t.device = device;
  t.kept = true;
  return add(t);
}

GgmlId GgmlGraph::node(GgmlShape shape, Sources from, bool in_place, std::int8_t device) {
  Tensor t;
  t.shape = shape;
  t.from = from.ids;
  t.in_place = in_place;
  t.device = device;
  return add(t);
}

GgmlId GgmlGraph::view(GgmlShape shape, GgmlId of, GgmlId with) {
  Tensor t;
  t.shape = shape;
  t.from = {with == kNoTensor ? of : with, with == kNoTensor ? kNoTensor : of, kNoTensor,
            kNoTensor};
  t.viewed = at(of).viewed == kNoTensor ? of : at(of).viewed;
  // Writing into a cache is an operator of the device that holds it.
  if (at(of).outside) t.device = at(of).device;
  return add(t);
}

void GgmlGraph::expand(GgmlId id) {
  if (id == kNoTensor || at(id).placed) return;
  at(id).placed = true;
  bool any = false;
  for (const GgmlId from : at(id).from)
    if (from != kNoTensor) {
      any = true;
      expand(from);
    }
  if (any) nodes_.push_back(id);
}

std::int8_t GgmlGraph::device_of(GgmlId id) {
  Tensor& t = at(id);
  if (t.device == kAnyDevice && t.viewed != kNoTensor) t.device = device_of(t.viewed);
  if (t.device == kAnyDevice) t.device = cpu();
  return t.device;
}

// Operators with weights run where these lie; others join their neighbours, those of cards first
// (ggml_backend_sched_split_graph, passes 1 to 4).
void GgmlGraph::assign() {
  auto spread = [&](auto begin, auto end, bool cards_only) {
    std::int8_t current = kAnyDevice;
    for (auto i = begin; i != end; ++i) {
      Tensor& t = at(*i);
      if (t.viewed != kNoTensor) continue;
      if (t.device == kAnyDevice)
        t.device = current;
      else
        current = cards_only && t.device == cpu() ? kAnyDevice : t.device;
    }
  };
  spread(nodes_.begin(), nodes_.end(), true);
  spread(nodes_.rbegin(), nodes_.rend(), true);
  spread(nodes_.begin(), nodes_.end(), false);
  spread(nodes_.rbegin(), nodes_.rend(), false);
}

// A run ends where the device changes, and before weights that have to be copied.
std::vector<GgmlId> GgmlGraph::order_with_copies() {
  struct Run {
    std::int8_t device;
    std::vector<GgmlId> nodes, copies;
  };
  std::vector<Run> runs;
  for (const GgmlId id : nodes_) {
    const bool is_view = at(id).viewed != kNoTensor;
    if (is_view && !at(at(id).viewed).outside && !runs.empty()) {
      runs.back().nodes.push_back(id);
      continue;
    }
    const std::int8_t device = device_of(id);
    bool starts = runs.empty() || runs.back().device != device;
    if (!starts && !runs.back().copies.empty())
      for (const GgmlId from : at(id).from)
        if (from != kNoTensor && at(from).weight && at(from).device != device) starts = true;
    if (starts) runs.push_back({device, {}, {}});
    Run& run = runs.back();
    run.nodes.push_back(id);
    for (std::size_t i = 0; i < at(id).from.size(); ++i) {
      const GgmlId from = at(id).from[i];
      if (from == kNoTensor) continue;
      const GgmlId root = at(from).viewed == kNoTensor ? from : at(from).viewed;
      if (at(root).outside || device_of(from) == device) continue;
      auto known = std::find_if(copies_.begin(), copies_.end(), [&](const Copy& c) {
        return c.source == from && c.device == device;
      });
      if (known == copies_.end()) {
        Tensor copy;
        copy.shape = at(from).shape;
        copy.device = device;
        copies_.push_back({from, add(copy), device});
        known = copies_.end() - 1;
        run.copies.push_back(static_cast<GgmlId>(copies_.size() - 1));
      }
      at(id).from[i] = known->copy;
    }
  }
  std::vector<GgmlId> order;
  for (const Run& run : runs) {
    for (const GgmlId c : run.copies) {
      const Copy& copy = copies_[static_cast<std::size_t>(c)];
      Tensor wait;
      wait.dependency = true;
      wait.from[0] = copy.source;
      wait.viewed = copy.source;
      order.push_back(add(wait));
      order.push_back(copy.copy);
    }
    order.insert(order.end(), run.nodes.begin(), run.nodes.end());
  }
  return order;
}

void GgmlGraph::allocate(GgmlId id, std::vector<Arena>& arenas) {
  Tensor& t = at(id);
  if (t.allocated || t.outside || t.weight || t.viewed != kNoTensor) return;
  const std::int8_t device = device_of(id);
  t.allocated = true;
  if (t.in_place)
    for (const GgmlId from : t.from) {
      if (from == kNoTensor) continue;
      Tensor& p = at(from);
      // Views own no memory, so nothing takes their place.
      if (p.outside || p.viewed != kNoTensor || !p.allocated || p.kept) continue;
      if (p.device != device || !(p.shape == t.shape)) continue;
      if (p.children != 1 || p.views != 0) continue;
      t.offset = p.offset, t.size = p.size;
      p.allocated = false;
      return;
    }
  t.size = t.shape.bytes();
  t.offset = arenas[static_cast<std::size_t>(device)].take(t.size);
}

void GgmlGraph::release(GgmlId id, std::vector<Arena>& arenas) {
  Tensor& t = at(id);
  if (!t.allocated || t.outside || t.kept) return;
  arenas[static_cast<std::size_t>(device_of(id))].give(t.offset, t.size);
  t.allocated = false;
}

std::vector<double> GgmlGraph::buffers(int copies) {
  assign();
  const std::vector<GgmlId> order = order_with_copies();
  // Alignment of CUDA buffers and of the CPU's (TENSOR_ALIGNMENT).
  std::vector<Arena> arenas(static_cast<std::size_t>(devices_) - 1, Arena(128));
  arenas.emplace_back(32);
  // What arrives lies in another device's buffer, which nobody asks about.
  for (const GgmlId id : order) {
    const Tensor& t = at(id);
    if (t.viewed != kNoTensor && !t.dependency) ++at(t.viewed).views;
    for (const GgmlId from : t.from)
      if (from != kNoTensor) ++at(from).children;
  }
  if (copies > 1) {
    auto take = [&](std::int8_t device, const GgmlShape& shape) {
      for (int i = 1; i < copies; ++i) arenas[static_cast<std::size_t>(device)].take(shape.bytes());
    };
    for (std::size_t i = 0; i < tensors_.size(); ++i)
      if (tensors_[i].input && tensors_[i].children > 0) take(cpu(), tensors_[i].shape);
    for (const Copy& c : copies_) {
      if (at(c.source).weight) continue;
      at(c.copy).kept = true;
      allocate(c.copy, arenas);
      take(c.device, at(c.copy).shape);
    }
  }
  for (const GgmlId id : order)
    for (const GgmlId from : at(id).from)
      if (from != kNoTensor && at(from).input) allocate(from, arenas);
  for (const GgmlId id : order) {
    for (const GgmlId from : at(id).from)
      if (from != kNoTensor) allocate(from, arenas);
    if (!at(id).dependency) allocate(id, arenas);
    for (const GgmlId from : at(id).from) {
      if (from == kNoTensor) continue;
      Tensor& p = at(from);
      if (--p.children > 0 || p.views > 0) continue;
      if (p.viewed == kNoTensor) {
        release(from, arenas);
        continue;
      }
      Tensor& seen = at(p.viewed);
      if (seen.outside) continue;
      --seen.views;
      if (seen.views == 0 && seen.children == 0) release(p.viewed, arenas);
    }
  }
  std::vector<double> out;
  for (const Arena& a : arenas) out.push_back(a.most());
  return out;
}

}  // namespace trigon
