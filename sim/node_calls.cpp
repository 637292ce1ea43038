// Nodes one by one: adding them, reading and setting what they do.
#include "sim/api.h"
#include "sim/condition.h"
#include "sim/graph.h"
#include "sim/launch.h"
#include "sim/memory.h"
#include "sim/node_params.h"
#include "sim/state.h"

#include <algorithm>

namespace capturesan::sim {
namespace {

CUresult add(CUgraphNode* result, CUgraph graph, const CUgraphNode* before, const CUgraphEdgeData* data,
             std::size_t count, operation work) {
  if (!result || (count && !before)) return CUDA_ERROR_INVALID_VALUE;
  std::vector<dependency> list;
  for (std::size_t i = 0; i < count; ++i) {
    if (!is_live(before[i]) || before[i]->graph != graph) return CUDA_ERROR_INVALID_VALUE;
    const bool twice = std::any_of(list.begin(), list.end(), [&](const dependency& d) { return d.node == before[i]; });
    if (twice) return CUDA_ERROR_INVALID_VALUE;
    list.push_back({before[i], data ? data[i] : CUgraphEdgeData{}});
  }
  *result = add_node(graph, std::move(work), std::move(list));
  return CUDA_SUCCESS;
}

template <class Params>
CUresult add_made(CUgraphNode* result, CUgraph graph, const CUgraphNode* before, std::size_t count,
                  const Params* params, CUcontext context) {
  if (!params) return CUDA_ERROR_INVALID_VALUE;
  operation work;
  if (CUresult r = make_work(*params, context, work)) return r;
  return add(result, graph, before, nullptr, count, std::move(work));
}

template <class Params>
CUresult set_made(CUgraphNode node, const Params* params) {
  if (!params) return CUDA_ERROR_INVALID_VALUE;
  operation work = node->work;
  if (CUresult r = make_work(*params, context_of(node->work), work)) return r;
  if (work.index() != node->work.index()) return CUDA_ERROR_INVALID_VALUE;
  node->work = std::move(work);
  return CUDA_SUCCESS;
}

// What the node does, if it is of that kind; the body then fills the program's structure.
template <class Call, class Out, class F>
CUresult read(CUgraphNode node, Out* out, F&& fill) {
  const auto* call = std::get_if<Call>(&node->work);
  if (!call || !out) return CUDA_ERROR_INVALID_VALUE;
  fill(*call);
  return CUDA_SUCCESS;
}

bool has_memory_nodes(CUgraph graph) { return graph->has_memory_nodes; }

// Where its memory nodes may be: documented as not in child graphs, nor in the bodies of conditional nodes.
CUresult make_child(CUgraph graph, CUgraphChildGraphNodeOwnership ownership, operation& work) {
  if (!is_live(graph)) return CUDA_ERROR_INVALID_VALUE;
  if (ownership == CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE) {
    if (graph->parent) return CUDA_ERROR_INVALID_VALUE;
    work = child_call{graph};
    return CUDA_SUCCESS;
  }
  if (has_memory_nodes(graph)) return CUDA_ERROR_NOT_SUPPORTED;
  work = child_call{clone_graph(graph)};
  return CUDA_SUCCESS;
}

template <class Params>
CUresult make_allocation(Params& params, operation& work) {
  device* owner = device_of(params.poolProps.location.id);
  const bool valid = params.bytesize && owner && params.poolProps.location.type == CU_MEM_LOCATION_TYPE_DEVICE &&
                     params.poolProps.allocType == CU_MEM_ALLOCATION_TYPE_PINNED;
  if (!valid) return CUDA_ERROR_INVALID_VALUE;
  alloc_call call;
  call.block = new_graph_block(*owner, params.bytesize);
  if (!call.block) return CUDA_ERROR_OUT_OF_MEMORY;
  params.dptr = call.block->address;
  call.shape.poolProps = params.poolProps;
  call.shape.bytesize = params.bytesize;
  call.shape.dptr = params.dptr;
  work = std::move(call);
  return CUDA_SUCCESS;
}

// Once in a graph.
bool can_free(CUgraph graph, CUdeviceptr address) {
  return find_graph_block(address) && graph->freed.insert(address).second;
}

CUresult make_conditional(CUDA_CONDITIONAL_NODE_PARAMS& params, CUgraphNode* result, CUgraph graph,
                          const CUgraphNode* before, const CUgraphEdgeData* data, std::size_t count) {
  const unsigned most = params.type == CU_GRAPH_COND_TYPE_WHILE ? 1 : params.type == CU_GRAPH_COND_TYPE_IF ? 2 : 1024;
  if (!is_condition(params.handle) || params.size == 0 || params.size > most || !claim_condition(params.handle))
    return CUDA_ERROR_INVALID_VALUE;
  conditional_call call;
  call.handle = params.handle;
  call.type = params.type;
  call.context = params.ctx;
  for (unsigned i = 0; i < params.size; ++i) {
    call.bodies.push_back(new_graph());
    call.bodies.back()->context = params.ctx;
  }
  if (CUresult r = add(result, graph, before, data, count, std::move(call))) return r;
  params.phGraph_out = std::get<conditional_call>((*result)->work).bodies.data(); // owned by the node
  return CUDA_SUCCESS;
}

CUresult add_any(CUgraphNode* result, CUgraph graph, const CUgraphNode* before, const CUgraphEdgeData* data,
                 std::size_t count, CUgraphNodeParams* params) {
  if (!params || !result) return CUDA_ERROR_INVALID_VALUE;
  operation work;
  CUresult made = CUDA_SUCCESS;
  switch (params->type) {
  case CU_GRAPH_NODE_TYPE_CONDITIONAL:
    return make_conditional(params->conditional, result, graph, before, data, count);
  case CU_GRAPH_NODE_TYPE_GRAPH:
    made = make_child(params->graph.graph, params->graph.ownership, work);
    break;
  case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
    made = make_allocation(params->alloc, work);
    break;
  case CU_GRAPH_NODE_TYPE_MEM_FREE:
    if (!can_free(graph, params->free.dptr)) return CUDA_ERROR_INVALID_VALUE;
    work = free_call{params->free.dptr};
    break;
  default:
    made = make_work(*params, nullptr, work);
  }
  if (made) return made;
  return add(result, graph, before, data, count, std::move(work));
}

} // namespace

namespace api {

CUresult cuGraphAddNode_v2(CUgraphNode* result, CUgraph graph, const CUgraphNode* before, const CUgraphEdgeData* data,
                           size_t count, CUgraphNodeParams* params) {
  return add_any(result, graph, before, data, count, params);
}
CUresult cuGraphAddNode(CUgraphNode* result, CUgraph graph, const CUgraphNode* before, size_t count,
                        CUgraphNodeParams* params) {
  return add_any(result, graph, before, nullptr, count, params);
}
CUresult cuGraphNodeSetParams(CUgraphNode node, CUgraphNodeParams* params) { return set_made(node, params); }

CUresult cuGraphAddEmptyNode(CUgraphNode* result, CUgraph graph, const CUgraphNode* before, size_t count) {
  return add(result, graph, before, nullptr, count, empty_call{});
}

CUresult cuGraphAddKernelNode_v2(CUgraphNode* result, CUgraph graph, const CUgraphNode* before, size_t count,
                                 const CUDA_KERNEL_NODE_PARAMS* params) {
  return add_made(result, graph, before, count, params, nullptr);
}
CUresult cuGraphAddKernelNode(CUgraphNode* result, CUgraph graph, const CUgraphNode* before, size_t count,
                              const CUDA_KERNEL_NODE_PARAMS_v1* params) {
  return add_made(result, graph, before, count, params, nullptr);
}
CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS* out) {
  return read<kernel_call>(node, out, [&](const kernel_call& call) { *out = describe(call); });
}
CUresult cuGraphKernelNodeGetParams(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v1* out) {
  return read<kernel_call>(node, out, [&](const kernel_call& call) {
    const auto d = describe(call);
    *out = {d.func,      d.gridDimX,  d.gridDimY,       d.gridDimZ,     d.blockDimX,
            d.blockDimY, d.blockDimZ, d.sharedMemBytes, d.kernelParams, d.extra};
  });
}
CUresult cuGraphKernelNodeSetParams_v2(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS* params) {
  return set_made(node, params);
}
CUresult cuGraphKernelNodeSetParams(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1* params) {
  return set_made(node, params);
}

CUresult cuGraphKernelNodeGetAttribute(CUgraphNode node, CUkernelNodeAttrID id, CUkernelNodeAttrValue* out) {
  return read<kernel_call>(node, out, [&](const kernel_call& call) {
    *out = {};
    for (const auto& a : call.attributes)
      if (a.id == id) *out = a.value;
  });
}
CUresult cuGraphKernelNodeSetAttribute(CUgraphNode node, CUkernelNodeAttrID id, const CUkernelNodeAttrValue* value) {
  auto* call = std::get_if<kernel_call>(&node->work);
  if (!call || !value) return CUDA_ERROR_INVALID_VALUE;
  std::erase_if(call->attributes, [&](const CUlaunchAttribute& a) { return a.id == id; });
  CUlaunchAttribute fresh{};
  fresh.id = id;
  fresh.value = *value;
  call->attributes.push_back(fresh);
  if (id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE) call->cooperative = value->cooperative != 0;
  return CUDA_SUCCESS;
}
CUresult cuGraphKernelNodeCopyAttributes(CUgraphNode to, CUgraphNode from) {
  auto* target = std::get_if<kernel_call>(&to->work);
  const auto* source = std::get_if<kernel_call>(&from->work);
  if (!target || !source) return CUDA_ERROR_INVALID_VALUE;
  target->attributes = source->attributes;
  target->cooperative = source->cooperative;
  return CUDA_SUCCESS;
}

CUresult cuGraphAddMemcpyNode(CUgraphNode* result, CUgraph graph, const CUgraphNode* before, size_t count,
                              const CUDA_MEMCPY3D* params, CUcontext context) {
  return add_made(result, graph, before, count, params, context);
}
CUresult cuGraphMemcpyNodeGetParams(CUgraphNode node, CUDA_MEMCPY3D* out) {
  return read<copy_call>(node, out, [&](const copy_call& call) { *out = call.shape; });
}
CUresult cuGraphMemcpyNodeSetParams(CUgraphNode node, const CUDA_MEMCPY3D* params) { return set_made(node, params); }

CUresult cuGraphAddMemsetNode(CUgraphNode* result, CUgraph graph, const CUgraphNode* before, size_t count,
                              const CUDA_MEMSET_NODE_PARAMS* params, CUcontext context) {
  return add_made(result, graph, before, count, params, context);
}
CUresult cuGraphMemsetNodeGetParams(CUgraphNode node, CUDA_MEMSET_NODE_PARAMS* out) {
  return read<fill_call>(node, out, [&](const fill_call& call) { *out = call.shape; });
}
CUresult cuGraphMemsetNodeSetParams(CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS* params) {
  return set_made(node, params);
}

CUresult cuGraphAddHostNode(CUgraphNode* result, CUgraph graph, const CUgraphNode* before, size_t count,
                            const CUDA_HOST_NODE_PARAMS* params) {
  return add_made(result, graph, before, count, params, nullptr);
}
CUresult cuGraphHostNodeGetParams(CUgraphNode node, CUDA_HOST_NODE_PARAMS* out) {
  return read<host_call>(node, out, [&](const host_call& call) { *out = {call.function, call.user_data}; });
}
CUresult cuGraphHostNodeSetParams(CUgraphNode node, const CUDA_HOST_NODE_PARAMS* params) {
  return set_made(node, params);
}

CUresult cuGraphAddChildGraphNode(CUgraphNode* result, CUgraph graph, const CUgraphNode* before, size_t count,
                                  CUgraph child) {
  operation work;
  if (CUresult r = make_child(child, CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE, work)) return r;
  return add(result, graph, before, nullptr, count, std::move(work));
}
CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode node, CUgraph* out) {
  return read<child_call>(node, out, [&](const child_call& call) { *out = call.graph; });
}

