// One wrapper for every driver call. Its types come from cuda.h's declaration, its operands from calls.def; all work
// that does not depend on types is in record.cpp.
#pragma once

#include "interpose/node_params.h"
#include "interpose/operands.h"
#include "interpose/quick.h"
#include "interpose/real.h"
#include "interpose/state.h"
#include "interpose/tensor_maps.h"

namespace capturesan::shim {

struct call_frame {
  call_id id;
  call_class cls;
  trace::record_when when; // of the class
  bool in_window;          // a capture was open at entry
  bool first_launch;       // eager launch of a function never launched before
  CUresult result;
  thread_state* t; // null: nothing is recorded
  u64 begin, end;
  u64 stream; // as passed; the per-thread variants turn 0 into CU_STREAM_PER_THREAD
  u64 arg[3];
  u64 caller;         // return address
  u64 entry;          // stack pointer before the call
  void** arrays[2];   // launch: values, extra
  node_edit edit;     // exec_edit: the new parameters
  open_capture taken; // stream_destroy: what to put back if it is refused
};

// Where a hook was entered: return address, and the caller's stack pointer before the call.
struct call_site {
  u64 caller, stack_pointer;
};

// Resolves the entry point and the thread; false if the call is only to be passed on.
bool enter_call(call_frame& f);
// Right before and right after the real call. Neither changes errno or anything the program can see.
void before_call(call_frame& f);
void after_call(call_frame& f);

// What to answer if the driver has no such entry point: as a driver that is not there, or does not know the call.
CUresult missing_entry_point(call_id id);

// --cupti=verify counts every call.
inline void count_call(call_id id) {
  if ((attention.load(std::memory_order_relaxed) & attention_count) != 0) [[unlikely]] {
    process->counts[static_cast<std::size_t>(id)].fetch_add(1, std::memory_order_relaxed);
  }
}

inline void uncount_call(call_id id) {
  if ((attention.load(std::memory_order_relaxed) & attention_count) != 0) [[unlikely]] {
    process->counts[static_cast<std::size_t>(id)].fetch_sub(1, std::memory_order_relaxed);
  }
}

// Exact set of functions seen in an eager launch; a cache in front of process->launched, so that the common case costs
// a few cycles.
bool launched_before(u64 function);

template <call_id Id>
struct operands_of; // hooks.cpp, one per row of calls.def

template <call_id Id, class Fn>
struct hook;

template <call_id Id, class... A>
struct hook<Id, CUresult(A...)> {
  using fn_type = CUresult (*)(A...);
  static constexpr trace::call_info row = trace::info(Id);
  static constexpr trace::record_when when = trace::info(row.cls).record;
  // What is recorded only when refused is the same at level full.
  static constexpr u32 matters = (when == trace::record_when::refused ? ~static_cast<u32>(attention_full) : ~u32{0}) &
                                 ~static_cast<u32>(attention_off);
  static constexpr bool per_thread = trace::per_thread_variant(row.symbol);

  static CUresult CUDAAPI call(A... a) {
    if constexpr (row.cls == call_class::tensor_map) {
      const tensor_extent before = tensor_map_before(a...);
      const CUresult r = recorded(here(), a...);
      if (r == CUDA_SUCCESS) {
        tensor_map_made(before, a...);
      }
      return r;
    }
    if constexpr (when != trace::record_when::always) {
      // Acquire: whoever sees that the driver is resolved must see its entry points.
      if ((attention.load(std::memory_order_acquire) & matters) == 0) [[likely]] {
        if constexpr (row.cls == call_class::launch) {
          if (!launched_before(operands_of<Id>::a::before(std::tie(a...)))) {
            return recorded(here(), a...);
          }
        }
        return reinterpret_cast<fn_type>(real(Id))(a...);
      }
    }
    // Frameworks set the same context again and again; only a change is news.
    if constexpr (row.cls == call_class::context_set) {
      if (nothing_special()) [[likely]] {
        thread_state* t = quick_thread();
        if (t != nullptr && operands_of<Id>::a::before(std::tie(a...)) == t->context) {
          quick_event q{};
          q.begin = now_ticks();
          const CUresult r = reinterpret_cast<fn_type>(real(Id))(a...);
          if (r == CUDA_SUCCESS) [[likely]] {
            return r;
          }
          q.id = Id;
          q.arg[0] = t->context;
          q.end = now_ticks();
          return finish(t, here(), q, r, quick_result::eventful, a...);
        }
      }
    } else if constexpr (may_be_quick(row.cls)) {
      if (nothing_special()) [[likely]] {
        if (thread_state* t = quick_thread()) [[likely]] {
          return quick(t, here(), a...);
        }
      }
    }
    return recorded(here(), a...);
  }

