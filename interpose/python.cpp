#include "interpose/python.h"
#include "interpose/python_frames.h"

#include <dlfcn.h>

#include "interpose/real.h"
#include "interpose/writer.h"

namespace capturesan::shim {

namespace {

using thread_state_fn = void* (*)();            // PyGILState_GetThisThreadState
using version_fn = const char* (*)();           // Py_GetVersion
using dump_fn = void (*)(int fd, void* tstate); // _Py_DumpTraceback; PyUnstable_DumpTraceback returns a text, or null

struct interpreter {
  thread_state_fn this_thread;
  dump_fn dump;
  bool by_offsets; // no function, but a table of where its fields are
  bool told;       // that frames cannot be had
  u64 searched_at; // objects loaded when there was no Python yet
};
interpreter python;
spin_lock python_lock;

bool find_interpreter(thread_state* t) {
  locked guard(python_lock);
  if (python.dump != nullptr || python.by_offsets) {
    return true;
  }
  if (python.told) {
    return false;
  }
  const u64 loaded = objects_loaded();
  if (loaded != 0 && python.searched_at == loaded) {
    return false;
  }
  python.searched_at = loaded;
  python.this_thread = reinterpret_cast<thread_state_fn>(libc_dlsym(RTLD_DEFAULT, "PyGILState_GetThisThreadState"));
  if (python.this_thread == nullptr) {
    return false; // not a Python process, so far
  }
  for (const char* name : {"PyUnstable_DumpTraceback", "_Py_DumpTraceback"}) {
    python.dump = reinterpret_cast<dump_fn>(libc_dlsym(RTLD_DEFAULT, name));
    if (python.dump != nullptr) {
      return true;
    }
  }
  if (python_offsets_known()) {
    return python.by_offsets = true;
  }
  python.told = true;
  auto version = reinterpret_cast<version_fn>(libc_dlsym(RTLD_DEFAULT, "Py_GetVersion"));
  char note[96] = "no Python frames: they cannot be read in CPython ";
  const char* v = version == nullptr ? "?" : version();
  std::size_t at = std::strlen(note);
  for (; *v != 0 && *v != ' ' && at + 1 < sizeof(note); ++v) {
    note[at++] = *v;
  }
  note[at] = 0;
  write_text(t, trace::text_role::note, 0, note);
  return false;
}

// The interpreter prints to a descriptor only.
long dump_traceback(void* tstate, char* to, std::size_t room) {
  const long fd = raw(SYS_memfd_create, word("capturesan"), 1 /* MFD_CLOEXEC */);
  if (fd < 0) {
    return 0;
  }
  python.dump(static_cast<int>(fd), tstate);
  const long n = raw(SYS_pread64, fd, word(to), room, 0);
  raw(SYS_close, fd);
  return n;
}

} // namespace

namespace {

// Where CPython 3.11 and 3.12 keep the innermost frame; both were final when this was written. Later ones publish it.
//   PyThreadState::cframe (Include/cpython/pystate.h), _PyCFrame::current_frame (after a byte `use_tracing` in 3.11),
//   _PyInterpreterFrame::prev_instr (Include/internal/pycore_frame.h)
constexpr u64 cframe_offset = 56, instruction_offset = 56;
struct line_reader {
  thread_state_fn this_thread;
  u64 frame_offset;
  bool by_offsets;
};
line_reader line; // complete before line_known is set
std::atomic<bool> line_known;

const char* pointer_at(const void* object, u64 offset) {
  const char* p = nullptr;
  std::memcpy(&p, static_cast<const char*>(object) + offset, sizeof(p));
  return p;
}

} // namespace

void find_python_line() {
  auto version = reinterpret_cast<version_fn>(libc_dlsym(RTLD_DEFAULT, "Py_GetVersion"));
  auto this_thread = reinterpret_cast<thread_state_fn>(libc_dlsym(RTLD_DEFAULT, "PyGILState_GetThisThreadState"));
  if (version == nullptr || this_thread == nullptr) {
    return;
  }
  locked guard(python_lock);
  const char* text = version();
  const bool before_table = std::strncmp(text, "3.11.", 5) == 0 || std::strncmp(text, "3.12.", 5) == 0;
  if (line_known.load(std::memory_order_relaxed) || (!before_table && !python_offsets_known())) {
    return;
  }
  line = {this_thread, text[3] == '1' ? u64{8} : u64{0}, !before_table};
  line_known.store(true, std::memory_order_release);
}

u16 python_line() {
  const void* tstate = line_known.load(std::memory_order_acquire) ? line.this_thread() : nullptr;
  if (tstate == nullptr) {
    return 0;
  }
  u64 at = 0;
  if (line.by_offsets) {
    at = python_instruction(tstate);
  } else {
    const char* cframe = pointer_at(tstate, cframe_offset);
    const char* frame = cframe == nullptr ? nullptr : pointer_at(cframe, line.frame_offset);
    at = frame == nullptr ? 0 : reinterpret_cast<u64>(pointer_at(frame, instruction_offset));
  }
  const u64 mixed = (at >> 1) * 0x9E3779B97F4A7C15; // instructions are two bytes long
  return at == 0 ? 0 : static_cast<u16>(mixed >> 48 | 1);
}

void write_python_stack(thread_state* t) {
  if (!find_interpreter(t)) {
    return;
  }
  void* tstate = python.this_thread();
  if (tstate == nullptr) {
    return; // a thread that Python does not know
  }
  char text[4096];
  const long n = python.by_offsets ? static_cast<long>(write_python_frames(tstate, text, sizeof(text)))
                                   : dump_traceback(tstate, text, sizeof(text));
  if (n <= 0) {
    return;
  }
  trace::payload_record head{};
  head.kind = trace::record_kind::python_stack;
  write_payload(t, head, text, static_cast<std::size_t>(n));
}

} // namespace capturesan::shim
