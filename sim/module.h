// Modules, libraries and what is in them.
#pragma once

#include "sim/image.h"
#include "sim/state.h"

namespace capturesan::sim {

CUresult new_module(CUcontext context, std::shared_ptr<const image> loaded, CUmodule* result);
void delete_module(CUmodule module);

// The function of a module, made when first asked for; null: none of that name.
CUfunction function_of(CUmodule module, std::string_view name);
// The module of a library in a context, loaded when first asked for.
CUresult module_of(CUlibrary library, CUcontext context, CUmodule* result);

// A CUfunction of the program may also be a CUkernel.
const kernel_info* info_of(CUfunction function);

} // namespace capturesan::sim
