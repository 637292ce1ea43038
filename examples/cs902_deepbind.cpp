// A plugin is opened with RTLD_DEEPBIND: its calls go straight to the driver, past everything that was preloaded.
// CaptureSan cannot see them and says so, instead of calling the run clean.
//
// EXPECT: CS902
// CAPTURES: 1
// REPLAYS: 3
// EVENTS: 9
#include <dlfcn.h>

#include "examples/example.h"

int main() {
  example::device device;
  CUstream stream = example::make_stream();
  void* plugin = dlopen("$ORIGIN/libcs902_deepbind_plugin.so", RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND); // the mistake
  auto* allocate =
      reinterpret_cast<CUresult (*)(CUdeviceptr*, std::size_t)>(plugin ? dlsym(plugin, "plugin_allocate") : nullptr);
  if (!allocate) return 1;
  CUdeviceptr data = 0;
  CHECK(allocate(&data, example::bytes));

  CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  CHECK(example::launch(device.fill, stream, data, example::count, 1u));
  CUgraph graph = nullptr;
  CHECK(cuStreamEndCapture(stream, &graph));

  CUgraphExec exec = example::instantiate(graph);
  example::replay(exec, stream, 3);
  CHECK(cuGraphExecDestroy(exec));
  CHECK(cuGraphDestroy(graph));
}
