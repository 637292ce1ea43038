/* CS101: waits for the stream it captures. */
#include "driver.h"

int main(void) {
  handle stream = make_stream(), graph;
  capture_begin(stream, 0);
  stream_wait(stream);
  capture_end(stream, &graph);
  return 0;
}
