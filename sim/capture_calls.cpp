#include "sim/api.h"
#include "sim/state.h"

#include <algorithm>

namespace capturesan::sim {
namespace {

// Nodes of the graph, without repetition.
bool valid_dependencies(CUgraph graph, const CUgraphNode* nodes, std::size_t count) {
  if (count && !nodes) return false;
  return std::all_of(nodes, nodes + count, [&](CUgraphNode n) { return is_live(n) && n->graph == graph; });
}

std::vector<dependency> make_tail(const CUgraphNode* nodes, const CUgraphEdgeData* data, std::size_t count) {
  std::vector<dependency> tail;
  for (std::size_t i = 0; i < count; ++i) tail.push_back({nodes[i], data ? data[i] : CUgraphEdgeData{}});
  return tail;
}

CUresult update_tail(CUstream stream, const CUgraphNode* nodes, const CUgraphEdgeData* data, std::size_t count,
                     unsigned flags) {
  if (!stream->capture) return CUDA_ERROR_ILLEGAL_STATE;
  if (!stream->capture->active()) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (flags > CU_STREAM_SET_CAPTURE_DEPENDENCIES || !valid_dependencies(stream->capture->graph, nodes, count))
    return CUDA_ERROR_INVALID_VALUE;
  if (flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES)
    set_tail(stream, make_tail(nodes, data, count));
  else
    add_to_tail(stream, make_tail(nodes, data, count));
  return CUDA_SUCCESS;
}

} // namespace

namespace api {

CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode) {
  return begin_capture(stream, mode, nullptr, {});
}

CUresult cuStreamBeginCapture(CUstream stream) {
  return begin_capture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL, nullptr, {});
}

CUresult cuStreamBeginCaptureToGraph(CUstream stream, CUgraph graph, const CUgraphNode* nodes,
                                     const CUgraphEdgeData* data, size_t count, CUstreamCaptureMode mode) {
  if (!valid_dependencies(graph, nodes, count)) return CUDA_ERROR_INVALID_VALUE;
  return begin_capture(stream, mode, graph, make_tail(nodes, data, count));
}

CUresult cuStreamEndCapture(CUstream stream, CUgraph* graph) { return end_capture(stream, graph); }

CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus* status) {
  if (!status) return CUDA_ERROR_INVALID_VALUE;
  *status = stream->capture ? stream->capture->status : CU_STREAM_CAPTURE_STATUS_NONE;
  return CUDA_SUCCESS;
}

// The edge data is dropped silently only where there is none: without room for it the call answers LOSSY_QUERY.
CUresult cuStreamGetCaptureInfo_v3(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id, CUgraph* graph,
                                   const CUgraphNode** nodes, const CUgraphEdgeData** data, size_t* count) {
  if (CUresult r = api::cuStreamIsCapturing(stream, status)) return r;
  if (*status != CU_STREAM_CAPTURE_STATUS_ACTIVE) return CUDA_SUCCESS;
  stream->tail_nodes.clear();
  stream->tail_edges.clear();
  bool any_data = false;
  for (const auto& d : stream->tail) {
    stream->tail_nodes.push_back(d.node);
    stream->tail_edges.push_back(d.data);
    any_data = any_data || d.data.from_port || d.data.to_port || d.data.type;
  }
  if (id) *id = stream->capture->id;
  if (graph) *graph = stream->capture->graph;
  if (nodes && !data && any_data) return CUDA_ERROR_LOSSY_QUERY;
  if (nodes) *nodes = stream->tail_nodes.data();
  if (data) *data = stream->tail_edges.data();
  if (count) *count = stream->tail.size();
  return CUDA_SUCCESS;
}

CUresult cuStreamGetCaptureInfo_v2(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id, CUgraph* graph,
                                   const CUgraphNode** nodes, size_t* count) {
  return api::cuStreamGetCaptureInfo_v3(stream, status, id, graph, nodes, nullptr, count);
}

CUresult cuStreamGetCaptureInfo(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id) {
  return api::cuStreamGetCaptureInfo_v3(stream, status, id, nullptr, nullptr, nullptr, nullptr);
}

CUresult cuStreamUpdateCaptureDependencies_v2(CUstream stream, CUgraphNode* nodes, const CUgraphEdgeData* data,
                                              size_t count, unsigned flags) {
  return update_tail(stream, nodes, data, count, flags);
}

CUresult cuStreamUpdateCaptureDependencies(CUstream stream, CUgraphNode* nodes, size_t count, unsigned flags) {
  return update_tail(stream, nodes, nullptr, count, flags);
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  if (!mode) return CUDA_ERROR_INVALID_VALUE;
  std::swap(this_thread().mode, *mode); // measured: any value is taken
  return CUDA_SUCCESS;
}

} // namespace api
} // namespace capturesan::sim