  // As `recorded`, for a thread that quick_thread() let through.
  [[gnu::always_inline]] static CUresult quick(thread_state* t, call_site from, A... a) {
    using ops = operands_of<Id>;
    const auto args = std::tie(a...);
    quick_event q;
    q.id = Id;
    q.arg[0] = ops::a::before(args);
    if constexpr (row.cls == call_class::graph_launch) {
      q.arg[1] = from.caller;
      q.arg[2] = from.stack_pointer; // what lies below is gone
    } else {
      q.arg[1] = ops::b::before(args);
      q.arg[2] = ops::c::before(args);
    }
    q.stream = stream_of(a...);
    if (!quick_begin(t, q, row.cls)) [[unlikely]] {
      return recorded(from, a...);
    }
    const CUresult r = reinterpret_cast<fn_type>(real(Id))(a...);
    const quick_result how = quick_end(t, q, r, row.cls);
    if (how == quick_result::written) [[likely]] {
      return r;
    }
    return finish(t, from, q, r, how, a...);
  }

  // What is left to do for a call that began on the short way.
  [[gnu::noinline]] static CUresult finish(thread_state* t, call_site from, quick_event& q, CUresult r,
                                           quick_result how, A... a) {
    call_frame f{};
    f.id = Id;
    f.cls = row.cls;
    f.when = when;
    f.caller = from.caller;
    f.t = t;
    f.begin = q.begin;
    f.end = q.end;
    f.stream = q.stream;
    f.result = r;
    for (int i = 0; i < 3; ++i) {
      f.arg[i] = q.arg[i];
    }
    take_all_results(f, std::tie(a...));
    if (how == quick_result::eventful) {
      after_call(f);
    } else {
      for (int i = 0; i < 3; ++i) {
        q.arg[i] = f.arg[i];
      }
      write_quick(t, q, row.cls);
    }
    return r;
  }

  [[gnu::noinline]] static CUresult recorded(call_site from, A... a) {
    using ops = operands_of<Id>;
    call_frame f{};
    f.id = Id;
    f.cls = row.cls;
    f.when = when;
    f.caller = from.caller;
    f.entry = from.stack_pointer;
    if constexpr (row.cls == call_class::graph_launch) {
      f.arg[2] = from.stack_pointer; // what lies below is gone
    }
    const bool watched = enter_call(f);
    auto* fn = reinterpret_cast<fn_type>(real(Id));
    if (fn == nullptr) {
      return missing_entry_point(Id);
    }
    if (!watched) {
      return fn(a...);
    }
    const auto args = std::tie(a...);
    f.arg[0] = ops::a::before(args);
    f.arg[1] = ops::b::before(args);
    if constexpr (row.cls != call_class::graph_launch) {
      f.arg[2] = ops::c::before(args);
    }
    f.stream = stream_of(a...);
    if constexpr (row.cls == call_class::launch) {
      operand::take_arrays(f.arrays, a...);
    }
    if constexpr (row.cls == call_class::launch || row.cls == call_class::graph_edit) {
      (look_for_updatable(a), ...);
    }
    if constexpr (row.cls == call_class::exec_edit) {
      (take_edit(f.edit, a), ...);
    }
    before_call(f);
    f.result = fn(a...);
    f.end = now_ticks();
    take_all_results(f, args);
    after_call(f);
    return f.result;
  }

 private:
  static u64 stream_of(A... a) {
    const u64 stream = operand::stream_of(a...);
    return per_thread && stream == 0 ? per_thread_stream : stream;
  }

  template <class Args>
  static void take_all_results(call_frame& f, const Args& args) {
    using ops = operands_of<Id>;
    take_results<typename ops::a>(f, 0, args);
    if constexpr (row.cls != call_class::graph_launch) {
      take_results<typename ops::b>(f, 1, args);
      take_results<typename ops::c>(f, 2, args);
    }
  }

  [[gnu::always_inline]] static call_site here() {
    return {reinterpret_cast<u64>(__builtin_return_address(0)), reinterpret_cast<u64>(__builtin_dwarf_cfa())};
  }

  template <class Operand, class Args>
  static void take_results(call_frame& f, int i, const Args& args) {
    if (f.result == CUDA_SUCCESS || operand::valid_on_failure<Operand>) {
      f.arg[i] = Operand::after(args, f.arg[i]);
    }
  }
};

} // namespace capturesan::shim
