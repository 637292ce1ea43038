/* The few driver calls that the programs use, by dlopen: a consumer without CUDA headers. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

typedef void* handle;
static int (*init)(unsigned);
static int (*context_retain)(handle*, int);
static int (*context_set)(handle);
static int (*stream_create)(handle*, unsigned);
static int (*capture_begin)(handle, int);
static int (*capture_end)(handle, handle*);
static int (*stream_wait)(handle);

static void* must_find(void* library, const char* name) {
  void* found = dlsym(library, name);
  if (!found) exit(90);
  return found;
}

static void load_driver(void) {
  void* library = dlopen("libcuda.so.1", RTLD_NOW);
  if (!library) exit(91);
  *(void**)&init = must_find(library, "cuInit");
  *(void**)&context_retain = must_find(library, "cuDevicePrimaryCtxRetain");
  *(void**)&context_set = must_find(library, "cuCtxSetCurrent");
  *(void**)&stream_create = must_find(library, "cuStreamCreate");
  *(void**)&capture_begin = must_find(library, "cuStreamBeginCapture_v2");
  *(void**)&capture_end = must_find(library, "cuStreamEndCapture");
  *(void**)&stream_wait = must_find(library, "cuStreamSynchronize");
}

static handle make_stream(void) {
  handle context, stream;
  load_driver();
  if (init(0) || context_retain(&context, 0) || context_set(context) || stream_create(&stream, 1)) exit(92);
  return stream;
}
