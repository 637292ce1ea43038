// The capture probe: what each driver call does to an open capture, as a table. One program for both drivers: it knows
// the driver API only, and links against nothing else.
//
// A cell: a stream captures and holds one kernel node; the call is made, on the same or on another thread; then one
// more kernel goes to the capturing stream, and the capture is ended. All that is made for a cell is made anew.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <vector>

namespace probe {

inline constexpr std::size_t small = 64, page = 4096, large = 1 << 20, granule = 2 << 20;

// Ends the program if set-up fails: no cell would mean anything.
void require(CUresult result, const char* what);
#define REQUIRE(call) probe::require((call), #call)

// The device code: `k(unsigned*)`.
extern const char* const kernel_text;

// One device with its context, its kernel and buffers; lives as long as the program.
struct station {
  CUdevice device = 0;
  CUcontext context = nullptr;
  CUmodule module = nullptr;
  CUfunction kernel = nullptr;
  CUdeviceptr buffer = 0;
  CUmemoryPool pool = nullptr;

  explicit station(int ordinal);
  CUresult launch(CUstream stream) const;
};

// What one cell works on.
struct bench {
  const station& home;
  const station* peer; // the second device, in the table of two
  CUstream capturing = nullptr, other = nullptr, nonblocking = nullptr, peer_stream = nullptr;
  CUevent eager = nullptr, captured = nullptr, never = nullptr, second = nullptr, peer_eager = nullptr,
          peer_event = nullptr;
  CUdeviceptr victim = 0, memory = 0; // `memory` is freed by nobody
  void *pinned = nullptr, *pageable = nullptr, *registered = nullptr, *unregistered = nullptr;
  CUgraphExec empty_exec = nullptr;
  CUstream third = nullptr;

  bench(const station& home_station, const station* peer_station, unsigned capture_stream_flags);
  ~bench();
  bench(const bench&) = delete;
  bench& operator=(const bench&) = delete;

  CUresult launch(CUstream stream) const { return home.launch(stream); }
  CUresult mark() const { return cuEventRecord(captured, capturing); }
  // The non-blocking stream joins the capture.
  CUresult fork() const;
};

struct call {
  const char* name; // as in the measured tables
  CUresult (*make)(bench&);
};

// Runs `body` while the thread has another interaction mode with captures.
template <class F>
CUresult with_mode(CUstreamCaptureMode mode, F&& body) {
  cuThreadExchangeStreamCaptureMode(&mode);
  const CUresult result = body();
  cuThreadExchangeStreamCaptureMode(&mode);
  return result;
}

// Makes each step until one fails.
template <class... F>
CUresult in_turn(F&&... steps) {
  CUresult result = CUDA_SUCCESS;
  (void)(((result = steps()) == CUDA_SUCCESS) && ...);
  return result;
}

// The tables, in the order of the measured rows where it matters to nobody.
extern const std::vector<call> wait_calls;
extern const std::vector<call> memory_calls;
extern const std::vector<call> work_calls;
extern const std::vector<call> capture_calls;
extern const std::vector<call> object_calls;
extern const std::vector<call> two_device_calls;

} // namespace probe
