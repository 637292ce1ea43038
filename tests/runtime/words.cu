// One graph with one kernel that gets the address of a freed buffer, in one of several ways. Argument: which.
//   used          a struct's pointer, read and written by every thread
//   flagged       the same behind a flag in the struct that is set;     unflagged: ... that is not
//   counted       the same, as many elements as the struct says;        uncounted: ... none
//   gathered      the same, at a place that is read from other memory
//   one_warp      only the second warp uses it
//   unused        the kernel does not look at the word
//   limit         the word is a number that an index is compared with
//   index         the word is a number whose last bits are an index
//   stored        the word is written to memory as it is
//   both_or_none  which of two pointers is used is read from memory
//   neighbour     no struct: a parameter that is the end of another one's buffer, and is used
//   last          no struct: a parameter that is the end of the first one's buffer, and means just that
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>

#define CHECK(call)                                                                                                    \
  do {                                                                                                                 \
    if (const cudaError_t e = (call); e != cudaSuccess) {                                                              \
      std::printf("line %d: %s\n", __LINE__, cudaGetErrorName(e));                                                     \
      std::exit(1);                                                                                                    \
    }                                                                                                                  \
  } while (false)

struct work {
  float* data;
  unsigned* extra;
  std::size_t word;
  int flag;
  int count;
};

__global__ void used(work w) { w.extra[threadIdx.x] += 1; }
__global__ void flagged(work w) {
  float v = w.data[threadIdx.x];
  if (w.flag != 0) v += static_cast<float>(w.extra[threadIdx.x]);
  w.data[threadIdx.x] = v;
}
__global__ void counted(work w) {
  w.data[threadIdx.x] = 1;
  for (int i = static_cast<int>(threadIdx.x); i < w.count; i += static_cast<int>(blockDim.x)) w.extra[i] = 2;
}
__global__ void gathered(work w) { w.data[threadIdx.x] = static_cast<float>(w.extra[static_cast<int>(w.data[0])]); }
__global__ void one_warp(work w) {
  if (threadIdx.x / 32 == 1) w.extra[threadIdx.x] = 3;
}
__global__ void unused(work w) { w.data[threadIdx.x] = 4; }
__global__ void limit(work w) {
  if (threadIdx.x < w.word) w.data[threadIdx.x] = 5;
}
__global__ void index(work w) { w.data[w.word % 64] = 6; }
__global__ void stored(work w) { *reinterpret_cast<std::size_t*>(w.data) = w.word; }
__global__ void both_or_none(work w) {
  if (w.data[1] != 0) w.extra[threadIdx.x] = 7;
}
__global__ void neighbour(const unsigned* from, unsigned* to) { to[threadIdx.x] = from[threadIdx.x]; }
__global__ void last(unsigned* first, const unsigned* end) {
  for (unsigned* p = first + threadIdx.x; p < end; p += blockDim.x) *p = 8;
}

constexpr std::size_t bytes = 4096;

template <class T>
T* allocate() {
  void* p = nullptr;
  CHECK(cudaMalloc(&p, bytes));
  CHECK(cudaMemset(p, 0, bytes));
  return static_cast<T*>(p);
}

int main(int argc, char** argv) {
  const char* way = argc > 1 ? argv[1] : "used";
  const auto is = [&](const char* name) { return std::strcmp(way, name) == 0; };
  auto* data = allocate<float>();
  auto* doomed = allocate<unsigned>();
  unsigned* before = nullptr; // ends where `doomed` begins
  if (is("neighbour") || is("last")) {
    for (int tries = 0; before == nullptr && tries < 64; ++tries) {
      auto* next = allocate<unsigned>();
      if (doomed + bytes / sizeof(unsigned) == next) before = doomed;
      doomed = next;
    }
    if (before == nullptr) {
      std::printf("no two buffers lie side by side\n");
      return 77;
    }
  }
  work w{};
  w.data = data;
  w.extra = doomed;
  w.count = is("counted") ? 64 : 0;
  w.flag = is("flagged") ? 1 : 0;
  if (is("limit") || is("index") || is("stored")) {
    w.word = reinterpret_cast<std::size_t>(doomed);
    w.extra = nullptr;
  }

  cudaStream_t stream = nullptr;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  const auto launch = [&] {
    const dim3 grid(1), block(64);
    if (is("used")) used<<<grid, block, 0, stream>>>(w);
    if (is("flagged") || is("unflagged")) flagged<<<grid, block, 0, stream>>>(w);
    if (is("counted") || is("uncounted")) counted<<<grid, block, 0, stream>>>(w);
    if (is("gathered")) gathered<<<grid, block, 0, stream>>>(w);
    if (is("one_warp")) one_warp<<<grid, block, 0, stream>>>(w);
    if (is("unused")) unused<<<grid, block, 0, stream>>>(w);
    if (is("limit")) limit<<<grid, block, 0, stream>>>(w);
    if (is("index")) index<<<grid, block, 0, stream>>>(w);
    if (is("stored")) stored<<<grid, block, 0, stream>>>(w);
    if (is("both_or_none")) both_or_none<<<grid, block, 0, stream>>>(w);
    if (is("neighbour")) neighbour<<<grid, block, 0, stream>>>(before, doomed);
    if (is("last")) last<<<grid, block, 0, stream>>>(before, doomed);
  };
  launch(); // loads the code
  CHECK(cudaStreamSynchronize(stream));
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  launch();
  CHECK(cudaGetLastError());
  cudaGraph_t graph = nullptr;
  CHECK(cudaStreamEndCapture(stream, &graph));
  cudaGraphExec_t exec = nullptr;
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  CHECK(cudaGraphLaunch(exec, stream));
  CHECK(cudaStreamSynchronize(stream));
  CHECK(cudaFree(doomed));
  CHECK(cudaGraphLaunch(exec, stream));
  CHECK(cudaStreamSynchronize(stream));
  std::printf("%s done\n", way);
}
