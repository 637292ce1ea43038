#include "interpose/node_params.h"

#include "interpose/blocks.h"
#include "interpose/graph_walk.h"
#include "interpose/host_memory.h"
#include "interpose/operands.h"
#include "interpose/pointer_tables.h"
#include "interpose/tensor_maps.h"
#include "interpose/writer.h"

namespace capturesan::shim {

namespace {

constexpr std::size_t seen_bytes = node_writer::seen_size * sizeof(u64);
constexpr std::size_t scratch_bytes = seen_bytes + max_parameter_bytes + sizeof(parameter_layout);

} // namespace

namespace {

// One is kept for the next walk or edit: a program that edits its graphs at each step would map and unmap one each
// time. Per image, so that a forked child has a copy of its own.
std::atomic<long> spare_scratch;

} // namespace

node_scratch::node_scratch(thread_state* t, u64 exec)
    : writer{t, nullptr, nullptr, nullptr, exec}, at_(spare_scratch.exchange(0, std::memory_order_acquire)) {
  if (at_ != 0) {
    std::memset(reinterpret_cast<void*>(at_), 0, seen_bytes);
  } else {
    at_ = raw(SYS_mmap, 0, scratch_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  }
  if (ok()) {
    writer.seen = reinterpret_cast<u64*>(at_);
    writer.block = reinterpret_cast<u8*>(at_) + seen_bytes;
    writer.layout = reinterpret_cast<parameter_layout*>(writer.block + max_parameter_bytes);
  }
}

namespace {
std::atomic<bool> updatable_node;
} // namespace

bool any_updatable_node() { return updatable_node.load(std::memory_order_relaxed); }
void note_updatable_node() { updatable_node.store(true, std::memory_order_relaxed); }

node_scratch::~node_scratch() {
  long none = 0;
  if (ok() && !spare_scratch.compare_exchange_strong(none, at_, std::memory_order_release, std::memory_order_relaxed)) {
    raw(SYS_munmap, at_, scratch_bytes);
  }
}

namespace {

// Tensor maps in a parameter block: 128 bytes, aligned to 64 for the device. Parameters begin at 0x210 of its constant
// bank on sm_90, so that a parameter of that alignment lies 48 bytes into the block (measured): what counts is the
// distance from the begin of the parameter.
void write_descriptors(thread_state* t, const parameter_layout& layout, const u8* block, u32 bytes) {
  constexpr u32 size = sizeof(CUtensorMap);
  if (!any_tensor_map()) {
    return;
  }
  for (int i = 0; i < layout.count; ++i) {
    const u32 end = u32{layout.offset[i]} + layout.size[i];
    for (u32 at = layout.offset[i]; at + size <= end && at + size <= bytes; at += 64) {
      const tensor_extent e = find_tensor_map(block + at);
      if (e.address != 0) {
        trace::payload_record head{};
        head.kind = trace::record_kind::descriptor;
        head.aux = static_cast<u16>(at);
        head.key = e.address;
        head.value = e.bytes;
        write_payload(t, head, nullptr, 0);
      }
    }
  }
}

} // namespace

template <class Params>
void fill_kernel(node_writer& w, node_out& out, const Params& p, kernel_handle k) {
  if (known_layout(k, *w.layout) == nullptr) {
    w.layout->count = -1;
    w.layout->bytes = 0;
  }
  write_function(w.t, k, *w.layout);
  bool cut = false;
  const u32 bytes = pack_parameters(*w.layout, p.kernelParams, p.extra, w.block, max_parameter_bytes, cut);
  w.whole = w.whole && !cut;
  write_descriptors(w.t, *w.layout, w.block, bytes);
  out.record.type = trace::node_type::kernel;
  out.record.value[0] = k.key();
  out.record.value[1] = operand::pack_grid(p.gridDimX, p.gridDimY, p.gridDimZ);
  out.record.value[2] = operand::pack_block(p.blockDimX, p.blockDimY, p.blockDimZ, p.sharedMemBytes);
  out.record.bytes = bytes;
  out.payload = w.block;
}
template void fill_kernel(node_writer&, node_out&, const CUDA_KERNEL_NODE_PARAMS_v1&, kernel_handle);
template void fill_kernel(node_writer&, node_out&, const CUDA_KERNEL_NODE_PARAMS_v2&, kernel_handle);
template void fill_kernel(node_writer&, node_out&, const CUDA_KERNEL_NODE_PARAMS_v3&, kernel_handle);

namespace {

struct copy_side {
  u64 address;
  u64 flags; // 1 host, 4 array, 16 on the stack
};

constexpr u64 on_stack = 16, in_rows = 64;

thread_local stack_range known_stack __attribute__((tls_model("initial-exec")));

copy_side side_of(CUmemorytype type, CUdeviceptr device, const void* host, CUarray array, std::size_t x, std::size_t y,
                  std::size_t z, std::size_t pitch, std::size_t height) {
  const u64 start = x + y * pitch + z * pitch * height;
  switch (type) {
  case CU_MEMORYTYPE_HOST:
    return {reinterpret_cast<u64>(host) + start,
            own_stack().holds(reinterpret_cast<u64>(host) + start) ? 1 | on_stack : u64{1}};
  case CU_MEMORYTYPE_ARRAY:
    return {reinterpret_cast<u64>(array), 4};
  default:
    return {device + start, 0};
  }
}

} // namespace

void fill_memcpy(node_out& out, const CUDA_MEMCPY3D& p) {
  const copy_side dst = side_of(p.dstMemoryType, p.dstDevice, p.dstHost, p.dstArray, p.dstXInBytes, p.dstY, p.dstZ,
                                p.dstPitch, p.dstHeight);
  const copy_side src = side_of(p.srcMemoryType, p.srcDevice, p.srcHost, p.srcArray, p.srcXInBytes, p.srcY, p.srcZ,
                                p.srcPitch, p.srcHeight);
  out.record.type = trace::node_type::memcpy;
  out.record.value[0] = dst.address;
  out.record.value[1] = src.address;
  out.record.value[2] = p.WidthInBytes * (p.Height == 0 ? 1 : p.Height) * (p.Depth == 0 ? 1 : p.Depth);
  out.record.value[3] = dst.flags | src.flags << 1 | (p.Height > 1 || p.Depth > 1 ? in_rows : 0);
  out.record.value[4] = known_stack.high;
}

template <class Params>
void fill_memset(node_out& out, const Params& p) {
  out.record.type = trace::node_type::memset;
  out.record.value[0] = p.dst;
  out.record.value[1] = p.value;
  const u64 row = u64{p.width} * p.elementSize;
  out.record.value[2] = p.height > 1 ? p.pitch * (p.height - 1) + row : row;
  out.record.value[3] = p.height > 1 ? in_rows : 0;
}
template void fill_memset(node_out&, const CUDA_MEMSET_NODE_PARAMS&);
template void fill_memset(node_out&, const CUDA_MEMSET_NODE_PARAMS_v2&);

template <class Params>
void fill_host(node_out& out, const Params& p) {
  out.record.type = trace::node_type::host;
  out.record.value[0] = reinterpret_cast<u64>(p.fn);
  out.record.value[1] = reinterpret_cast<u64>(p.userData);
  out.record.value[2] = own_stack().holds(out.record.value[1]) ? known_stack.high : 0;
}
template void fill_host(node_out&, const CUDA_HOST_NODE_PARAMS_v1&);
template void fill_host(node_out&, const CUDA_HOST_NODE_PARAMS_v2&);

bool asked_for_own_stack() { return known_stack.high != 0; }

stack_range own_stack() {
  if (known_stack.high == 0 && pthread_getattr_np != nullptr && pthread_attr_destroy != nullptr) {
    pthread_attr_t attributes;
    if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
      void* low = nullptr;
      std::size_t size = 0;
      if (pthread_attr_getstack(&attributes, &low, &size) == 0) {
        known_stack = {reinterpret_cast<u64>(low), reinterpret_cast<u64>(low) + size};
      }
      pthread_attr_destroy(&attributes);
    }
  }
  return known_stack;
}

template <class Params>
void fill_batch(node_writer& w, node_out& out, const Params& p) {
  constexpr u32 most = max_parameter_bytes / (2 * sizeof(u64));
  const u32 count = p.paramArray == nullptr ? 0 : p.count;
  const u32 kept = count > most ? most : count;
  auto* to = reinterpret_cast<u64*>(w.block);
  for (u32 i = 0; i < kept; ++i) {
    const CUstreamBatchMemOpParams& op = p.paramArray[i];
    switch (op.operation) {
    case CU_STREAM_MEM_OP_WAIT_VALUE_32:
    case CU_STREAM_MEM_OP_WAIT_VALUE_64:
    case CU_STREAM_MEM_OP_WRITE_VALUE_32:
    case CU_STREAM_MEM_OP_WRITE_VALUE_64:
      to[2 * i] = op.waitValue.address; // the same place in all four
      break;
    default:
      to[2 * i] = 0;
    }
    to[2 * i + 1] = static_cast<u64>(op.operation);
  }
  w.whole = w.whole && kept == count;
  out.record.type = trace::node_type::batch_mem_op;
  out.record.value[0] = count;
  out.record.bytes = kept * 2 * static_cast<u32>(sizeof(u64));
  out.payload = w.block;
}
template void fill_batch(node_writer&, node_out&, const CUDA_BATCH_MEM_OP_NODE_PARAMS_v1&);
template void fill_batch(node_writer&, node_out&, const CUDA_BATCH_MEM_OP_NODE_PARAMS_v2&);

namespace {

void note_table(node_writer& w, const node_out& out) {
  constexpr u64 to_host = 1, from_host = 2, arrays = 12;
  const u64* v = out.record.value;
  if (out.record.type != trace::node_type::memcpy || (v[3] & (to_host | from_host | arrays)) != from_host ||
      v[2] > w.table_bytes || v[2] > max_table_bytes) {
    return;
  }
  w.table_bytes -= v[2];
  write_pointer_table(w.t, v[0], v[1], v[2]);
}

} // namespace

void write_node(node_writer& w, const node_out& out) {
  note_table(w, out);
  note_operands(w, out);
  note_host_operands(w, out);
  const std::size_t slots = trace::slots_for(sizeof(out.record), out.record.bytes);
  void* at = reserve(w.t, slots);
  if (at == nullptr) {
    w.whole = false;
    return;
  }
  std::memcpy(at, &out.record, sizeof(out.record));
  static_cast<trace::node_record*>(at)->slots = static_cast<u8>(slots);
  if (out.record.bytes != 0) {
    std::memcpy(static_cast<u8*>(at) + sizeof(out.record), out.payload, out.record.bytes);
  }
  commit(w.t, slots);
}

namespace {

bool fill_any(node_writer& w, node_out& out, const CUgraphNodeParams& p) {
  switch (p.type) {
  case CU_GRAPH_NODE_TYPE_KERNEL:
    fill_kernel(w, out, p.kernel, kernel_handle{p.kernel.func, p.kernel.func == nullptr ? p.kernel.kern : nullptr});
    return true;
  case CU_GRAPH_NODE_TYPE_MEMCPY:
    fill_memcpy(out, p.memcpy.copyParams);
    return true;
  case CU_GRAPH_NODE_TYPE_MEMSET:
    fill_memset(out, p.memset);
    return true;
  case CU_GRAPH_NODE_TYPE_HOST:
    fill_host(out, p.host);
    return true;
  case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
    fill_batch(w, out, p.memOp);
    return true;
  default:
    return false;
  }
}

} // namespace

void write_edited_node(thread_state* t, u64 exec, u64 node, const node_edit& edit) {
  if (edit.params == nullptr) {
    return;
  }
  node_scratch scratch(t, exec);
  if (!scratch.ok()) {
    return;
  }
  node_writer& w = scratch.writer;
  node_out out;
  out.record.kind = trace::record_kind::node;
  out.record.node = node;
  switch (edit.what) {
  case node_edit::kind::kernel_v1: {
    const auto& p = *static_cast<const CUDA_KERNEL_NODE_PARAMS_v1*>(edit.params);
    fill_kernel(w, out, p, kernel_handle{p.func, nullptr});
    break;
  }
  case node_edit::kind::kernel_v2: {
    const auto& p = *static_cast<const CUDA_KERNEL_NODE_PARAMS_v2*>(edit.params);
    fill_kernel(w, out, p, kernel_handle{p.func, p.func == nullptr ? p.kern : nullptr});
    break;
  }
  case node_edit::kind::memcpy:
    fill_memcpy(out, *static_cast<const CUDA_MEMCPY3D*>(edit.params));
    break;
  case node_edit::kind::memset:
    fill_memset(out, *static_cast<const CUDA_MEMSET_NODE_PARAMS*>(edit.params));
    break;
  case node_edit::kind::host:
    fill_host(out, *static_cast<const CUDA_HOST_NODE_PARAMS_v1*>(edit.params));
    break;
  case node_edit::kind::batch:
    fill_batch(w, out, *static_cast<const CUDA_BATCH_MEM_OP_NODE_PARAMS_v1*>(edit.params));
    break;
  case node_edit::kind::child:
    write_child(w, node, static_cast<CUgraph>(const_cast<void*>(edit.params)));
    return;
  case node_edit::kind::any:
    if (static_cast<const CUgraphNodeParams*>(edit.params)->type == CU_GRAPH_NODE_TYPE_GRAPH) {
      write_child(w, node, static_cast<const CUgraphNodeParams*>(edit.params)->graph.graph);
      return;
    }
    if (!fill_any(w, out, *static_cast<const CUgraphNodeParams*>(edit.params))) {
      return;
    }
    break;
  case node_edit::kind::none:
    return;
  }
  write_node(w, out);
}

} // namespace capturesan::shim
