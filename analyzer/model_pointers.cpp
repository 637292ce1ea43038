// The addresses in the nodes of a graph, and whose memory they are in.
#include <algorithm>
#include <cstring>
#include <utility>

#include "analyzer/model.h"

namespace capturesan {

namespace {

using trace::node_type;
using trace::record_kind;

// Bits of value[3] of a memcpy node.
constexpr std::uint64_t host_destination = 1, host_source = 2, array_destination = 4, array_source = 8,
                        destination_on_stack = 16, source_on_stack = 32;
constexpr std::uint64_t in_rows = 64; // also of a memset node: with gaps between the rows
constexpr std::size_t descriptor_bytes = 128;
// Flags of a block_alloc event.
constexpr std::uint64_t block_private = 1, block_known_before = 2;
constexpr std::size_t most_host_ranges = 65536;
constexpr std::size_t most_table_words = 65536; // kept of a process
constexpr std::size_t most_followed = 8192;     // of one parameter

std::uint64_t word_at(std::span<const std::byte> block, std::size_t offset) {
  std::uint64_t word = 0;
  if (offset + sizeof(word) <= block.size()) std::memcpy(&word, block.data() + offset, sizeof(word));
  return word;
}

// FNV-1a over what a node does, not over which node it is.
std::uint64_t add_to_content(std::uint64_t h, const trace::node_record& n, std::span<const std::byte> payload) {
  const auto add = [&h](const void* data, std::size_t bytes) {
    for (std::size_t i = 0; i < bytes; ++i)
      h = (h ^ std::to_integer<std::uint64_t>(static_cast<const std::byte*>(data)[i])) * 0x100000001b3ull;
  };
  add(&n.type, sizeof(n.type));
  if (n.type != node_type::graph) add(n.value, sizeof(n.value)); // a child graph's handle says nothing
  add(payload.data(), payload.size());
  return h;
}

// What reports call the maker of a block, also where no event tells of it.
const call_ref& framework_allocator() {
  static const call_ref one = [] {
    call_ref c;
    c.symbol = "framework_block_alloc";
    c.api = "PyTorch's caching allocator";
    c.cls = trace::call_class::block_alloc;
    c.known = true;
    return c;
  }();
  return one;
}

void note_end(allocation& a, const event_view& v) {
  a.live = false;
  a.freed_by = v.call;
  a.freed_stack = v.event->stack;
  a.freed_thread = v.thread->index;
  a.freed_ns = v.at_ns;
}

} // namespace

// Memory that dies while a graph is being captured, or waits to be instantiated, may be named in it.
void model::keep_dead_if_needed(process_state& p) {
  const bool pending = std::any_of(p.graphs.begin(), p.graphs.end(), [](const auto& g) {
    const bool captured = g.second.capture != 0 || !g.second.children.empty();
    return captured && !g.second.instantiated;
  });
  p.memory.keep_dead(pending || !p.open.empty());
}

// True if the address is in memory that somebody owns, or owned when the graph was captured.
bool model::add_pointer(process_state& p, exec_state& x, pointer_use use) {
  if (use.address == 0) return false;
  const bool doubtful = use.sure == certainty::inferred || use.sure == certainty::tabled;
  for (const auto& [base, size] : x.own_memory) {
    if (use.address - base < size) { // lives and dies with the launch
      if (use.sure == certainty::tabled) return true;
      x.memory.uses.push_back(std::move(use));
      return true;
    }
  }
  auto a = p.memory.find(use.address);
  if (!a || a->made_ns > window_.end_ns) {
    auto before = p.memory.find_dead(use.address, window_.begin_ns, window_.end_ns);
    // What was allocated after the capture can be no operand of it, unless the graph was edited since.
    if (!before && doubtful) return false;
    use.guessed = before && window_guessed_;
    if (before) a = std::move(before);
  }
  if (!a) { // an edit may bring back what is free since
    const auto former = std::find_if(x.former.rbegin(), x.former.rend(),
                                     [&](const auto& f) { return !f->live && f->contains(use.address); });
    if (former != x.former.rend()) a = *former;
  }
  if (!a && use.sure == certainty::tabled) return false;
  if (!a) { // perhaps memory that another graph allocates
    const auto other = p.graph_blocks.upper_bound(use.address);
    if (other != p.graph_blocks.begin() && use.address - std::prev(other)->first < std::prev(other)->second.bytes) {
      std::prev(other)->second.named = true;
      x.memory.uses.push_back(std::move(use));
    }
    return false;
  }
  a->in_graph = true;
  if (a->live) use.block = p.blocks.find(use.address);
  if (use.block) use.block->in_graph = true;
  use.memory = std::move(a);
  x.pointers.push_back(std::move(use));
  return true;
}

// Host operands: page-locked memory is known by its allocation; other memory becomes known by being used here.
void model::add_host(process_state& p, exec_state& x, const event_view& v, pointer_use use, std::uint64_t bytes,
                     std::uint64_t stack_high) {
  if (use.address == 0) return;
  if (auto a = p.memory.find(use.address)) {
    a->in_graph = true;
    use.memory = std::move(a);
    x.pointers.push_back(std::move(use));
    return;
  }
  auto a = std::make_shared<allocation>();
  a->base = use.address;
  a->size = std::max<std::uint64_t>(bytes, 1);
  a->kind = stack_high != 0 ? memory_kind::stack : memory_kind::pageable;
  a->in_graph = true;
  a->made_thread = v.thread->index;
  a->made_ns = v.at_ns;
  a->stack_high = stack_high;
  std::erase_if(p.host_ranges, [](const auto& w) { return w.expired(); });
  if (p.host_ranges.size() >= most_host_ranges) return;
  p.host_ranges.push_back(a);
  x.has_stack_memory = x.has_stack_memory || stack_high != 0;
  use.memory = std::move(a);
  x.pointers.push_back(std::move(use));
}

// The parameter points to memory that was filled with addresses, as far as is known.
void model::follow_table(process_state& p, exec_state& x, const pointer_use& at) {
  const allocation& memory = at.owner();
  std::size_t followed = 0;
  for (auto w = p.table_words.lower_bound(at.address);
       w != p.table_words.end() && memory.contains(w->first) && followed++ < most_followed; ++w) {
    pointer_use u;
    u.address = w->second;
    u.node = at.node;
    u.parameter = at.parameter;
    u.offset = static_cast<std::uint32_t>(w->first - at.address);
    u.sure = certainty::tabled;
    u.table_at = w->first;
    add_pointer(p, x, std::move(u));
  }
}

namespace {

// Forgets the words that lay in the range, and takes in those that records tell of. True if there was any.
bool fill_table(process_state& p, std::uint64_t target, std::uint64_t bytes, const thread_cursor& records) {
  auto& words = p.table_words;
  bool any = false;
  if (bytes != 0) {
    const auto from = words.lower_bound(target), to = words.lower_bound(target + bytes);
    any = from != to;
    words.erase(from, to);
  }
  records.each_side_record([&](const side_record& r) {
    if (r.kind != record_kind::pointers) return;
    const auto head = r.as<trace::payload_record>();
    const auto pairs = r.payload(sizeof(head), head.bytes);
    for (std::size_t i = 0; i + 16 <= pairs.size(); i += 16) {
      const std::uint64_t word = word_at(pairs, i + 8);
      if (words.size() >= most_table_words || !p.memory.find(word)) continue;
      words[head.key + word_at(pairs, i)] = word;
      any = true;
    }
  });
  return any;
}

} // namespace

// A copy or set that ran at once: tables that graphs are given may have other contents now.
void model::table_copied(process_state& p, const event_view& v, const thread_cursor& records) {
  const std::uint64_t target = v.event->arg[0], bytes = v.event->arg[2];
  if (!fill_table(p, target, bytes, records)) return;
  for (auto& [handle, x] : p.execs) {
    std::vector<pointer_use> into; // parameters that point to where the copy went, or before it
    for (const pointer_use& u : x->pointers) {
      const bool named = u.sure == certainty::typed || u.sure == certainty::declared;
      if (named && u.owner().live && u.owner().contains(target) && u.address < target + bytes) into.push_back(u);
    }
    std::erase_if(x->pointers, [&](const pointer_use& u) {
      return u.sure == certainty::tabled && std::any_of(into.begin(), into.end(), [&](const pointer_use& at) {
               return at.node == u.node && at.parameter == u.parameter;
             });
    });
    window_ = {x->begin_ns, v.at_ns, 0}; // the words are of now
    for (const pointer_use& at : into) follow_table(p, *x, at);
    x->changed = x->changed || !into.empty();
  }
}

namespace {

// An address right behind the memory of another parameter is as likely the end of that as the begin of what follows.
void doubt_ends(const exec_state& x, std::span<pointer_use> uses, std::span<pointer_use> own) {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> extents; // begin and end
  for (const pointer_use& u : uses) extents.emplace_back(u.owner().base, u.owner().base + u.owner().size);
  for (const pointer_use& u : own)
    for (const auto& [base, size] : x.own_memory)
      if (u.address - base < size) extents.emplace_back(base, base + size);
  for (const auto part : {uses, own}) {
    for (pointer_use& u : part) {
      if (u.sure != certainty::typed && u.sure != certainty::declared) continue;
      const bool behind =
          std::any_of(extents.begin(), extents.end(), [&](const auto& e) { return e.second == u.address; });
      if (!behind) continue;
      u.sure = certainty::inferred;
      u.doubted = true;
    }
  }
}

} // namespace

// If there are words of which only the kernel's code may tell what they are.
void model::keep_for_questions(exec_node& n, std::span<const std::byte> block, std::span<const pointer_use> uses,
                               std::span<const pointer_use> own) const {
  const auto open = [](const pointer_use& u) { return u.sure == certainty::inferred; };
  if (code == nullptr || keep_parameters || !n.function) return;
  if (std::any_of(uses.begin(), uses.end(), open) || std::any_of(own.begin(), own.end(), open))
    n.parameters.assign(block.begin(), block.end());
}

// Words of the parameter block that are addresses. A parameter of 8 bytes is a pointer if it points somewhere; a word
// inside a larger one may be one, unless the kernel's name says what it is.
void model::read_parameters(process_state& p, exec_state& x, std::uint32_t node, std::span<const std::byte> block) {
  const exec_node& n = x.nodes[node];
  const std::size_t first_use = x.pointers.size(), first_own = x.memory.uses.size();
  bool resolved = false;
  const auto use = [&](std::size_t at, std::int32_t parameter, std::size_t offset, certainty sure) {
    const bool described = std::any_of(descriptors_.begin(), descriptors_.end(),
                                       [&](const auto& d) { return at - d.aux < descriptor_bytes; });
    if (described) return;
    pointer_use u;
    u.address = word_at(block, at);
    u.node = node;
    u.parameter = parameter;
    u.offset = static_cast<std::uint32_t>(offset);
    u.sure = sure;
    const std::size_t before = x.pointers.size();
    resolved = add_pointer(p, x, std::move(u)) || resolved;
    const bool named = sure == certainty::typed || sure == certainty::declared;
    if (named && x.pointers.size() > before && !p.table_words.empty())
      follow_table(p, x, pointer_use(x.pointers[before]));
  };
  const auto words = [&](std::size_t begin, std::size_t end, std::int32_t parameter, std::size_t base, certainty sure) {
    for (std::size_t at = (begin + 7) / 8 * 8; at + 8 <= std::min(end, block.size()); at += 8)
      use(at, parameter, at - base, sure);
  };
  const auto* layout = n.function && !n.function->layout.empty() ? &n.function->layout : nullptr;
  const auto parameter_at = [&](std::size_t at) {
    for (std::size_t i = 0; layout != nullptr && i < layout->size(); ++i)
      if (at - (*layout)[i].first < (*layout)[i].second) return static_cast<std::int32_t>(i);
    return std::int32_t{-1};
  };
  for (const auto& d : descriptors_) {
    pointer_use u;
    u.address = d.key;
    u.node = node;
    u.parameter = parameter_at(d.aux);
    u.offset = u.parameter < 0 ? d.aux : d.aux - (*layout)[static_cast<std::size_t>(u.parameter)].first;
    u.sure = certainty::descriptor;
    resolved = add_pointer(p, x, std::move(u)) || resolved;
  }
  if (layout == nullptr) {
    words(0, block.size(), -1, 0, certainty::inferred);
  } else {
    for (std::size_t i = 0; i < layout->size(); ++i) {
      const auto [offset, size] = (*layout)[i];
      const auto shape = n.function->shapes.empty() ? parameter_shape::unknown : n.function->shapes[i];
      const auto number = static_cast<std::int32_t>(i);
      if (size == 8 && shape != parameter_shape::number) {
        use(offset, number, 0, certainty::typed);
      } else {
        words(offset, std::size_t{offset} + size, number, offset,
              shape == parameter_shape::pointers ? certainty::declared : certainty::inferred);
      }
    }
  }
  const auto uses = std::span(x.pointers).subspan(first_use), own = std::span(x.memory.uses).subspan(first_own);
  doubt_ends(x, uses, own);
  keep_for_questions(x.nodes[node], block, uses, own);
  coverage& covered = x.nodes[node].covered;
  if (resolved) {
    covered = coverage::resolved;
  } else if (layout == nullptr && block.empty()) {
    covered = n.function && n.function->layout_known ? coverage::takes_nothing : coverage::not_recorded;
  } else {
    covered = coverage::no_address;
  }
}

// When the node was captured: with the graph, but for child graphs and for captures into a graph that had nodes before.
// The driver lists nodes in the order in which they were made, which nothing promises.
void model::enter_window(const process_state& p, const exec_state& x, const event_view& v,
                         const trace::node_record& n) {
  if (n.parent != 0) return; // that of the child graph it is in
  const std::uint64_t place = top_nodes_++;
  window_ = {x.begin_ns, x.end_ns, 0};
  window_guessed_ = false;
  const auto g = p.graphs.find(v.event->arg[1]);
  if (n.type == node_type::graph) {
    const node_window* of = nullptr;
    const auto child = p.graphs.find(n.value[0]); // of an edit; else the driver's own copy
    node_window whole;
    if (child != p.graphs.end() && child->second.capture != 0) {
      whole = {child->second.begin_ns, child->second.end_ns, 0};
      of = &whole;
    } else if (g != p.graphs.end()) {
      const auto known = g->second.children.find(n.node);
      if (known != g->second.children.end()) of = &known->second;
    }
    if (of == nullptr) return;
    window_ = *of;
    window_.end_ns = std::max(window_.end_ns, p.node_edited_ns > window_.begin_ns ? p.node_edited_ns : 0);
    if (child != p.graphs.end()) window_.end_ns = std::max(window_.end_ns, child->second.edited_ns);
    return;
  }
  if (g == p.graphs.end() || g->second.parts.size() < 2 || v.call->cls == trace::call_class::exec_edit) return;
  for (const node_window& part : g->second.parts) {
    if (place >= part.nodes) continue;
    window_guessed_ = &part != &g->second.parts.back();
    window_ = {part.begin_ns, std::max(part.end_ns, window_guessed_ ? 0 : x.end_ns), 0};
    break;
  }
  if (std::max(g->second.edited_ns, p.node_edited_ns) > g->second.parts.front().begin_ns)
    window_.end_ns = std::max(window_.end_ns, x.end_ns); // any of them may have been changed
}

// What a set or a plain copy touches may be mapped in several pieces, each of which can go by itself.
void model::add_range(process_state& p, exec_state& x, const pointer_use& use, std::uint64_t bytes) {
  constexpr int most_pieces = 4096;
  add_pointer(p, x, use);
  auto piece = p.memory.find(use.address);
  for (int i = 0; i < most_pieces && piece && piece->kind == memory_kind::mapped; ++i) {
    const std::uint64_t next = piece->base + piece->size;
    if (next - use.address >= bytes) return;
    piece = p.memory.find(next);
    if (!piece || piece->kind != memory_kind::mapped) return;
    pointer_use more = use;
    more.address = next;
    add_pointer(p, x, std::move(more));
  }
}

void model::read_node(process_state& p, exec_state& x, const event_view& v, const side_record& r) {
  const auto n = r.as<trace::node_record>();
  enter_window(p, x, v, n);
  const auto place = static_cast<std::uint32_t>(x.nodes.size());
  const auto payload = r.payload(sizeof(n), n.bytes);
  exec_node node;
  node.index = n.index;
  node.node = node.named = n.node;
  node.type = n.type;
  node.parent = n.parent;
  if (n.type == node_type::kernel) {
    const auto f = p.functions.find(n.value[0]);
    if (f != p.functions.end()) {
      if (n.value[3] != 0) f->second->module = n.value[3]; // launched by its kernel, no call asked for the function
      node.function = f->second;
    }
  }
  std::copy(std::begin(n.value), std::end(n.value), std::begin(node.value));
  if (keep_parameters) node.parameters.assign(payload.begin(), payload.end());
  if (n.type == node_type::conditional) ++x.bodies;
  x.nodes.push_back(std::move(node));
  x.content = add_to_content(x.content, n, payload);
  const auto at = [&](std::uint64_t address, operand role) {
    pointer_use u;
    u.address = address;
    u.node = place;
    u.role = role;
    return u;
  };
  const auto side = [&](std::uint64_t address, std::uint64_t host, std::uint64_t array, std::uint64_t stack) {
    if ((n.value[3] & array) != 0) return;
    const operand role = host == host_destination ? operand::destination : operand::source;
    if ((n.value[3] & host) == 0) {
      add_range(p, x, at(address, role), (n.value[3] & in_rows) != 0 ? 0 : n.value[2]);
    } else {
      add_host(p, x, v, at(address, role), n.value[2], (n.value[3] & stack) != 0 ? n.value[4] : 0);
    }
  };
  switch (n.type) {
  case node_type::kernel:
    if (n.value[4] != 0) { // a kernel on the device may give it other ones, and nobody sees that
      x.nodes.back().covered = coverage::of_device;
      break;
    }
    read_parameters(p, x, place, payload);
    break;
  case node_type::memcpy:
    side(n.value[0], host_destination, array_destination, destination_on_stack);
    side(n.value[1], host_source, array_source, source_on_stack);
    if ((n.value[3] & host_destination) != 0) x.host_operands.push_back({n.value[0], n.value[2], place, true});
    if ((n.value[3] & host_source) != 0) x.host_operands.push_back({n.value[1], n.value[2], place, false});
    break;
  case node_type::memset:
    add_range(p, x, at(n.value[0], operand::destination), (n.value[3] & in_rows) != 0 ? 0 : n.value[2]);
    break;
  case node_type::host:
    add_host(p, x, v, at(n.value[1], operand::data), 1, n.value[2]);
    break;
  case node_type::batch_mem_op:
    for (std::size_t i = 0; i + 16 <= payload.size(); i += 16)
      add_pointer(p, x, at(word_at(payload, i), operand::batch));
    break;
  default:
    break;
  }
  descriptors_.clear();
}

void model::read_nodes(process_state& p, exec_state& x, const event_view& v, const thread_cursor& records) {
  descriptors_.clear();
  top_nodes_ = 0;
  window_ = {x.begin_ns, x.end_ns, 0};
  window_guessed_ = false;
  fill_table(p, 0, 0, records);
  records.each_side_record([&](const side_record& r) {
    if (r.kind == record_kind::block) {
      const auto b = r.as<trace::payload_record>();
      add_block(p, v, b.key, b.value, b.aux | std::uint64_t{b.id} << 32);
    }
    if (r.kind != record_kind::node) return;
    const auto n = r.as<trace::node_record>();
    if (n.type == node_type::mem_alloc) { // known first: a node that uses it may come before it in the driver's list
      x.own_memory.emplace_back(n.value[0], n.value[1]);
      p.graph_blocks[n.value[0]].bytes = n.value[1];
    }
  });
  records.each_side_record([&](const side_record& r) {
    if (r.kind == record_kind::descriptor) {
      descriptors_.push_back(r.as<trace::payload_record>());
    } else if (r.kind == record_kind::node) {
      read_node(p, x, v, r);
    }
  });
}

// ---- what becomes of the memory ----

// Blocks that a framework hands out and takes back. Only those are recorded that a graph has to do with.
void model::block_event(process_state& p, const event_view& v) {
  const trace::event& e = *v.event;
  if (v.call->cls == trace::call_class::block_free) {
    p.blocks.remove(e.arg[0], freed_by(v));
    return;
  }
  add_block(p, v, e.arg[0], e.arg[1], e.arg[2]);
}

void model::add_block(process_state& p, const event_view& v, std::uint64_t base, std::uint64_t size,
                      std::uint64_t flags) {
  const auto there = p.blocks.find(base);
  const bool before = (flags & block_known_before) != 0;
  if (size == 0 || (before && there && there->base == base && there->size == size)) return;
  allocation a;
  a.base = base;
  a.size = size;
  a.kind = memory_kind::block;
  a.made_by = &framework_allocator();
  a.made_thread = before ? 0 : v.thread->index;
  a.made_ns = v.at_ns;
  a.private_pool = (flags & block_private) != 0;
  a.place = static_cast<std::uint32_t>(flags >> 32);
  if (a.private_pool) p.memory.make_private(base);
  p.blocks.add(a);
  p.blocks.changed(); // what a graph had may belong to somebody now
}

// free, realloc, munmap of memory that a graph refers to.
void model::host_gone(process_state& p, const event_view& v) {
  const std::uint64_t base = v.event->arg[0], size = std::max<std::uint64_t>(v.event->arg[1], 1);
  for (const auto& w : p.host_ranges) {
    const auto a = w.lock();
    if (!a || !a->live || a->kind != memory_kind::pageable) continue;
    if (a->base >= base + size || base >= a->base + a->size) continue;
    note_end(*a, v);
    p.memory.changed();
  }
  for (const auto& [handle, x] : p.execs) registered_gone(p, *x, base, size, v);
}

// Registered memory is the program's own, and may be registered in one piece though it was allocated in many: what goes
// is the operand that lies in the block, not all that was registered.
void model::registered_gone(process_state& p, exec_state& x, std::uint64_t base, std::uint64_t size,
                            const event_view& v) {
  for (pointer_use& u : x.pointers) {
    if (u.memory->kind != memory_kind::registered) continue;
    std::uint64_t bytes = 1;
    for (const host_operand& o : x.host_operands)
      if (o.node == u.node && o.address == u.address) bytes = std::max(bytes, o.bytes);
    if (u.address >= base + size || base >= u.address + bytes) continue;
    auto gone = std::make_shared<allocation>(*u.memory);
    note_end(*gone, v);
    u.memory = std::move(gone);
    u.seen = pointer_state::live; // that it was unregistered is less, and may have been told
    p.memory.changed();
  }
}

namespace {

// Whether two calls of one thread were made on one stack: their call stacks begin at the same place. A fiber begins
// elsewhere, and where it lies says nothing about the frames of its thread. A call stack that was cut off has no begin.
bool on_one_stack(const traced_process& t, std::uint32_t one, std::uint32_t other) {
  constexpr std::size_t most_frames = 24; // that the shim records
  const auto a = t.stack(one), b = t.stack(other);
  return !a.empty() && !b.empty() && a.size() < most_frames && b.size() < most_frames && a.back() == b.back();
}

bool has_ended(const traced_process& t, std::uint32_t thread, std::uint64_t by) {
  const auto it = t.threads.find(thread);
  return it != t.threads.end() && it->second.ended != 0 && it->second.ended <= by;
}

} // namespace

// A frame below the stack pointer of its own thread has returned, and with it went what it held; so did all frames of a
// thread that has ended.
void model::stacks_gone(process_state& p, exec_state& x, const event_view& v) {
  const std::uint64_t sp = v.event->arg[2];
  if (!x.has_stack_memory) return;
  for (pointer_use& u : x.pointers) {
    allocation& a = *u.memory;
    if (a.kind != memory_kind::stack || (!a.live && a.end_proved)) continue;
    const bool thread_ended = has_ended(p.trace, a.made_thread, v.event->begin);
    const bool returned = sp != 0 && a.made_thread == v.thread->index && sp < a.stack_high && a.base + a.size <= sp;
    if (!thread_ended && !returned) continue;
    const bool proved = thread_ended || on_one_stack(p.trace, x.site, v.event->stack);
    if (!a.live && !proved) continue; // no more than was known
    note_end(a, v);
    a.freed_ns = p.trace.to_ns(v.event->begin); // at the latest
    a.freed_by = nullptr;                       // no call: the function returned
    a.thread_ended = thread_ended;
    a.end_proved = proved;
    u.seen = pointer_state::live; // to be told, perhaps again
    p.memory.changed();
  }
}

} // namespace capturesan
