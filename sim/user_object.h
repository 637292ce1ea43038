// User objects: references of graphs to things of the program. Destructors run without the driver's lock.
#pragma once

#include "sim/objects.h"

#include <unordered_map>

namespace capturesan::sim {

void retain_user_objects(const std::unordered_map<CUuserObject, unsigned>& references);
void release_user_objects(const std::unordered_map<CUuserObject, unsigned>& references);
void release_user_object(CUuserObject object, unsigned count);

} // namespace capturesan::sim
