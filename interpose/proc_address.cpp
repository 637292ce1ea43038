#include "interpose/proc_address.h"

#include <dlfcn.h>

#include "interpose/host_memory.h"
#include "interpose/writer.h"

namespace capturesan::shim {

namespace {

bool known(const char* symbol) {
  static const char* const names[] = {
#define KNOWN_CALL(symbol) #symbol,
#include "trace/known_calls.def"
  };
  for (const char* name : names) {
    if (std::strcmp(name, symbol) == 0) {
      return true;
    }
  }
  return false;
}

void name_uncovered(const char* symbol) {
  const errno_keeper keep;
  if (symbol == nullptr || known(symbol)) {
    return;
  }
  thread_state* t = enter_thread();
  if (t == nullptr) {
    return;
  }
  u64 h = 1;
  for (const char* c = symbol; *c != 0; ++c) {
    h = mix(h ^ static_cast<u8>(*c));
  }
  if (process->uncovered.insert(h | 1)) {
    const own_calls own;
    t->busy = 1;
    write_text(t, trace::text_role::uncovered, 1, symbol);
    t->busy = 0;
  }
}

void replace(const char* symbol, CUresult result, void** pfn) {
  if (result != CUDA_SUCCESS || pfn == nullptr || *pfn == nullptr || options.off) {
    return;
  }
  if (void* w = export_for(*pfn)) {
    *pfn = w;
  } else if (!own_address(*pfn)) {
    name_uncovered(symbol);
  }
}

} // namespace

CUresult CUDAAPI get_proc_address_v1(const char* symbol, void** pfn, int version, cuuint64_t flags) {
  resolve_driver();
  auto* fn = driver_function<decltype(cuGetProcAddress)>(call_id::cuGetProcAddress);
  if (fn == nullptr) {
    return missing_entry_point(call_id::cuGetProcAddress);
  }
  count_call(call_id::cuGetProcAddress);
  const CUresult r = fn(symbol, pfn, version, flags);
  replace(symbol, r, pfn);
  return r;
}

CUresult CUDAAPI get_proc_address_v2(const char* symbol, void** pfn, int version, cuuint64_t flags,
                                     CUdriverProcAddressQueryResult* status) {
  resolve_driver();
  auto* fn = driver_function<decltype(cuGetProcAddress_v2)>(call_id::cuGetProcAddress_v2);
  if (fn == nullptr) {
    return missing_entry_point(call_id::cuGetProcAddress_v2);
  }
  count_call(call_id::cuGetProcAddress_v2);
  const CUresult r = fn(symbol, pfn, version, flags, status);
  replace(symbol, r, pfn);
  return r;
}

} // namespace capturesan::shim

using namespace capturesan;
using namespace capturesan::shim;

namespace {

bool is_driver_name(const char* name) { return name != nullptr && name[0] == 'c' && name[1] == 'u'; }

// libc's functions, for the tail jumps below. Resolved at the first use of either.
void* libc_entry(const char* name) { return libc_dlsym(RTLD_NEXT, name); }

} // namespace

