#include "sim/work.h"

#include "include/capturesan.h"
#include "sim/memory.h"
#include "sim/state.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>

namespace capturesan::sim {
namespace {

struct registered_kernel {
  host_kernel function = nullptr;
  void* user = nullptr;
};

struct kernel_registry {
  std::unordered_map<std::string, registered_kernel> by_name;
  std::uint64_t generation = 0;
};

kernel_registry& registry() {
  static auto* const all = new kernel_registry;
  return *all;
}

device* owner_of(CUdeviceptr address) {
  for (const auto& d : state().devices)
    if (d->heap.contains(address)) return d.get();
  return nullptr;
}

// Measured: kernels and copies on the device meet ILLEGAL_ADDRESS, sets and copies of lost host memory LAUNCH_FAILED.
void fault(CUcontext context, CUresult what = CUDA_ERROR_ILLEGAL_ADDRESS) {
  if (!context->pending_fault) context->pending_fault = what;
}

bool is_pinned(CUmemorytype type, copy_range range) {
  if (type == CU_MEMORYTYPE_DEVICE) return false;
  const allocation* a = state().memory.find(range.start);
  return a && (a->kind == memory_kind::host || a->kind == memory_kind::registered);
}

void run(const kernel_call& call) {
  if (registry().by_name.empty()) return;
  auto found = registry().by_name.find(call.info->name);
  if (found == registry().by_name.end()) return;
  const registered_kernel host = found->second;
  const auto values = call.values; // outlives the node while the lock is released
  capturesan_host_launch launch{};
  launch.grid[0] = call.grid.x, launch.grid[1] = call.grid.y, launch.grid[2] = call.grid.z;
  launch.block[0] = call.block.x, launch.block[1] = call.block.y, launch.block[2] = call.block.z;
  launch.shared_bytes = call.shared_bytes;
  launch.cluster[0] = launch.cluster[1] = launch.cluster[2] = 1;
  for (const auto& a : call.attributes)
    if (a.id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
      launch.cluster[0] = a.value.clusterDim.x, launch.cluster[1] = a.value.clusterDim.y,
      launch.cluster[2] = a.value.clusterDim.z;
  launch.cooperative = call.cooperative ? 1 : 0;
  launch.parameter_count = static_cast<unsigned>(values->pointers.size());
  launch.parameters = values->pointers.data();
  const std::string name = call.info->name;
  launch.name = name.c_str();
  unlocked([&] { host.function(&launch, host.user); });
}

void run(const memory_ops& ops) {
  for (const auto& op : ops.list) {
    if (op.operation == CU_STREAM_MEM_OP_WRITE_VALUE_32)
      std::memcpy(reinterpret_cast<void*>(op.writeValue.address), &op.writeValue.value, 4);
    else if (op.operation == CU_STREAM_MEM_OP_WRITE_VALUE_64)
      std::memcpy(reinterpret_cast<void*>(op.writeValue.address), &op.writeValue.value64, 8);
    // A wait is over at once: the work that would have set the value has been done, or comes from the host later.
  }
}

bool writes_dead_memory(const memory_ops& ops) {
  return std::any_of(ops.list.begin(), ops.list.end(), [](const CUstreamBatchMemOpParams& op) {
    if (op.operation == CU_STREAM_MEM_OP_WRITE_VALUE_32) return is_dead(op.writeValue.address, 4);
    if (op.operation == CU_STREAM_MEM_OP_WRITE_VALUE_64) return is_dead(op.writeValue.address, 8);
    return false;
  });
}

struct runner {
  CUcontext context;

  void operator()(const empty_call&) const {}
  void operator()(const kernel_call& call) const {
    if (meets_dead_memory(call)) return fault(context);
    run(call);
  }
  void operator()(const copy_call& call) const {
    const auto from = source_of(call.shape), to = target_of(call.shape);
    const auto lost = [](bool pinned, copy_range r) { return pinned && !state().memory.covers(r.start, r.bytes); };
    if (lost(call.pinned_source, from) || lost(call.pinned_target, to)) return fault(context, CUDA_ERROR_LAUNCH_FAILED);
    if (is_dead(from.start, from.bytes) || is_dead(to.start, to.bytes)) return fault(context);
    run_copy(call.shape);
  }
  void operator()(const fill_call& call) const {
    const auto to = target_of(call.shape);
    if (is_dead(to.start, to.bytes)) return fault(context, CUDA_ERROR_LAUNCH_FAILED);
    run_fill(call.shape);
  }
  void operator()(const host_call& call) const {
    const host_call own = call;
    unlocked([&] { own.function(own.user_data); });
  }
  void operator()(const child_call&) const {} // a program of its own, see exec.cpp
  void operator()(const record_call& call) const {
    if (is_live(call.event)) note_recorded(call.event);
  }
  void operator()(const wait_call&) const {}
  void operator()(const alloc_call& call) const { set_allocated(*call.block, true); }
  void operator()(const free_call& call) const {
    if (graph_block* block = find_graph_block(call.address)) set_allocated(*block, false);
  }
  void operator()(const memory_ops& ops) const {
    if (writes_dead_memory(ops)) return fault(context);
    run(ops);
  }
  void operator()(const conditional_call&) const {}
};

} // namespace

copy_call make_copy(const CUDA_MEMCPY3D& shape, CUcontext context) {
  return {shape, context, is_pinned(shape.srcMemoryType, source_of(shape)),
          is_pinned(shape.dstMemoryType, target_of(shape))};
}

void replay(const operation& work, CUcontext context) {
  if (context->pending_fault || context->fault) return;
  std::visit(runner{context}, work);
}

CUresult execute_now(const operation& work, CUstream stream) {
  replay(work, stream->context);
  return CUDA_SUCCESS;
}

CUresult settle(CUcontext context) {
  if (!context->fault) context->fault = context->pending_fault;
  if (context->fault)
    context->device->fault = context->fault;
  else
    release_idle_pools(*context->device);
  return context->fault;
}

void note_recorded(CUevent event) {
  event->recorded = true;
  event->capture = nullptr;
  event->tail.clear();
  event->time = clock::now();
}

void register_host_kernel(std::string name, host_kernel function, void* user) {
  if (function)
    registry().by_name[std::move(name)] = {function, user};
  else
    registry().by_name.erase(name);
  ++registry().generation;
}

bool has_host_kernel(std::string_view name) { return registry().by_name.count(std::string(name)) != 0; }
std::uint64_t host_kernel_generation() { return registry().generation; }

bool is_dead(CUdeviceptr address, std::size_t bytes) {
  device* owner = owner_of(address);
  if (!owner) return was_given_back(address);
  if (state().memory.covers(address, bytes)) return false;
  return state().options.strict || !owner->heap.accessible(address, bytes);
}

bool meets_dead_memory(const kernel_call& call) {
  if (!call.values) return false;
  const bool strict = state().options.strict;
  for (std::size_t i = 0; i < call.info->parameters.size(); ++i) {
    const auto& p = call.info->parameters[i];
    if (!strict && p.size != sizeof(CUdeviceptr)) continue;
    const auto* bytes = static_cast<const std::byte*>(call.values->pointers[i]);
    for (std::size_t at = 0; at + sizeof(CUdeviceptr) <= p.size; at += sizeof(CUdeviceptr)) {
      CUdeviceptr value;
      std::memcpy(&value, bytes + at, sizeof value);
      if (is_dead(value, 1)) return true;
    }
  }
  return false;
}

std::uint64_t memory_generation() {
  std::uint64_t sum = state().memory.generation();
  for (const auto& d : state().devices) sum += d->heap.generation();
  return sum;
}

} // namespace capturesan::sim
