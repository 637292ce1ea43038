// What a call does to captures: four properties a call, one row a symbol in answers.def. Everything the state machine
// of capture.h refuses follows from these and from the state (mode, thread, stream flags, device); no call has a
// special case there.
#pragma once

#include "trace/call.h"

#include <array>
#include <cstdint>

namespace capturesan::sim {

// Whether the call may be made while a capture is open that its mode protects from the calling thread.
enum class safety : std::uint8_t { safe, unsafe };

// What the call does with its stream.
enum class stream_use : std::uint8_t {
  none,
  work,    // puts work on it: becomes a node if the stream captures
  wait,    // waits for it, or asks whether it is done
  refused, // cannot be captured: invalidates the capture of the stream
  dropped, // cannot be captured: refused, but the capture goes on without it
  look,    // asks about the capture itself
  shape,   // begins or ends a capture on it, or changes what it waits for
  host     // works on the default stream without naming it, and the host waits
};

// What the call does with its events.
enum class event_use : std::uint8_t { none, wait, time };

// What the call does with the current context.
enum class context_use : std::uint8_t {
  early,   // works before cuInit
  none,    // needs no current context
  current, // needs a current context
  wait     // acts on all work of the context
};

struct answer {
  bool implemented = false;
  safety safe = safety::safe;
  stream_use stream = stream_use::none;
  event_use event = event_use::none;
  context_use context = context_use::none;
  bool per_thread = false; // stream 0 is the calling thread's own default stream
};

using trace::call_id;

constexpr std::array<answer, trace::call_count> make_answers() {
  std::array<answer, trace::call_count> all{};
#define ROW(symbol, safety_, stream_, event_, context_, per_thread_)                                                   \
  all[static_cast<std::size_t>(call_id::symbol)] = {                                                                   \
      true, safety::safety_, stream_use::stream_, event_use::event_, context_use::context_, per_thread_};
#define ANSWER(symbol, s, u, e, c) ROW(symbol, s, u, e, c, false)
#define ANSWER_PTSZ(symbol, s, u, e, c) ROW(symbol, s, u, e, c, false) ROW(symbol##_ptsz, s, u, e, c, true)
#define ANSWER_PTDS(symbol, s, u, e, c) ROW(symbol, s, u, e, c, false) ROW(symbol##_ptds, s, u, e, c, true)
#define ANSWER_AS(symbol, body, s, u, e, c) ROW(symbol, s, u, e, c, false)
#include "sim/answers.def"
#undef ROW
  return all;
}

inline constexpr std::array<answer, trace::call_count> answers = make_answers();

constexpr const answer& answer_of(call_id id) { return answers[static_cast<std::size_t>(id)]; }

} // namespace capturesan::sim
