// Blocks of PyTorch's caching allocator. It recycles memory without a driver call, but reports each block that it hands
// out and takes back to a profiler through c10::reportMemoryUsageToProfiler, across a library boundary: the shim's
// definition of that function comes first and forwards to the original. Thousands of blocks a step are kept in a table
// and not recorded; an event is written only for blocks that a live graph refers to, and for those that come to lie
// where such a block was.
#pragma once

#include "interpose/node_params.h"

namespace capturesan::shim {

// What a node refers to, while the nodes of a graph are being written: writes a block record for each block that no
// graph has referred to before. Before the event, like all side records.
void note_operands(node_writer& w, const node_out& out);

// An answer of cuStreamGetCaptureInfo or cuStreamIsCapturing: PyTorch asks right before it chooses the pool.
void note_capture_answer(thread_state* t, bool active);

// Executable graphs that are alive; with the last one goes what is remembered of them.
void exec_made();
void exec_gone();
bool graphs_alive();

// At exit, and before the first graph: what could not be followed.
void write_block_losses();
void describe_framework(thread_state* t);

} // namespace capturesan::shim
