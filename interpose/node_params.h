// Turns the parameters of a graph node into a node record: for the walk of a graph and for edits of an exec.
#pragma once

#include "interpose/cuda_abi.h"
#include "interpose/functions.h"
#include "interpose/state.h"

namespace capturesan::shim {

// One node being described. The scratch space is the caller's: a layout is too large for a stack of unknown size.
struct node_writer {
  thread_state* t;
  parameter_layout* layout;
  u8* block;                      // max_parameter_bytes
  u64* seen;                      // addresses looked at lately
  u64 exec;                       // the nodes are those of this exec; 0 = not known
  bool whole = true;              // false once something had to be left out
  u64 table_bytes = u64{1} << 20; // of sources of copies that may still be looked through
  static constexpr std::size_t seen_size = 1024;
};

// Has the scratch space for the time of one walk or edit; `ok()` is false if there is no memory.
class node_scratch {
 public:
  node_scratch(thread_state* t, u64 exec);
  ~node_scratch();
  node_scratch(const node_scratch&) = delete;
  node_scratch& operator=(const node_scratch&) = delete;
  bool ok() const { return at_ != -1; }
  node_writer writer;

 private:
  long at_;
};

struct node_out {
  trace::node_record record{};
  const void* payload = nullptr;
};

// Bounds of the calling thread's stack, {0, 0} if they cannot be told; for host operands that lie on it.
struct stack_range {
  u64 low, high;
  bool holds(u64 address) const { return address - low < high - low; }
};
stack_range own_stack();

// Whether this thread has asked: a graph that it made may refer to its stack.
bool asked_for_own_stack();

template <class Params>
void fill_kernel(node_writer& w, node_out& out, const Params& p, kernel_handle k);
void fill_memcpy(node_out& out, const CUDA_MEMCPY3D& p);
template <class Params>
void fill_memset(node_out& out, const Params& p);
template <class Params>
void fill_host(node_out& out, const Params& p);
template <class Params>
void fill_batch(node_writer& w, node_out& out, const Params& p);

void write_node(node_writer& w, const node_out& out);

// Whether the program ever made a kernel node that the device may update: by a launch with that attribute, or by
// giving a node that attribute.
bool any_updatable_node();
void note_updatable_node();

template <class T>
void look_for_updatable(const T& v) {
  if constexpr (std::is_same_v<T, const CUlaunchConfig*>) {
    for (unsigned i = 0; v != nullptr && v->attrs != nullptr && i < v->numAttrs; ++i) {
      if (v->attrs[i].id == CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE) {
        note_updatable_node();
      }
    }
  } else if constexpr (std::is_same_v<T, CUlaunchAttributeID>) {
    if (v == CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE) {
      note_updatable_node();
    }
  }
}

// New parameters of one node of an exec, as an exec_edit call passes them.
struct node_edit {
  enum class kind : u8 { none, kernel_v1, kernel_v2, memcpy, memset, host, batch, child, any } what = kind::none;
  const void* params = nullptr;
};
// Writes a node record with the node's handle and its new operands; its index is meaningless. Nothing for kinds without
// addresses.
void write_edited_node(thread_state* t, u64 exec, u64 node, const node_edit& edit);

// Finds the edit among the arguments of a call, by type.
template <class T>
void take_edit(node_edit& to, const T& v) {
  if constexpr (std::is_pointer_v<T>) {
    using V = std::remove_cv_t<std::remove_pointer_t<T>>;
    if constexpr (std::is_same_v<V, CUDA_KERNEL_NODE_PARAMS_v1>) {
      to = {node_edit::kind::kernel_v1, v};
    } else if constexpr (std::is_same_v<V, CUDA_KERNEL_NODE_PARAMS_v2>) {
      to = {node_edit::kind::kernel_v2, v};
    } else if constexpr (std::is_same_v<V, CUDA_MEMCPY3D>) {
      to = {node_edit::kind::memcpy, v};
    } else if constexpr (std::is_same_v<V, CUDA_MEMSET_NODE_PARAMS>) {
      to = {node_edit::kind::memset, v};
    } else if constexpr (std::is_same_v<V, CUDA_HOST_NODE_PARAMS_v1>) {
      to = {node_edit::kind::host, v};
    } else if constexpr (std::is_same_v<V, CUDA_BATCH_MEM_OP_NODE_PARAMS_v1>) {
      to = {node_edit::kind::batch, v};
    } else if constexpr (std::is_same_v<T, CUgraph>) {
      to = {node_edit::kind::child, v};
    } else if constexpr (std::is_same_v<V, CUgraphNodeParams>) {
      to = {node_edit::kind::any, v};
    }
  }
}

} // namespace capturesan::shim
