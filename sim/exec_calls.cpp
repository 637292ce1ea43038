#include "sim/api.h"
#include "sim/exec.h"
#include "sim/graph.h"
#include "sim/launch.h"
#include "sim/node_params.h"
#include "sim/state.h"

namespace capturesan::sim {
namespace {

// Gives a node of an executable graph other work; the graph it was made of stays as it is.
CUresult set_work(CUgraphExec exec, CUgraphNode node, const operation& work) {
  step* own = find_step(*exec->program, node);
  if (!own) return CUDA_ERROR_INVALID_VALUE;
  if (replace_work(*own, work)) return CUDA_ERROR_INVALID_VALUE;
  touch(exec);
  return CUDA_SUCCESS;
}

template <class Params>
CUresult set_params(CUgraphExec exec, CUgraphNode node, const Params* params, CUcontext context) {
  if (!params) return CUDA_ERROR_INVALID_VALUE;
  operation work;
  if (CUresult r = make_work(*params, context, work)) return r;
  return set_work(exec, node, work);
}

// The context that the node has now.
CUcontext context_of(CUgraphExec exec, CUgraphNode node) {
  const step* own = find_step(*exec->program, node);
  return own ? context_of(own->work) : nullptr;
}

} // namespace

namespace api {

CUresult cuGraphInstantiateWithFlags(CUgraphExec* result, CUgraph graph, unsigned long long flags) {
  return instantiate(graph, flags, result, nullptr);
}

CUresult cuGraphInstantiate(CUgraphExec* result, CUgraph graph, CUgraphNode* bad, char* log, size_t room) {
  CUDA_GRAPH_INSTANTIATE_PARAMS report{};
  if (log && room) *log = 0;
  const CUresult r = instantiate(graph, 0, result, &report);
  if (bad) *bad = report.hErrNode_out;
  return r;
}

CUresult cuGraphInstantiateWithParams(CUgraphExec* result, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS* params) {
  if (!params) return CUDA_ERROR_INVALID_VALUE;
  // Measured: with an upload of its own it is allowed in every capture. Without one it is taken to be like its
  // relatives.
  if (!(params->flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD))
    if (CUresult r = admit_unsafe()) return r;
  return instantiate(graph, params->flags, result, params);
}

CUresult cuGraphExecGetFlags(CUgraphExec exec, cuuint64_t* flags) {
  if (!flags) return CUDA_ERROR_INVALID_VALUE;
  *flags = exec->flags;
  return CUDA_SUCCESS;
}

CUresult cuGraphExecDestroy(CUgraphExec exec) {
  delete_exec(exec);
  return CUDA_SUCCESS;
}

CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream) { return launch(exec, stream); }
CUresult cuGraphUpload(CUgraphExec, CUstream) { return CUDA_SUCCESS; }

CUresult cuGraphExecUpdate_v2(CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo* report) {
  return update(exec, graph, report);
}

CUresult cuGraphExecUpdate(CUgraphExec exec, CUgraph graph, CUgraphNode* bad, CUgraphExecUpdateResult* reason) {
  CUgraphExecUpdateResultInfo report{};
  const CUresult r = update(exec, graph, &report);
  if (bad) *bad = report.errorNode;
  if (reason) *reason = report.result;
  return r;
}

CUresult cuGraphExecNodeSetParams(CUgraphExec exec, CUgraphNode node, CUgraphNodeParams* params) {
  return set_params(exec, node, params, context_of(exec, node));
}

CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS* params) {
  return set_params(exec, node, params, context_of(exec, node));
}

CUresult cuGraphExecKernelNodeSetParams(CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1* params) {
  return set_params(exec, node, params, context_of(exec, node));
}

CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec exec, CUgraphNode node, const CUDA_MEMCPY3D* params,
                                        CUcontext context) {
  return set_params(exec, node, params, context);
}

CUresult cuGraphExecMemsetNodeSetParams(CUgraphExec exec, CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS* params,
                                        CUcontext context) {
  return set_params(exec, node, params, context);
}

CUresult cuGraphExecHostNodeSetParams(CUgraphExec exec, CUgraphNode node, const CUDA_HOST_NODE_PARAMS* params) {
  return set_params(exec, node, params, nullptr);
}

CUresult cuGraphExecBatchMemOpNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                            const CUDA_BATCH_MEM_OP_NODE_PARAMS* params) {
  return set_params(exec, node, params, nullptr);
}

CUresult cuGraphExecChildGraphNodeSetParams(CUgraphExec exec, CUgraphNode node, CUgraph graph) {
  step* own = find_step(*exec->program, node);
  if (!own || own->inner.size() != 1) return CUDA_ERROR_INVALID_VALUE;
  return replace_inner(*own->inner[0], graph) ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult cuGraphExecEventRecordNodeSetEvent(CUgraphExec exec, CUgraphNode node, CUevent event) {
  return set_work(exec, node, record_call{event});
}

CUresult cuGraphExecEventWaitNodeSetEvent(CUgraphExec exec, CUgraphNode node, CUevent event) {
  return set_work(exec, node, wait_call{event});
}

// Documented for kernels, copies and sets.
CUresult cuGraphNodeSetEnabled(CUgraphExec exec, CUgraphNode node, unsigned enabled) {
  step* own = find_step(*exec->program, node);
  if (!own) return CUDA_ERROR_INVALID_VALUE;
  const bool can = std::holds_alternative<kernel_call>(own->work) || std::holds_alternative<copy_call>(own->work) ||
                   std::holds_alternative<fill_call>(own->work);
  if (!can) return CUDA_ERROR_INVALID_VALUE;
  own->enabled = enabled != 0;
  touch(exec);
  return CUDA_SUCCESS;
}

CUresult cuGraphNodeGetEnabled(CUgraphExec exec, CUgraphNode node, unsigned* enabled) {
  const step* own = find_step(*exec->program, node);
  if (!own || !enabled) return CUDA_ERROR_INVALID_VALUE;
  *enabled = own->enabled;
  return CUDA_SUCCESS;
}

} // namespace api
} // namespace capturesan::sim
