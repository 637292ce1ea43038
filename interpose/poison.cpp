#include "interpose/poison.h"

#include "interpose/blocks.h"
#include "interpose/hook.h"
#include "interpose/range_index.h"
#include "interpose/window.h"
#include "interpose/writer.h"

namespace capturesan::shim {

namespace {

constexpr unsigned char not_a_number = 0xff; // all bits set is a NaN in every floating-point format

using allocation_index = range_index<u64{1} << 29>;
std::atomic<allocation_index*> allocations;
std::atomic<u64> filled, left; // referred to by a graph and freed

allocation_index* index_of(bool make) {
  allocation_index* there = allocations.load(std::memory_order_acquire);
  if (there != nullptr || !make) {
    return there;
  }
  const long at = raw(SYS_mmap, 0, sizeof(allocation_index), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == -1) {
    return nullptr;
  }
  raw(SYS_madvise, at, sizeof(allocation_index), MADV_WIPEONFORK);
  if (!allocations.compare_exchange_strong(there, reinterpret_cast<allocation_index*>(at))) {
    raw(SYS_munmap, at, sizeof(allocation_index));
    return there;
  }
  return reinterpret_cast<allocation_index*>(at);
}

// The memory's context must be current: a fill from elsewhere would order itself with other work.
bool context_is_current(u64 address) {
  auto* current = driver_function<decltype(cuCtxGetCurrent)>(call_id::cuCtxGetCurrent);
  auto* ask = driver_function<decltype(cuPointerGetAttribute)>(call_id::cuPointerGetAttribute);
  CUcontext now = nullptr;
  CUcontext owner = nullptr;
  return current != nullptr && ask != nullptr && current(&now) == CUDA_SUCCESS &&
         ask(&owner, CU_POINTER_ATTRIBUTE_CONTEXT, address) == CUDA_SUCCESS && (owner == nullptr || owner == now);
}

// cuMemFree: after everything that ran on the device, as it must not be in use any more.
bool fill_now(u64 address, u64 bytes) {
  auto* wait = driver_function<decltype(cuCtxSynchronize)>(call_id::cuCtxSynchronize);
  auto* set = driver_function<decltype(cuMemsetD8_v2)>(call_id::cuMemsetD8_v2);
  return wait != nullptr && set != nullptr && wait() == CUDA_SUCCESS &&
         set(address, not_a_number, bytes) == CUDA_SUCCESS && wait() == CUDA_SUCCESS;
}

// cuMemFreeAsync: in its stream, which comes after every other use, or the free itself would be wrong.
bool fill_in_stream(u64 address, u64 bytes, u64 stream) {
  auto* set = driver_function<decltype(cuMemsetD8Async)>(call_id::cuMemsetD8Async);
  return set != nullptr && set(address, not_a_number, bytes, reinterpret_cast<CUstream>(stream)) == CUDA_SUCCESS;
}

} // namespace

void poison_allocated(u64 address, u64 bytes) {
  if (allocation_index* all = index_of(true)) {
    all->put(address, bytes);
  }
}

void poison_note_address(u64 address) {
  if (allocation_index* all = index_of(false)) {
    if (auto* s = all->find(address)) {
      s->add_flags(1);
    }
  }
}

void poison_before_free(const call_frame& f) {
  allocation_index* all = index_of(false);
  auto* s = all == nullptr ? nullptr : all->at(f.arg[0]);
  const u64 bytes = s == nullptr ? 0 : s->bytes();
  if (bytes == 0) {
    return;
  }
  const bool referred_to = s->flags() != 0 && graphs_alive();
  if (f.in_window) { // a wait would break the capture; a free in one is a node, or refused
    left.fetch_add(referred_to ? 1 : 0, std::memory_order_relaxed);
    return;
  }
  all->remove(*s);
  if (!referred_to) {
    return;
  }
  const bool async = f.id == call_id::cuMemFreeAsync || f.id == call_id::cuMemFreeAsync_ptsz;
  const bool done =
      context_is_current(f.arg[0]) && (async ? fill_in_stream(f.arg[0], bytes, f.stream) : fill_now(f.arg[0], bytes));
  (done ? filled : left).fetch_add(1, std::memory_order_relaxed);
}

void poison_block_skipped() { left.fetch_add(1, std::memory_order_relaxed); }

void write_poison_counts() {
  thread_state* t = !options.poison || process->session.load() == 0 ? nullptr : enter_thread();
  if (t == nullptr || t->busy != 0) {
    return;
  }
  const own_calls own;
  char text[160] = "poison: ";
  const auto append = [&](const char* s) { std::strncat(text, s, sizeof(text) - std::strlen(text) - 1); };
  const auto number = [&](u64 n) {
    char digits[24];
    int at = 23;
    digits[at] = 0;
    do {
      digits[--at] = static_cast<char>('0' + n % 10);
    } while ((n /= 10) != 0);
    append(digits + at);
  };
  number(filled.load());
  append(" pieces of memory that a graph refers to were filled before they were freed, ");
  number(left.load());
  append(" were not (captures, other contexts, blocks of a framework)");
  t->busy = 1;
  write_text(t, trace::text_role::note, 0, text);
  t->busy = 0;
}

} // namespace capturesan::shim
