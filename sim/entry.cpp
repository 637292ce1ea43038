#include "sim/entry.h"

namespace capturesan::sim {

call_scope::call_scope(call_id id) : answer_(answer_of(id)), lock_(state().lock, std::defer_lock) {
  auto& self = this_thread();
  outer_ = self.held;
  outer_per_thread_ = self.per_thread_streams;
  if (outer_ && outer_->owns_lock()) return; // a signal handler inside another call; see enter()
  lock_.lock();
  self.held = &lock_;
  self.per_thread_streams = answer_.per_thread;
}

// A host function may have called from inside another call: that one goes on with what it had.
call_scope::~call_scope() {
  auto& self = this_thread();
  self.held = outer_;
  self.per_thread_streams = outer_per_thread_;
}

void call_scope::see(CUstream& stream) {
  if (!state().initialised) return;
  const bool named = stream && stream != CU_STREAM_LEGACY && stream != CU_STREAM_PER_THREAD;
  if (!named && !current_context()) {
    no_context_ = true;
    return;
  }
  stream = stream_of(stream);
  if (!stream && !bad_) bad_ = CUDA_ERROR_INVALID_HANDLE;
  if (stream && !operands_.stream) operands_.stream = stream;
}

// The body resolves the stream again; here it is only looked at.
void call_scope::see(const CUlaunchConfig*& config) {
  if (!config) {
    bad_ = CUDA_ERROR_INVALID_VALUE;
    return;
  }
  CUstream stream = config->hStream;
  see(stream);
}

void call_scope::see(CUevent& event) {
  see_handle(event, CUDA_ERROR_INVALID_HANDLE);
  if (bad_) return;
  if (events_ < operands_.events.size()) operands_.events[events_++] = event;
  owner_ = event->context;
}

void call_scope::see(CUmodule& module) {
  see_handle(module, CUDA_ERROR_INVALID_HANDLE);
  if (!bad_) owner_ = module->context;
}

void call_scope::see(CUfunction& function) {
  if (!bad_ && !is_live(function) && !is_live(reinterpret_cast<CUkernel>(function))) bad_ = CUDA_ERROR_INVALID_HANDLE;
}

void call_scope::see(CUcontext& context) {
  if (context) see_handle(context, CUDA_ERROR_INVALID_CONTEXT);
  operands_.context = context;
}

void call_scope::see(CUmemoryPool& pool) {
  if (pool) see_handle(pool, CUDA_ERROR_INVALID_VALUE);
}

CUresult call_scope::enter() {
  if (!lock_.owns_lock()) return CUDA_ERROR_NOT_PERMITTED; // the state is being changed below us
  if (answer_.context == context_use::early) return CUDA_SUCCESS;
  if (!state().initialised || state().forked) return CUDA_ERROR_NOT_INITIALIZED;
  if (answer_.context == context_use::current || answer_.context == context_use::wait) {
    // A stream that the program made brings its context along.
    CUcontext context = operands_.context  ? operands_.context
                        : operands_.stream ? operands_.stream->context
                                           : current_context();
    if (no_context_ || !context)
      return current_is_destroyed() ? CUDA_ERROR_CONTEXT_IS_DESTROYED : CUDA_ERROR_INVALID_CONTEXT;
    operands_.context = context;
    if (context->fault) return context->fault;
  }
  if (bad_) return bad_;
  if (owner_ && owner_->fault) return owner_->fault;
  if (answer_.stream == stream_use::host) operands_.stream = default_stream(answer_.per_thread);
  return admit(answer_, operands_);
}

} // namespace capturesan::sim
