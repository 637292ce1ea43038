// Writes records into the mapped trace file. Never blocks on I/O in the steady state, never allocates from the heap,
// never fails loudly: what cannot be written is counted in the file header.
#pragma once

#include "interpose/state.h"

namespace capturesan::shim {

inline void* slot_of(trace::chunk_header* c, std::size_t slot) {
  return reinterpret_cast<u8*>(c) + slot * trace::slot_bytes;
}

// Opens the file of this process and maps its header. Called once per process under process->file_lock. False: nothing
// will be recorded.
bool open_trace();

// Space for a record of `slots` slots in the thread's chunk, zeroed; null if there is none (counted as lost). The
// record becomes visible with commit(). One thread writes one record at a time.
void* reserve(thread_state* t, std::size_t slots);
void* reserve_unset(thread_state* t, std::size_t slots); // the same, for who writes every byte of it
void commit(thread_state* t, std::size_t slots);

// Counts records that could not be written.
void count_lost(trace::lost_why why, u64 records);

// A record with a payload, cut at what a chunk can hold; see trace::payload_record. Returns false if it was cut or
// lost.
bool write_payload(thread_state* t, trace::payload_record head, const void* first, std::size_t first_bytes,
                   const void* second = nullptr, std::size_t second_bytes = 0);
void write_text(thread_state* t, trace::text_role role, u64 key, const char* text);

// Says that the thread ended.
void write_thread_end(thread_state* t);

// Puts the thread's chunk back for others. The thread may come back later.
void release_thread(thread_state* t);

// A chunk whose first record names the thread `t`; sets t->chunk. False if none can be had.
bool take_chunk(thread_state* t);

// Stores a second pair of clock readings, so that ticks convert exactly.
void refresh_clock();

} // namespace capturesan::shim
