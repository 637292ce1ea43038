// A piece of work: what a stream executes at once, and what a graph node holds.
#pragma once

#include "sim/cuda_api.h"

#include <cstddef>
#include <memory>
#include <string>
#include <variant>
#include <vector>

namespace capturesan::sim {

struct parameter {
  std::size_t offset = 0;
  std::size_t size = 0;
};

// What an image says about one kernel.
struct kernel_info {
  std::string name;
  std::vector<parameter> parameters;
  std::size_t parameter_bytes = 0;
  int registers = 32;
  int shared_bytes = 0;
  int constant_bytes = 0;
  int local_bytes = 0;
  int max_threads = 1024;
  int binary_version = 90;
  int ptx_version = 90;
};

// The values of a kernel's parameters at the launch; the caller's array may die right after it.
struct arguments {
  std::vector<std::byte> bytes;
  std::vector<void*> pointers; // one per parameter, into bytes
  std::vector<void*> extra;    // the form in which the program gave them, if it was one buffer
  std::size_t buffer_bytes = 0;
};

struct extent {
  unsigned x = 1, y = 1, z = 1;
};

struct kernel_call {
  CUfunction function = nullptr; // as the caller named it: a function, or a kernel
  CUkernel kernel = nullptr;
  CUcontext context = nullptr;
  std::shared_ptr<const kernel_info> info;
  extent grid, block;
  unsigned shared_bytes = 0;
  bool cooperative = false;
  bool checked = false; // the shape is one the device can run
  std::shared_ptr<const arguments> values;
  std::vector<CUlaunchAttribute> attributes;
};

struct copy_call {
  CUDA_MEMCPY3D shape{};
  CUcontext context = nullptr;
  bool pinned_source = false, pinned_target = false; // host memory that the driver knew when the copy was described
};

struct fill_call {
  CUDA_MEMSET_NODE_PARAMS shape{};
  CUcontext context = nullptr;
};

struct host_call {
  CUhostFn function = nullptr;
  void* user_data = nullptr;
};

struct child_call {
  CUgraph graph = nullptr; // owned by the node
};

struct record_call {
  CUevent event = nullptr;
};

struct wait_call {
  CUevent event = nullptr;
};

// Memory of an allocation node: addresses from the node's creation on, memory only from its launch to its free.
struct graph_block {
  CUdeviceptr address = 0;
  std::size_t bytes = 0;
  int device = 0;
  bool allocated = false;
  graph_block() = default;
  graph_block(const graph_block&) = delete;
  graph_block& operator=(const graph_block&) = delete;
  ~graph_block();
};

struct alloc_call {
  CUDA_MEM_ALLOC_NODE_PARAMS shape{};
  std::shared_ptr<graph_block> block; // shared by the node and what it is instantiated to
};

struct free_call {
  CUdeviceptr address = 0;
};

struct memory_ops {
  std::vector<CUstreamBatchMemOpParams> list;
  CUcontext context = nullptr;
  unsigned flags = 0;
};

struct conditional_call {
  CUgraphConditionalHandle handle = 0;
  CUgraphConditionalNodeType type = CU_GRAPH_COND_TYPE_IF;
  std::vector<CUgraph> bodies; // owned by the node
  CUcontext context = nullptr;
};

struct empty_call {};

using operation = std::variant<empty_call, kernel_call, copy_call, fill_call, host_call, child_call, record_call,
                               wait_call, alloc_call, free_call, memory_ops, conditional_call>;

// The type cuGraphNodeGetType answers for a node that holds this.
CUgraphNodeType type_of(const operation& work);

} // namespace capturesan::sim
