#include "interpose/python_frames.h"

#include <dlfcn.h>

#include "interpose/real.h"

namespace capturesan::shim {

namespace {

// Layout of the table in CPython 3.13 (Include/internal/pycore_runtime.h); every member is 64 bits wide.
struct debug_offsets {
  char cookie[8]; // "xdebugpy"
  u64 version;    // as PY_VERSION_HEX
  u64 free_threaded;
  u64 runtime_state[3], interpreter_state[13];
  struct {
    u64 size, prev, next, interp, current_frame, thread_id, native_thread_id, datastack_chunk, status;
  } thread;
  struct {
    u64 size, previous, executable, instr_ptr, localsplus, owner;
  } frame;
  struct {
    u64 size, filename, name, qualname, linetable, firstlineno, argcount, localsplusnames, localspluskinds,
        co_code_adaptive;
  } code;
  struct {
    u64 size, ob_type;
  } object;
  u64 type[4], tuple[3], list[3], dict[3], floating[2], integer[3];
  struct {
    u64 size, ob_size, ob_sval;
  } bytes;
  struct {
    u64 size, state, length, asciiobject_size;
  } unicode;
};

constexpr u64 known_minor = 0x030d;
constexpr int most_frames = 64;

const debug_offsets* offsets;
const void* code_type;

template <class T>
T at(const void* object, u64 offset) {
  T value;
  std::memcpy(&value, static_cast<const char*>(object) + offset, sizeof value);
  return value;
}

struct output {
  char* to;
  std::size_t room, used = 0;

  void put(char c) {
    if (used < room) {
      to[used++] = c;
    }
  }
  void put(const char* text) {
    for (; *text != 0; ++text) {
      put(*text);
    }
  }
  void put(u32 number) {
    char digits[12];
    int n = 0;
    do {
      digits[n++] = static_cast<char>('0' + number % 10);
      number /= 10;
    } while (number != 0);
    while (n > 0) {
      put(digits[--n]);
    }
  }
};

// A str. Only ASCII ones have their characters there; of others something unreadable of the same length is shown.
void put_text(output& out, const void* text) {
  constexpr u64 most = 512;
  if (text == nullptr) {
    out.put("???");
    return;
  }
  u64 n = at<u64>(text, offsets->unicode.length);
  n = n < most ? n : most;
  for (u64 i = 0; i < n; ++i) {
    const char c = at<char>(text, offsets->unicode.asciiobject_size + i);
    out.put(c >= 0x20 && c < 0x7f && c != '"' ? c : '?');
  }
}

// One number of a line table: six bits a byte, the lowest first.
u32 read_number(const unsigned char*& p, const unsigned char* end) {
  u32 value = 0;
  for (int shift = 0; p < end && shift < 30; shift += 6) {
    const unsigned char b = *p++;
    value |= static_cast<u32>(b & 63) << shift;
    if ((b & 64) == 0) {
      break;
    }
  }
  return value;
}

// The line of the instruction `where` bytes into the code, by its location table (CPython's
// InternalDocs/code_objects.md). 0 = it has none.
u32 line_of(const void* code, u64 where) {
  const void* table = at<const void*>(code, offsets->code.linetable);
  if (table == nullptr) {
    return 0;
  }
  const u64 size = at<u64>(table, offsets->bytes.ob_size);
  const auto* p = static_cast<const unsigned char*>(table) + offsets->bytes.ob_sval;
  const unsigned char* const end = p + size;
  constexpr unsigned long_form = 14, no_columns = 13, one_line = 10, none = 15;
  int line = at<int>(code, offsets->code.firstlineno);
  u64 start = 0;
  while (p < end) {
    const unsigned head = *p++;
    const unsigned form = (head >> 3) & 15;
    const u64 next = start + ((head & 7) + 1) * 2;
    if (form == long_form || form == no_columns) {
      const u32 n = read_number(p, end);
      line += (n & 1) != 0 ? -static_cast<int>(n >> 1) : static_cast<int>(n >> 1);
    } else if (form >= one_line && form < no_columns) {
      line += static_cast<int>(form - one_line);
    }
    if (where < next) {
      return form == none || line < 0 ? 0 : static_cast<u32>(line);
    }
    start = next;
    while (p < end && (*p & 128) == 0) { // the rest of the entry: columns
      ++p;
    }
  }
  return 0;
}

} // namespace

bool python_offsets_known() {
  const auto* table = static_cast<const debug_offsets*>(libc_dlsym(RTLD_DEFAULT, "_PyRuntime"));
  code_type = libc_dlsym(RTLD_DEFAULT, "PyCode_Type");
  if (table == nullptr || code_type == nullptr || std::memcmp(table->cookie, "xdebugpy", 8) != 0 ||
      table->version >> 16 != known_minor || table->object.size > table->bytes.size ||
      table->unicode.asciiobject_size >= table->unicode.size) {
    return false;
  }
  offsets = table;
  return true;
}

u64 python_instruction(const void* thread_state) {
  const void* frame = at<const void*>(thread_state, offsets->thread.current_frame);
  return frame == nullptr ? 0 : at<u64>(frame, offsets->frame.instr_ptr);
}

std::size_t write_python_frames(const void* thread_state, char* to, std::size_t room) {
  output out{to, room};
  const void* frame = at<const void*>(thread_state, offsets->thread.current_frame);
  for (int i = 0; frame != nullptr && i < most_frames && out.used < room; ++i) {
    const void* code = at<const void*>(frame, offsets->frame.executable);
    // Frames of the interpreter itself have no code object.
    if (code != nullptr && at<const void*>(code, offsets->object.ob_type) == code_type) {
      const u64 where =
          at<u64>(frame, offsets->frame.instr_ptr) - (reinterpret_cast<u64>(code) + offsets->code.co_code_adaptive);
      const std::size_t before = out.used;
      out.put("  File \"");
      put_text(out, at<const void*>(code, offsets->code.filename));
      out.put("\", line ");
      out.put(line_of(code, where));
      out.put(" in ");
      put_text(out, at<const void*>(code, offsets->code.name));
      out.put('\n');
      if (out.used == room) {
        return before; // cut: without the last line
      }
    }
    frame = at<const void*>(frame, offsets->frame.previous);
  }
  return out.used;
}

} // namespace capturesan::shim