CUresult cuGraphAddEventRecordNode(CUgraphNode* result, CUgraph graph, const CUgraphNode* before, size_t count,
                                   CUevent event) {
  return add(result, graph, before, nullptr, count, record_call{event});
}
CUresult cuGraphEventRecordNodeGetEvent(CUgraphNode node, CUevent* out) {
  return read<record_call>(node, out, [&](const record_call& call) { *out = call.event; });
}
CUresult cuGraphEventRecordNodeSetEvent(CUgraphNode node, CUevent event) {
  if (!std::holds_alternative<record_call>(node->work)) return CUDA_ERROR_INVALID_VALUE;
  node->work = record_call{event};
  return CUDA_SUCCESS;
}
CUresult cuGraphAddEventWaitNode(CUgraphNode* result, CUgraph graph, const CUgraphNode* before, size_t count,
                                 CUevent event) {
  return add(result, graph, before, nullptr, count, wait_call{event});
}
CUresult cuGraphEventWaitNodeGetEvent(CUgraphNode node, CUevent* out) {
  return read<wait_call>(node, out, [&](const wait_call& call) { *out = call.event; });
}
CUresult cuGraphEventWaitNodeSetEvent(CUgraphNode node, CUevent event) {
  if (!std::holds_alternative<wait_call>(node->work)) return CUDA_ERROR_INVALID_VALUE;
  node->work = wait_call{event};
  return CUDA_SUCCESS;
}

