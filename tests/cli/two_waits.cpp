// As many waits inside captures as the argument says, each on a line of its own, all in one function.
#include <cstdlib>

#include "examples/example.h"

int main(int, char** arguments) {
  const int waits = std::atoi(arguments[1]);
  example::device device;
  CUstream stream = example::make_stream();
  CUgraph graph = nullptr;
  CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  if (waits > 0) TRY(cuStreamSynchronize(stream));
  TRY(cuStreamEndCapture(stream, &graph));
  CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  if (waits > 1) TRY(cuStreamSynchronize(stream));
  TRY(cuStreamEndCapture(stream, &graph));
}
