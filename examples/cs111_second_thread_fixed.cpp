// The twin of cs111_second_thread: the refusal is noticed, and the copy is captured by another call.
//
// EXPECT: none
// CAPTURES: 1
// REPLAYS: 2
// EVENTS: 12
#include <thread>

#include "examples/example.h"

int main() {
  example::device device;
  CUstream stream = example::make_stream();
  CUdeviceptr source = example::allocate();
  CUdeviceptr target = example::allocate();
  CUDA_MEMCPY3D_BATCH_OP operation{};
  operation.src.type = operation.dst.type = CU_MEMCPY_OPERAND_TYPE_POINTER;
  operation.src.op.ptr.ptr = source;
  operation.dst.op.ptr.ptr = target;
  operation.extent = {example::bytes, 1, 1};
  operation.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;

  CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  std::thread helper([&] {
    CHECK(cuCtxSetCurrent(device.context));
    if (TRY(cuMemcpy3DBatchAsync(1, &operation, 0, stream)) != CUDA_SUCCESS)
      CHECK(cuMemcpyDtoDAsync(target, source, example::bytes, stream));
  });
  helper.join();
  CHECK(example::launch(device.add, stream, target, example::count, 2u));
  CUgraph graph = nullptr;
  CHECK(cuStreamEndCapture(stream, &graph));

  CUgraphExec exec = example::instantiate(graph);
  example::replay(exec, stream, 2);
  CHECK(cuGraphExecDestroy(exec));
  CHECK(cuGraphDestroy(graph));
}