extern "C" {

__attribute__((visibility("hidden"))) void* capturesan_real_dlsym;
__attribute__((visibility("hidden"))) void* capturesan_real_dlopen;

// Decides what `dlsym` answers. Null: jump on to libc's dlsym with the program's own return address, which RTLD_NEXT
// and error messages depend on.
__attribute__((visibility("hidden"), used)) void* capturesan_dlsym_answer(void* handle, const char* name) {
  if (capturesan_real_dlsym == nullptr) {
    const errno_keeper keep;
    // libc_dlsym finds the libc function itself by version, so this cannot come back here.
    capturesan_real_dlsym = libc_entry("dlsym");
  }
  // Sanitizers look up the functions of libc that they stand in front of, and until they have them none of these can be
  // called: whoever asks for something else must find us asleep.
  if (!is_driver_name(name) || handle == RTLD_NEXT) {
    return nullptr;
  }
  const errno_keeper keep;
  start();
  if (options.off) {
    return nullptr;
  }
  void* at = libc_dlsym(handle, name);
  if (own_address(at)) {
    // The global scope begins with our own exports: a program that asks whether there is a driver must not find us
    // instead.
    at = libc_dlsym(RTLD_NEXT, name);
  }
  if (at == nullptr || !resolve_driver()) {
    return nullptr;
  }
  return export_for(at, name); // an equal name of another library has another address
}

// True if the program's dlsym would find nothing but our own export.
__attribute__((visibility("hidden"), used)) int capturesan_only_ours(void* handle, const char* name) {
  // The failing look-up comes last, so that dlerror has its message.
  return handle != RTLD_NEXT && is_driver_name(name) && !options.off && own_address(libc_dlsym(handle, name)) &&
                 libc_dlsym(RTLD_NEXT, name) == nullptr
             ? 1
             : 0;
}

// Flags that dlopen goes on with.
__attribute__((visibility("hidden"), used)) int capturesan_dlopen_flags(const char* path, int flags) {
  if (capturesan_real_dlopen == nullptr) {
    const errno_keeper keep;
    start();
    capturesan_real_dlopen = libc_entry("dlopen");
  }
  if ((flags & RTLD_DEEPBIND) == 0 || options.off) {
    return flags;
  }
  const errno_keeper keep;
  if (options.strip_deepbind) {
    return flags & ~RTLD_DEEPBIND;
  }
  if (thread_state* t = enter_thread()) {
    const own_calls own;
    t->busy = 1;
    write_text(t, trace::text_role::deepbind, 0, path == nullptr ? "" : path);
    t->busy = 0;
  }
  return flags;
}

// dladdr of a wrapper describes the driver function behind it, as it would without us.
__attribute__((visibility("hidden"), used)) const void* capturesan_described_address(const void* address) {
  const void* behind = own_address(address) ? driver_for(address) : nullptr;
  if (behind == nullptr && own_address(address)) {
    behind = libc_function_behind(address);
  }
  return behind == nullptr ? address : behind;
}

__attribute__((visibility("hidden"), used)) void* capturesan_libc_dladdr(int extended) {
  static std::atomic<void*> found[2];
  void* f = found[extended].load(std::memory_order_relaxed);
  if (f == nullptr) {
    f = libc_entry(extended != 0 ? "dladdr1" : "dladdr");
    found[extended].store(f, std::memory_order_relaxed);
  }
  return f;
}

__attribute__((visibility("default"))) int dladdr(const void* address, Dl_info* info) noexcept {
  using fn = int (*)(const void*, Dl_info*);
  auto f = reinterpret_cast<fn>(capturesan_libc_dladdr(0));
  return f == nullptr ? 0 : f(capturesan_described_address(address), info);
}
__attribute__((visibility("default"))) int dladdr1(const void* address, Dl_info* info, void** extra,
                                                   int flags) noexcept {
  using fn = int (*)(const void*, Dl_info*, void**, int);
  auto f = reinterpret_cast<fn>(capturesan_libc_dladdr(1));
  return f == nullptr ? 0 : f(capturesan_described_address(address), info, extra, flags);
}
}

// Tail jumps: libc looks at the return address (RTLD_NEXT, RPATH, namespaces), so it must be the program's.
#if defined(__x86_64__)
__asm__(R"(
.pushsection .text
.globl dlsym
.type dlsym, @function
.p2align 4
dlsym:
  endbr64
  push %rdi
  push %rsi
  sub $8, %rsp
  call capturesan_dlsym_answer
  add $8, %rsp
  pop %rsi
  pop %rdi
  test %rax, %rax
  jnz 1f
  push %rdi
  push %rsi
  sub $8, %rsp
  call capturesan_only_ours
  add $8, %rsp
  pop %rsi
  pop %rdi
  test %eax, %eax
  jnz 2f
  jmp *capturesan_real_dlsym(%rip)
2:
  xor %eax, %eax
1:
  ret
.size dlsym, .-dlsym
.globl dlopen
.type dlopen, @function
.p2align 4
dlopen:
  endbr64
  push %rdi
  push %rsi
  sub $8, %rsp
  call capturesan_dlopen_flags
  add $8, %rsp
  pop %rsi
  pop %rdi
  mov %eax, %esi
  jmp *capturesan_real_dlopen(%rip)
.size dlopen, .-dlopen
.popsection
)");
#elif defined(__aarch64__)
__asm__(R"(
.pushsection .text
.globl dlsym
.type dlsym, @function
.p2align 4
dlsym:
  stp x29, x30, [sp, #-32]!
  stp x0, x1, [sp, #16]
  mov x29, sp
  bl capturesan_dlsym_answer
  cbnz x0, 1f
  ldp x0, x1, [sp, #16]
  bl capturesan_only_ours
  cbnz w0, 2f
  ldp x0, x1, [sp, #16]
  ldp x29, x30, [sp], #32
  adrp x16, capturesan_real_dlsym
  ldr x16, [x16, :lo12:capturesan_real_dlsym]
  br x16
2:
  mov x0, #0
1:
  ldp x29, x30, [sp], #32
  ret
.size dlsym, .-dlsym
.globl dlopen
.type dlopen, @function
.p2align 4
dlopen:
  stp x29, x30, [sp, #-32]!
  stp x0, x1, [sp, #16]
  mov x29, sp
  bl capturesan_dlopen_flags
  mov w2, w0
  ldp x0, x1, [sp, #16]
  mov w1, w2
  ldp x29, x30, [sp], #32
  adrp x16, capturesan_real_dlopen
  ldr x16, [x16, :lo12:capturesan_real_dlopen]
  br x16
.size dlopen, .-dlopen
.popsection
)");
#endif
