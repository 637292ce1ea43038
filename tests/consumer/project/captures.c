/* A capture without a mistake. */
#include <string.h>

#include "capturesan.h"
#include "driver.h"

int main(int argc, char** argv) {
  if (argc != 3 || strcmp(argv[1], "an argument") != 0) return 93;
  handle stream = make_stream(), graph;
  if (capture_begin(stream, 0) || capture_end(stream, &graph)) return 94;
  return stream_wait(stream);
}
