// Python frames of the calling thread, read without taking the GIL: the thread is inside a driver call, so its frames
// stand still.
#pragma once

#include "interpose/state.h"

namespace capturesan::shim {

// Writes a python_stack record for the event that follows. Nothing happens in a process, or on a thread, without
// Python. Works where CPython exports a dump function (3.11, 3.12, and from the version that has
// PyUnstable_DumpTraceback); for others a note says so.
void write_python_stack(thread_state* t);

// Which instruction of a Python program the calling thread is at, in its innermost frame: the same number for the same
// one as long as its code object lives; seldom for another one too. 0 = no Python here, or a CPython whose frames are
// not known (3.11 to 3.13 are). A few loads, no lock; call find_python_line() once before.
void find_python_line();
u16 python_line();

} // namespace capturesan::shim
