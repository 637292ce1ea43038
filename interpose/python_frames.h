// Python frames of CPython versions that export no function to print them but publish where their fields are: the table
// `_Py_DebugOffsets` at the start of `_PyRuntime`, made for debuggers and profilers outside of the process. Read here
// from inside, on the thread itself: its own frames do not change meanwhile, and the GIL is not needed.
#pragma once

#include "interpose/hook.h"

namespace capturesan::shim {

// Whether this interpreter has such a table, of a version whose layout is known (3.13).
bool python_offsets_known();

// Writes lines `  File "<file>", line <n> in <function>`, innermost first, as many as fit. `thread_state` is the
// PyThreadState of the calling thread. Returns the bytes written.
std::size_t write_python_frames(const void* thread_state, char* to, std::size_t room);

// The instruction that the innermost frame is at; 0 if there is none.
u64 python_instruction(const void* thread_state);

} // namespace capturesan::shim
