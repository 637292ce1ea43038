#include "sim/api.h"
#include "sim/state.h"
#include "sim/user_object.h"

namespace capturesan::sim {

void retain_user_objects(const std::unordered_map<CUuserObject, unsigned>& references) {
  for (const auto& [object, count] : references) object->references += count;
}

void release_user_object(CUuserObject object, unsigned count) {
  object->references -= count;
  if (object->references != 0) return;
  const auto run = object->destroy;
  void* const pointer = object->pointer;
  destroy(object);
  unlocked([&] { run(pointer); });
}

void release_user_objects(const std::unordered_map<CUuserObject, unsigned>& references) {
  const auto own = references; // destructors may call the driver
  for (const auto& [object, count] : own) release_user_object(object, count);
}

namespace api {

CUresult cuUserObjectCreate(CUuserObject* result, void* pointer, CUhostFn destructor, unsigned count, unsigned flags) {
  if (!result || !destructor || count == 0 || flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC)
    return CUDA_ERROR_INVALID_VALUE;
  CUuserObject object = create<CUuserObject_st>();
  object->pointer = pointer;
  object->destroy = destructor;
  object->references = count;
  *result = object;
  return CUDA_SUCCESS;
}

CUresult cuUserObjectRetain(CUuserObject object, unsigned count) {
  if (count == 0) return CUDA_ERROR_INVALID_VALUE;
  object->references += count;
  return CUDA_SUCCESS;
}

CUresult cuUserObjectRelease(CUuserObject object, unsigned count) {
  if (count == 0 || count > object->references) return CUDA_ERROR_INVALID_VALUE;
  release_user_object(object, count);
  return CUDA_SUCCESS;
}

CUresult cuGraphRetainUserObject(CUgraph graph, CUuserObject object, unsigned count, unsigned flags) {
  if (count == 0 || flags & ~static_cast<unsigned>(CU_GRAPH_USER_OBJECT_MOVE)) return CUDA_ERROR_INVALID_VALUE;
  graph->user_objects[object] += count;
  if (!(flags & CU_GRAPH_USER_OBJECT_MOVE)) object->references += count;
  return CUDA_SUCCESS;
}

CUresult cuGraphReleaseUserObject(CUgraph graph, CUuserObject object, unsigned count) {
  auto found = graph->user_objects.find(object);
  if (count == 0 || found == graph->user_objects.end() || found->second < count) return CUDA_ERROR_INVALID_VALUE;
  found->second -= count;
  if (found->second == 0) graph->user_objects.erase(found);
  release_user_object(object, count);
  return CUDA_SUCCESS;
}

} // namespace api
} // namespace capturesan::sim
