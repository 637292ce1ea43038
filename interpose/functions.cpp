#include "interpose/functions.h"

#include "interpose/real.h"
#include "interpose/writer.h"

namespace capturesan::shim {

namespace {

// The question for the n-th parameter, to whichever of the two the handle is.
CUresult ask_parameter(kernel_handle k, int n, std::size_t& offset, std::size_t& size) {
  const auto at = static_cast<std::size_t>(n);
  if (k.function != nullptr) {
    auto* ask = driver_function<decltype(cuFuncGetParamInfo)>(call_id::cuFuncGetParamInfo);
    return ask == nullptr ? CUDA_ERROR_NOT_FOUND : ask(k.function, at, &offset, &size);
  }
  auto* ask = driver_function<decltype(cuKernelGetParamInfo)>(call_id::cuKernelGetParamInfo);
  return ask == nullptr ? CUDA_ERROR_NOT_FOUND : ask(k.kernel, at, &offset, &size);
}

} // namespace

void read_layout(kernel_handle& k, parameter_layout& out) {
  out.count = -1; // stays so on drivers older than 12.4
  out.bytes = 0;
  int n = 0;
  for (; n < max_parameters; ++n) {
    std::size_t offset = 0;
    std::size_t size = 0;
    CUresult r = ask_parameter(k, n, offset, size);
    if (r == CUDA_ERROR_INVALID_HANDLE && n == 0 && k.function != nullptr) {
      k = {nullptr, reinterpret_cast<CUkernel>(k.function)};
      r = ask_parameter(k, n, offset, size);
    }
    if (r == CUDA_ERROR_INVALID_VALUE) {
      break; // one past the last parameter
    }
    if (r != CUDA_SUCCESS || offset > 0xffff || size > 0xffff) {
      return;
    }
    out.offset[n] = static_cast<u16>(offset);
    out.size[n] = static_cast<u16>(size);
    const u32 end = static_cast<u32>(offset + size);
    out.bytes = end > out.bytes ? end : out.bytes;
  }
  out.count = n;
}

namespace {
// Goes on when a module is unloaded: its handles may come back for other functions.
std::atomic<u32> layout_generation{1};
} // namespace

void write_function(thread_state* t, kernel_handle k, const parameter_layout& layout) {
  const u64 key = k.key();
  const u32 generation = layout_generation.load(std::memory_order_relaxed);
  if (key == 0 || !process->functions.insert(generation == 1 ? key : key ^ mix(generation))) {
    return;
  }
  const char* name = nullptr;
  if (k.function != nullptr) {
    if (auto* get = driver_function<decltype(cuFuncGetName)>(call_id::cuFuncGetName)) {
      get(&name, k.function);
    }
  } else if (auto* get = driver_function<decltype(cuKernelGetName)>(call_id::cuKernelGetName)) {
    get(&name, k.kernel);
  }
  u16 pairs[2 * max_parameters];
  const int n = layout.count < 0 ? 0 : layout.count;
  for (int i = 0; i < n; ++i) {
    pairs[2 * i] = layout.offset[i];
    pairs[2 * i + 1] = layout.size[i];
  }
  trace::payload_record head{};
  head.kind = trace::record_kind::function;
  head.aux = layout.count < 0 ? u16{0xffff} : static_cast<u16>(n);
  head.id = layout.bytes;
  head.key = key;
  write_payload(t, head, pairs, sizeof(u16) * 2 * static_cast<std::size_t>(n), name == nullptr ? "" : name,
                name == nullptr ? 0 : ::strnlen(name, 8192));
}

namespace {

// Parameters given as one block: `extra` is a list of tag, value, ..., CU_LAUNCH_PARAM_END.
const void* block_of(void** extra, std::size_t& bytes) {
  const void* block = nullptr;
  bytes = 0;
  for (int i = 0; extra[i] != CU_LAUNCH_PARAM_END && i < 8; i += 2) {
    if (extra[i] == CU_LAUNCH_PARAM_BUFFER_POINTER) {
      block = extra[i + 1];
    } else if (extra[i] == CU_LAUNCH_PARAM_BUFFER_SIZE && extra[i + 1] != nullptr) {
      bytes = *static_cast<const std::size_t*>(extra[i + 1]);
    }
  }
  return block;
}

} // namespace

u32 pack_parameters(const parameter_layout& layout, void** values, void** extra, u8* out, u32 capacity, bool& cut) {
  if (values == nullptr) {
    std::size_t bytes = 0;
    const void* block = extra == nullptr ? nullptr : block_of(extra, bytes);
    if (block == nullptr) {
      cut = cut || layout.count != 0;
      return 0;
    }
    const u32 n = bytes > capacity ? capacity : static_cast<u32>(bytes);
    cut = cut || bytes > capacity;
    std::memcpy(out, block, n);
    return n;
  }
  if (layout.count < 0) {
    cut = true;
    return 0;
  }
  const u32 bytes = layout.bytes > capacity ? capacity : layout.bytes;
  std::memset(out, 0, bytes);
  for (int i = 0; i < layout.count; ++i) {
    const u32 end = u32{layout.offset[i]} + layout.size[i];
    if (end > bytes || (values[i] == nullptr && layout.size[i] != 0)) {
      cut = true;
      continue;
    }
    std::memcpy(out + layout.offset[i], values[i], layout.size[i]);
  }
  return bytes;
}

namespace {

// Layouts are small (a few parameters) and kept in one arena; the table maps a handle to its place.
struct kept_layout {
  u64 passed, key; // the handle as launched, and as corrected by read_layout
  u32 generation;
  bool is_kernel; // `key` is a CUkernel
  int count;
  u32 bytes;
  u16* pairs() { return reinterpret_cast<u16*>(this + 1); } // count times offset, size
  const u16* pairs() const { return reinterpret_cast<const u16*>(this + 1); }
};
constexpr std::size_t layout_slots = 8192;
constexpr std::size_t arena_bytes = std::size_t{4} << 20;
std::atomic<kept_layout*> kept[layout_slots];
spin_lock arena_lock;
u8* arena;
std::size_t arena_used;

kept_layout* keep(u64 passed, kernel_handle k, const parameter_layout& l) {
  locked guard(arena_lock);
  if (arena == nullptr) {
    const long at =
        raw(SYS_mmap, 0, arena_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    arena = at == -1 ? nullptr : reinterpret_cast<u8*>(at);
  }
  const std::size_t need =
      (sizeof(kept_layout) + sizeof(u16) * 2 * static_cast<std::size_t>(l.count) + 7) & ~std::size_t{7};
  if (arena == nullptr || arena_used + need > arena_bytes) {
    return nullptr;
  }
  auto* out = reinterpret_cast<kept_layout*>(arena + arena_used);
  arena_used += need;
  out->passed = passed;
  out->key = k.key();
  out->generation = layout_generation.load(std::memory_order_relaxed);
  out->is_kernel = k.function == nullptr;
  out->count = l.count;
  out->bytes = l.bytes;
  for (int i = 0; i < l.count; ++i) {
    out->pairs()[2 * i] = l.offset[i];
    out->pairs()[2 * i + 1] = l.size[i];
  }
  return out;
}

} // namespace

void forget_layouts() { layout_generation.fetch_add(1, std::memory_order_relaxed); }

const parameter_layout* known_layout(kernel_handle& k, parameter_layout& scratch) {
  const u64 passed = k.key();
  std::atomic<kept_layout*>& slot = kept[mix(passed) % layout_slots];
  const kept_layout* found = slot.load(std::memory_order_acquire);
  if (found == nullptr || found->passed != passed ||
      found->generation != layout_generation.load(std::memory_order_relaxed)) {
    read_layout(k, scratch);
    if (scratch.count < 0) {
      return nullptr;
    }
    if (kept_layout* fresh = keep(passed, k, scratch)) {
      slot.store(fresh, std::memory_order_release);
    }
    return &scratch;
  }
  k = found->is_kernel ? kernel_handle{nullptr, reinterpret_cast<CUkernel>(found->key)}
                       : kernel_handle{reinterpret_cast<CUfunction>(found->key), nullptr};
  scratch.count = found->count;
  scratch.bytes = found->bytes;
  for (int i = 0; i < found->count; ++i) {
    scratch.offset[i] = found->pairs()[2 * i];
    scratch.size[i] = found->pairs()[2 * i + 1];
  }
  return &scratch;
}

void write_launch_parameters(thread_state* t, kernel_handle k, void** values, void** extra, bool& cut) {
  parameter_layout layout;
  if (known_layout(k, layout) == nullptr) {
    layout.count = -1;
    layout.bytes = 0;
  }
  write_function(t, k, layout);
  u8 block[max_parameter_bytes];
  const u32 bytes = pack_parameters(layout, values, extra, block, sizeof(block), cut);
  trace::payload_record head{};
  head.kind = trace::record_kind::params;
  head.key = k.key();
  write_payload(t, head, block, bytes);
}

} // namespace capturesan::shim
