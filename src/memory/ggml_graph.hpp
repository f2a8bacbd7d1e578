#pragma once
// A graph of ggml as its allocator sees it: which tensors are made when, on which device, and what
// is alive with them. Sizes follow from replaying the allocator (ggml-alloc.c: best fit, tensors
// freed after their last use, results in the place of an operand) over the scheduler's order
// (ggml-backend.cpp: runs of nodes of one device, inputs of a run copied first).

#include <array>
#include <cstdint>
#include <vector>

namespace trigon {

using GgmlId = std::int32_t;
constexpr GgmlId kNoTensor = -1;
constexpr std::int8_t kAnyDevice = -1;

struct GgmlShape {
  std::int64_t columns = 1, rows = 1, planes = 1;
  double element = 4;  // bytes
  double bytes() const {
    return static_cast<double>(columns) * static_cast<double>(rows) * static_cast<double>(planes) *
           element;
  }
  friend bool operator==(const GgmlShape&, const GgmlShape&) = default;
};

class GgmlGraph {
 public:
  // Devices are numbered; the last is the CPU.
  explicit GgmlGraph(std::int8_t devices) : devices_(devices) {}
  std::int8_t cpu() const { return static_cast<std::int8_t>(devices_ - 1); }

  // Weights and caches: nothing is allocated for them, but they decide where an operator runs.
  GgmlId outside(std::int8_t device);
  // Weights that lie on the host and are copied to the device that multiplies them.
  GgmlId copied_weight(GgmlShape shape, std::int8_t home);
  GgmlId input(GgmlShape shape);  // of the graph: on the CPU
  // What another device hands over.
  GgmlId arrives(GgmlShape shape, std::int8_t device);
  struct Sources {
    std::array<GgmlId, 4> ids{kNoTensor, kNoTensor, kNoTensor, kNoTensor};
    Sources(GgmlId a = kNoTensor, GgmlId b = kNoTensor, GgmlId c = kNoTensor, GgmlId d = kNoTensor)
        : ids{a, b, c, d} {}
  };
  // `in_place`: may take the place of an operand of the same shape that is used no more.
  GgmlId node(GgmlShape shape, Sources from, bool in_place = false,
              std::int8_t device = kAnyDevice);
  // The same memory seen otherwise. A view of a cache stands for writing into it.
  GgmlId view(GgmlShape shape, GgmlId of, GgmlId with = kNoTensor);
  // Fixes the order: everything that `id` needs and is not yet in the graph, then itself.
  void expand(GgmlId id);
  const GgmlShape& shape(GgmlId id) const { return at(id).shape; }

  // Bytes of the buffer of each device. `copies`: how often the scheduler keeps each input.
  std::vector<double> buffers(int copies);

 private:
  struct Tensor {
    GgmlShape shape;
    std::array<GgmlId, 4> from{kNoTensor, kNoTensor, kNoTensor, kNoTensor};
    GgmlId viewed = kNoTensor;  // the tensor whose memory a view sees
    std::int8_t device = kAnyDevice;
    bool outside = false, input = false, in_place = false, placed = false, weight = false;
    bool kept = false;        // never freed
    bool dependency = false;  // of a copy: keeps its source until then
    bool allocated = false;
    int children = 0, views = 0;
    double offset = 0, size = 0;
  };
  class Arena;

  Tensor& at(GgmlId id) { return tensors_[static_cast<std::size_t>(id)]; }
  const Tensor& at(GgmlId id) const { return tensors_[static_cast<std::size_t>(id)]; }
  GgmlId add(Tensor t);
  std::int8_t device_of(GgmlId id);
  void assign();
  std::vector<GgmlId> order_with_copies();
  void allocate(GgmlId id, std::vector<Arena>& arenas);
  void release(GgmlId id, std::vector<Arena>& arenas);

  std::int8_t devices_;
  std::vector<Tensor> tensors_;
  std::vector<GgmlId> nodes_;
  struct Copy {
    GgmlId source, copy;
    std::int8_t device;
  };
  std::vector<Copy> copies_;
};

}  // namespace trigon
