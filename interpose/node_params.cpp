#include "interpose/node_params.h"

#include "interpose/operands.h"
#include "interpose/writer.h"

namespace capturesan::shim {

node_scratch::node_scratch(thread_state* t)
    : writer{t, nullptr, nullptr}, at_(raw(SYS_mmap, 0, sizeof(parameter_layout) + max_parameter_bytes,
                                           PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
  if (ok()) {
    writer.layout = reinterpret_cast<parameter_layout*>(at_);
    writer.block = reinterpret_cast<u8*>(at_) + sizeof(parameter_layout);
  }
}

node_scratch::~node_scratch() {
  if (ok()) {
    raw(SYS_munmap, at_, sizeof(parameter_layout) + max_parameter_bytes);
  }
}

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
  u64 flags; // 1 host, 4 array
};

copy_side side_of(CUmemorytype type, CUdeviceptr device, const void* host, CUarray array, std::size_t x, std::size_t y,
                  std::size_t z, std::size_t pitch, std::size_t height) {
  const u64 start = x + y * pitch + z * pitch * height;
  switch (type) {
  case CU_MEMORYTYPE_HOST:
    return {reinterpret_cast<u64>(host) + start, 1};
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
  out.record.value[3] = dst.flags | src.flags << 1;
}

template <class Params>
void fill_memset(node_out& out, const Params& p) {
  out.record.type = trace::node_type::memset;
  out.record.value[0] = p.dst;
  out.record.value[1] = p.value;
  const u64 row = u64{p.width} * p.elementSize;
  out.record.value[2] = p.height > 1 ? p.pitch * (p.height - 1) + row : row;
}
template void fill_memset(node_out&, const CUDA_MEMSET_NODE_PARAMS&);
template void fill_memset(node_out&, const CUDA_MEMSET_NODE_PARAMS_v2&);

void write_node(node_writer& w, const node_out& out) {
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
  default:
    return false;
  }
}

} // namespace

void write_edited_node(thread_state* t, u64 node, const node_edit& edit) {
  if (edit.params == nullptr) {
    return;
  }
  node_scratch scratch(t);
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
  case node_edit::kind::any:
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
