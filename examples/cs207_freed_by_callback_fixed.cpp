// The data of a captured host function belong to the graph: a user object frees them when the last graph that may run
// the function is gone.
//
// EXPECT: none
// CAPTURES: 1
// REPLAYS: 2
// EVENTS: 12
#include "examples/example.h"

namespace {

struct closure {
  int value;
};

void CUDA_CB callback(void* data) { ++static_cast<closure*>(data)->value; }
void CUDA_CB release(void* data) { delete static_cast<closure*>(data); }

} // namespace

int main() {
  example::device device;
  CUstream stream = example::make_stream();
  CUdeviceptr data = example::allocate();
  auto* held = new closure{7};

  CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  CHECK(example::launch(device.add, stream, data, example::count, 1u));
  CHECK(cuLaunchHostFunc(stream, callback, held));
  CUgraph graph = nullptr;
  CHECK(cuStreamEndCapture(stream, &graph));
  CUuserObject object = nullptr;
  CHECK(cuUserObjectCreate(&object, held, release, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
  CHECK(cuGraphRetainUserObject(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE));
  CUgraphExec exec = example::instantiate(graph);
  example::replay(exec, stream, 1);
  example::replay(exec, stream, 1);
  CHECK(cuGraphExecDestroy(exec));
  CHECK(cuGraphDestroy(graph));
}