CUresult cuGraphAddMemAllocNode(CUgraphNode* result, CUgraph graph, const CUgraphNode* before, size_t count,
                                CUDA_MEM_ALLOC_NODE_PARAMS* params) {
  if (!params) return CUDA_ERROR_INVALID_VALUE;
  operation work;
  if (CUresult r = make_allocation(*params, work)) return r;
  return add(result, graph, before, nullptr, count, std::move(work));
}
CUresult cuGraphMemAllocNodeGetParams(CUgraphNode node, CUDA_MEM_ALLOC_NODE_PARAMS* out) {
  return read<alloc_call>(node, out, [&](const alloc_call& call) { *out = call.shape; });
}
CUresult cuGraphAddMemFreeNode(CUgraphNode* result, CUgraph graph, const CUgraphNode* before, size_t count,
                               CUdeviceptr address) {
  if (!can_free(graph, address)) return CUDA_ERROR_INVALID_VALUE;
  return add(result, graph, before, nullptr, count, free_call{address});
}
CUresult cuGraphMemFreeNodeGetParams(CUgraphNode node, CUdeviceptr* out) {
  return read<free_call>(node, out, [&](const free_call& call) { *out = call.address; });
}

CUresult cuGraphAddBatchMemOpNode(CUgraphNode* result, CUgraph graph, const CUgraphNode* before, size_t count,
                                  const CUDA_BATCH_MEM_OP_NODE_PARAMS* params) {
  return add_made(result, graph, before, count, params, nullptr);
}
CUresult cuGraphBatchMemOpNodeGetParams(CUgraphNode node, CUDA_BATCH_MEM_OP_NODE_PARAMS* out) {
  return read<memory_ops>(node, out, [&](const memory_ops& ops) {
    *out = {ops.context, static_cast<unsigned>(ops.list.size()), const_cast<CUstreamBatchMemOpParams*>(ops.list.data()),
            ops.flags};
  });
}
CUresult cuGraphBatchMemOpNodeSetParams(CUgraphNode node, const CUDA_BATCH_MEM_OP_NODE_PARAMS* params) {
  return set_made(node, params);
}

CUresult cuGraphConditionalHandleCreate(CUgraphConditionalHandle* result, CUgraph graph, CUcontext, unsigned value,
                                        unsigned flags) {
  if (!result || flags & ~static_cast<unsigned>(CU_GRAPH_COND_ASSIGN_DEFAULT)) return CUDA_ERROR_INVALID_VALUE;
  *result = new_condition(graph, value, flags & CU_GRAPH_COND_ASSIGN_DEFAULT);
  return CUDA_SUCCESS;
}

} // namespace api
} // namespace capturesan::sim
