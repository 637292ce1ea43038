// What the code of a kernel tells about a word of its parameters. Asked only when a judgement hangs on it.
#include "analyzer/model.h"

namespace capturesan {

namespace {

constexpr int most_steps = 4; // from a function over its kernel and library to an image

// Where the image lay that the function was loaded from; 0 = not known.
std::uint64_t image_of(const process_state& p, std::uint64_t handle) {
  for (int step = 0; step < most_steps && handle != 0; ++step) {
    if (const auto found = p.code.find(handle); found != p.code.end()) return found->second;
    const auto f = p.functions.find(handle);
    handle = f == p.functions.end() || !f->second ? 0 : f->second->module;
  }
  return 0;
}

// The driver tells of functions that the program asked for under another handle: then the name decides, if all that are
// called so come from one image.
std::uint64_t image_by_name(const process_state& p, const std::string& name) {
  std::uint64_t image = 0;
  for (const auto& [handle, f] : p.functions) {
    if (!f || f->name != name) continue;
    const std::uint64_t one = image_of(p, handle);
    if (one == 0) continue;
    if (image != 0 && image != one) return 0;
    image = one;
  }
  return image;
}

} // namespace

// The word points into memory of `bytes` at `base`, and that is not what it was.
void model::ask_code(process_state& p, const exec_state& x, pointer_use& u, std::uint64_t base,
                     std::uint64_t bytes) const {
  if (code == nullptr || u.asked || u.sure != certainty::inferred) return;
  u.asked = true;
  const exec_node& n = x.nodes[u.node];
  if (!n.function || n.function->name.empty() || n.parameters.empty() || p.trace.capability == 0) return;
  const auto& layout = n.function->layout;
  const auto parameter = static_cast<std::size_t>(u.parameter);
  if (u.parameter >= 0 && parameter >= layout.size()) return;
  std::uint64_t image = image_of(p, n.function->module);
  if (image == 0) image = image_by_name(p, n.function->name);
  const traced_module* object = image == 0 ? nullptr : p.trace.module_at(image);
  if (object == nullptr) return;
  code_question q;
  q.path = object->path;
  q.build_id = object->build_id;
  q.image = image - object->bias;
  q.started_ns = p.trace.started_ns;
  q.function = n.function->name;
  q.capability = p.trace.capability;
  q.parameters = n.parameters;
  q.grid = n.value[1];
  q.block = n.value[2];
  q.offset = u.offset + (u.parameter < 0 ? 0 : layout[parameter].first);
  q.begin = base;
  q.end = base + bytes;
  q.inside_only = u.doubted;
  if (auto access = code->use_of(q)) {
    u.sure = certainty::loaded;
    u.access = std::move(*access);
  }
}

} // namespace capturesan
