#include "interpose/stack.h"

#include <link.h>
#include <unwind.h>

#include "interpose/real.h"
#include "interpose/writer.h"

namespace capturesan::shim {

namespace {

struct frames {
  u64 address[max_frames];
  int count;
};

_Unwind_Reason_Code on_frame(_Unwind_Context* context, void* to) {
  auto* f = static_cast<frames*>(to);
  const u64 address = _Unwind_GetIP(context);
  if (address == 0) {
    return _URC_END_OF_STACK;
  }
  if (own_address(reinterpret_cast<const void*>(address))) {
    return _URC_NO_REASON; // the hook itself
  }
  f->address[f->count++] = address;
  return f->count == max_frames ? _URC_END_OF_STACK : _URC_NO_REASON;
}

struct build_id {
  const u8* bytes = nullptr;
  u32 length = 0;
};

build_id find_build_id(const dl_phdr_info* info) {
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& ph = info->dlpi_phdr[i];
    if (ph.p_type != PT_NOTE) {
      continue;
    }
    const auto* at = reinterpret_cast<const u8*>(info->dlpi_addr + ph.p_vaddr);
    const u8* end = at + ph.p_memsz;
    while (at + sizeof(ElfW(Nhdr)) <= end) {
      const auto* note = reinterpret_cast<const ElfW(Nhdr)*>(at);
      const u8* name = at + sizeof(*note);
      const u8* payload = name + ((note->n_namesz + 3u) & ~3u);
      if (payload + note->n_descsz > end) {
        break;
      }
      if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 && std::memcmp(name, "GNU", 4) == 0) {
        return {payload, note->n_descsz};
      }
      at = payload + ((note->n_descsz + 3u) & ~3u);
    }
  }
  return {};
}

void write_module(thread_state* t, const dl_phdr_info* info) {
  u64 low = ~u64{0};
  u64 high = 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& ph = info->dlpi_phdr[i];
    if (ph.p_type == PT_LOAD) {
      const u64 from = info->dlpi_addr + ph.p_vaddr;
      low = from < low ? from : low;
      high = from + ph.p_memsz > high ? from + ph.p_memsz : high;
    }
  }
  if (high == 0 || !process->modules.insert(low ^ mix(high))) {
    return;
  }
  char exe[1024];
  const char* path = info->dlpi_name;
  if (path == nullptr || path[0] == 0) { // the program itself, or the vdso
    const long n = low == 0 ? -1 : raw(SYS_readlinkat, AT_FDCWD, word("/proc/self/exe"), word(exe), sizeof(exe) - 1);
    exe[n > 0 ? n : 0] = 0;
    path = exe;
  }
  const build_id id = find_build_id(info);
  trace::payload_record head{};
  head.kind = trace::record_kind::module;
  head.aux = static_cast<u16>(id.length);
  head.key = info->dlpi_addr;
  head.value = low;
  head.value2 = high;
  write_payload(t, head, id.bytes, id.length, path, ::strnlen(path, 1023));
}

int check_modules(dl_phdr_info* info, std::size_t size, void* to) {
  auto* t = static_cast<thread_state*>(to);
  const bool counts = size >= offsetof(dl_phdr_info, dlpi_subs) + sizeof(info->dlpi_subs);
  const u64 seen = counts ? info->dlpi_adds : 0;
  if (counts && seen == process->module_adds) {
    return 1; // nothing was loaded since: stop at the first object
  }
  write_module(t, info);
  return 0;
}

int count_modules(dl_phdr_info* info, std::size_t, void*) {
  process->module_adds = info->dlpi_adds;
  return 1;
}

void write_new_modules(thread_state* t) {
  // Another thread doing it serves us as well: records may come after the stack that needs them.
  if (!process->module_lock.try_lock()) {
    return;
  }
  if (::dl_iterate_phdr(check_modules, t) == 0) {
    ::dl_iterate_phdr(count_modules, nullptr);
  }
  process->module_lock.unlock();
}

} // namespace

u32 record_stack(thread_state* t) {
  frames f;
  f.count = 0;
  ::_Unwind_Backtrace(on_frame, &f);
  if (f.count == 0) {
    return 0;
  }
  u64 h = static_cast<u64>(f.count);
  for (int i = 0; i < f.count; ++i) {
    h = mix(h ^ f.address[i]);
  }
  const u32 id = static_cast<u32>(h) == 0 ? 1 : static_cast<u32>(h);
  if (process->stacks.insert(h == 0 ? 1 : h)) {
    write_new_modules(t);
    trace::payload_record head{};
    head.kind = trace::record_kind::stack;
    head.id = id;
    write_payload(t, head, f.address, sizeof(u64) * static_cast<std::size_t>(f.count));
  }
  return id;
}

} // namespace capturesan::shim
