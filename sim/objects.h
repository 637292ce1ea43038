// The objects behind the driver's handles. cuda.h declares their types (`struct CUstream_st`) and leaves them open;
// here they are. All of it is read and written with the driver's lock held (state.h).
#pragma once

#include "sim/cuda_api.h"
#include "sim/operation.h"

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

namespace capturesan::sim {

struct capture;
struct device;
struct image;
struct program;
using clock = std::chrono::steady_clock;
using thread_id = std::uint64_t;

// An edge into a node, as streams, events and nodes keep them.
struct dependency {
  CUgraphNode node = nullptr;
  CUgraphEdgeData data{};
};

inline constexpr std::size_t limit_count = CU_LIMIT_MAX;
inline constexpr std::size_t stream_attribute_count = CU_LAUNCH_ATTRIBUTE_MAX;

} // namespace capturesan::sim

struct CUctx_st {
  capturesan::sim::device* device = nullptr;
  unsigned flags = 0;
  unsigned api_version = 13000;
  bool primary = false;
  unsigned long long id = 0;
  CUresult pending_fault = CUDA_SUCCESS; // met by work that ran; the next wait answers it
  CUresult fault = CUDA_SUCCESS;         // the context is lost: every later call answers it
  CUstream legacy = nullptr;
  std::unordered_map<capturesan::sim::thread_id, CUstream> per_thread;
  std::array<std::size_t, capturesan::sim::limit_count> limits{};
  CUfunc_cache cache_config = CU_FUNC_CACHE_PREFER_NONE;
  CUsharedconfig shared_config = CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE;
  std::vector<CUcontext> peers; // whose memory work of this context may use
};

struct CUstream_st {
  enum class kind : std::uint8_t { legacy, per_thread, created };
  CUcontext context = nullptr;
  kind which = kind::created;
  unsigned flags = 0;
  int priority = 0;
  unsigned long long id = 0;
  std::shared_ptr<capturesan::sim::capture> capture; // null: not capturing
  std::vector<capturesan::sim::dependency> tail;     // what the next captured operation depends on
  std::vector<CUgraphNode> tail_nodes;               // storage handed out by cuStreamGetCaptureInfo
  std::vector<CUgraphEdgeData> tail_edges;
  std::unordered_map<int, CUstreamAttrValue> attributes;

  // Whether the legacy stream waits for it, and it for the legacy stream.
  bool blocking() const {
    return which == kind::per_thread || (which == kind::created && !(flags & CU_STREAM_NON_BLOCKING));
  }
};

struct CUevent_st {
  CUcontext context = nullptr;
  unsigned flags = 0;
  bool recorded = false;                             // by eager work
  std::shared_ptr<capturesan::sim::capture> capture; // the capture it was last recorded in; may be over
  std::vector<capturesan::sim::dependency> tail;
  capturesan::sim::clock::time_point time;
};

struct CUmod_st {
  CUcontext context = nullptr;
  std::shared_ptr<const capturesan::sim::image> image;
  CUlibrary library = nullptr; // whose module this is, if any
  std::map<std::string, CUfunction, std::less<>> functions;
  std::map<std::string, CUdeviceptr, std::less<>> globals;
};

struct CUfunc_st {
  CUmodule module = nullptr;
  CUkernel kernel = nullptr;
  std::shared_ptr<const capturesan::sim::kernel_info> info;
  std::unordered_map<int, int> attributes; // those that were set
};

struct CUlib_st {
  std::shared_ptr<const capturesan::sim::image> image;
  std::map<std::string, CUkernel, std::less<>> kernels;
  std::unordered_map<CUcontext, CUmodule> modules;
};

struct CUkern_st {
  CUlibrary library = nullptr;
  std::shared_ptr<const capturesan::sim::kernel_info> info;
  std::unordered_map<int, int> attributes;
};

struct CUgraphNode_st {
  CUgraph graph = nullptr;
  std::uint64_t id = 0;
  capturesan::sim::operation work;
  std::vector<capturesan::sim::dependency> before;
  std::vector<CUgraphNode> after;
  CUgraphNode original = nullptr; // in the graph this one was cloned from
  bool forked = false;            // captured on another stream than the capture's origin
  bool joined = false;            // has been among what the origin stream waits for
};

struct CUuserObject_st {
  void* pointer = nullptr;
  CUhostFn destroy = nullptr;
  unsigned references = 0;
};

struct CUgraph_st {
  std::uint64_t id = 0;
  std::vector<CUgraphNode> nodes; // in order of creation
  CUgraphNode parent = nullptr;   // the child-graph or conditional node that owns it
  CUcontext context = nullptr;    // conditional bodies
  bool has_memory_nodes = false;
  std::set<CUdeviceptr> freed;       // by its free nodes
  CUgraphExec memory_exec = nullptr; // the one exec a graph with allocation nodes may have
  std::unordered_map<CUuserObject, unsigned> user_objects;
  std::vector<CUgraphConditionalHandle> conditions;
};

struct CUgraphExec_st {
  std::uint64_t id = 0;
  CUgraph graph = nullptr; // what it was made of; may be destroyed
  std::uint64_t graph_id = 0;
  CUcontext context = nullptr;
  unsigned long long flags = 0;
  std::shared_ptr<capturesan::sim::program> program;
  std::unordered_map<CUuserObject, unsigned> user_objects;
};

struct CUmemPoolHandle_st {
  capturesan::sim::device* device = nullptr;
  CUmemPoolProps properties{};
  bool is_default = false;
  std::array<cuuint64_t, 16> attributes{};
  std::unordered_map<int, CUmemAccess_flags> access;
  std::multimap<std::size_t, CUdeviceptr> idle; // freed blocks by size, kept until a wait finds the pool unused
};
