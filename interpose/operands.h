// Where the recorded operands of a call come from: the accessors that calls.def names. Each is a type with
//   before(args)        read at entry, while what the caller passed is surely valid
//   after(args, value)  read after the call returned CUDA_SUCCESS; `value` is what before() gave
#pragma once

#include <tuple>
#include <type_traits>

#include "interpose/cuda_abi.h"

namespace capturesan::shim::operand {

template <class T>
u64 to_u64(T v) {
  if constexpr (std::is_pointer_v<T>) {
    return reinterpret_cast<u64>(v);
  } else if constexpr (std::is_enum_v<T>) {
    return static_cast<u64>(static_cast<std::underlying_type_t<T>>(v));
  } else if constexpr (std::is_class_v<T>) {
    return 0; // a structure passed by value carries no operand
  } else {
    return static_cast<u64>(v);
  }
}

template <class T>
u64 read(T pointer) { // what an argument points to
  if constexpr (std::is_pointer_v<T>) {
    using V = std::remove_cv_t<std::remove_pointer_t<T>>;
    if constexpr (!std::is_void_v<V> && !std::is_function_v<V>) {
      return pointer == nullptr ? 0 : to_u64(*pointer);
    }
  }
  return 0;
}

struct none {
  template <class Args>
  static u64 before(const Args&) {
    return 0;
  }
  template <class Args>
  static u64 after(const Args&, u64 v) {
    return v;
  }
};

template <std::size_t N>
struct value : none {
  template <class Args>
  static u64 before(const Args& a) {
    return to_u64(std::get<N>(a));
  }
};

template <std::size_t N>
struct in : none {
  template <class Args>
  static u64 before(const Args& a) {
    return read(std::get<N>(a));
  }
};

template <std::size_t N>
struct out : none {
  template <class Args>
  static u64 after(const Args& a, u64) {
    return read(std::get<N>(a));
  }
};

template <std::size_t N, u64 K>
struct scaled : none {
  template <class Args>
  static u64 before(const Args& a) {
    return to_u64(std::get<N>(a)) * K;
  }
};

// (dst, pitch, value, width, height, ...) of cuMemsetD2D*; the bytes touched from the first to the last one.
template <u64 K>
struct area : none {
  template <class Args>
  static u64 before(const Args& a) {
    const u64 height = to_u64(std::get<4>(a));
    const u64 row = to_u64(std::get<3>(a)) * K;
    return height == 0 ? 0 : to_u64(std::get<1>(a)) * (height - 1) + row;
  }
};

// (dptr, pPitch, width, height, element) of cuMemAllocPitch.
struct pitch : none {
  template <class Args>
  static u64 after(const Args& a, u64) {
    return read(std::get<1>(a)) * to_u64(std::get<3>(a));
  }
};

constexpr u64 pack_grid(u64 x, u64 y, u64 z) { return x | (y & 0xffff) << 32 | (z & 0xffff) << 48; }
constexpr u64 pack_block(u64 x, u64 y, u64 z, u64 shared) {
  return (x & 0xffff) | (y & 0xffff) << 16 | (z & 0xffff) << 32 | ((shared + 1023) / 1024) << 48;
}

template <std::size_t N>
struct grid : none {
  template <class Args>
  static u64 before(const Args& a) {
    return pack_grid(to_u64(std::get<N>(a)), to_u64(std::get<N + 1>(a)), to_u64(std::get<N + 2>(a)));
  }
};
template <std::size_t N>
struct block : none {
  template <class Args>
  static u64 before(const Args& a) {
    return pack_block(to_u64(std::get<N>(a)), to_u64(std::get<N + 1>(a)), to_u64(std::get<N + 2>(a)),
                      to_u64(std::get<N + 3>(a)));
  }
};
template <std::size_t N>
struct grid_ex : none {
  template <class Args>
  static u64 before(const Args& a) {
    const CUlaunchConfig* c = std::get<N>(a);
    return c == nullptr ? 0 : pack_grid(c->gridDimX, c->gridDimY, c->gridDimZ);
  }
};
template <std::size_t N>
struct block_ex : none {
  template <class Args>
  static u64 before(const Args& a) {
    const CUlaunchConfig* c = std::get<N>(a);
    return c == nullptr ? 0 : pack_block(c->blockDimX, c->blockDimY, c->blockDimZ, c->sharedMemBytes);
  }
};

// 2D and 3D copy structures, all versions: the fields have one name in each.
template <class Copy>
concept copy_structure = requires(const Copy& c) {
  c.dstDevice;
  c.srcDevice;
  c.WidthInBytes;
};
template <std::size_t N>
struct copy_dst : none {
  template <class Args>
  static u64 before(const Args& a) {
    const auto* c = std::get<N>(a);
    if (c == nullptr) {
      return 0;
    }
    return c->dstMemoryType == CU_MEMORYTYPE_HOST ? to_u64(c->dstHost) : static_cast<u64>(c->dstDevice);
  }
};
template <std::size_t N>
struct copy_src : none {
  template <class Args>
  static u64 before(const Args& a) {
    const auto* c = std::get<N>(a);
    if (c == nullptr) {
      return 0;
    }
    return c->srcMemoryType == CU_MEMORYTYPE_HOST ? to_u64(c->srcHost) : static_cast<u64>(c->srcDevice);
  }
};
template <std::size_t N>
struct copy_bytes : none {
  template <class Args>
  static u64 before(const Args& a) {
    const auto* c = std::get<N>(a);
    if (c == nullptr) {
      return 0;
    }
    u64 bytes = static_cast<u64>(c->WidthInBytes) * (c->Height == 0 ? 1 : static_cast<u64>(c->Height));
    if constexpr (requires { c->Depth; }) {
      bytes *= c->Depth == 0 ? 1 : static_cast<u64>(c->Depth);
    }
    return bytes;
  }
};

// The first operation of a 3D batch (CUDA_MEMCPY3D_BATCH_OP): its ends if they are plain memory, and its bytes.
template <class Operand>
u64 batch_end(const Operand& o) {
  return o.type == CU_MEMCPY_OPERAND_TYPE_POINTER ? static_cast<u64>(o.op.ptr.ptr) : 0;
}
template <std::size_t N>
struct batch_dst : none {
  template <class Args>
  static u64 before(const Args& a) {
    const CUDA_MEMCPY3D_BATCH_OP* first = std::get<N>(a);
    return first == nullptr || std::get<N - 1>(a) == 0 ? 0 : batch_end(first->dst);
  }
};
template <std::size_t N>
struct batch_src : none {
  template <class Args>
  static u64 before(const Args& a) {
    const CUDA_MEMCPY3D_BATCH_OP* first = std::get<N>(a);
    return first == nullptr || std::get<N - 1>(a) == 0 ? 0 : batch_end(first->src);
  }
};
template <std::size_t N>
struct batch_bytes : none {
  template <class Args>
  static u64 before(const Args& a) {
    const CUDA_MEMCPY3D_BATCH_OP* first = std::get<N>(a);
    if (first == nullptr || std::get<N - 1>(a) == 0) {
      return 0;
    }
    return static_cast<u64>(first->extent.width) * first->extent.height * first->extent.depth;
  }
};

template <std::size_t N>
struct child_graph : none {
  template <class Args>
  static u64 before(const Args& a) {
    const CUgraphNodeParams* p = std::get<N>(a);
    return p == nullptr || p->type != CU_GRAPH_NODE_TYPE_GRAPH ? 0 : to_u64(p->graph.graph);
  }
};

template <std::size_t N>
struct instantiate_flags : none {
  template <class Args>
  static u64 before(const Args& a) {
    const CUDA_GRAPH_INSTANTIATE_PARAMS* p = std::get<N>(a);
    return p == nullptr ? 0 : static_cast<u64>(p->flags);
  }
};
template <std::size_t N>
struct update_result : none {
  template <class Args>
  static u64 after(const Args& a, u64) {
    const CUgraphExecUpdateResultInfo* p = std::get<N>(a);
    return p == nullptr ? 0 : static_cast<u64>(p->result);
  }
};
template <std::size_t N>
struct text : none {
  template <class Args>
  static u64 before(const Args& a) {
    return to_u64(std::get<N>(a));
  } // address of the name
};

// Which of an operand's halves has to run even if the call failed: an update says why it was refused.
template <class Operand>
inline constexpr bool valid_on_failure = false;
template <std::size_t N>
inline constexpr bool valid_on_failure<update_result<N>> = true;

// The stream of a call is its first CUstream parameter, or the one in a launch configuration.
template <class T>
bool take_stream(u64& to, const T& v) {
  if constexpr (std::is_same_v<T, CUstream>) {
    to = reinterpret_cast<u64>(v);
    return true;
  } else if constexpr (std::is_same_v<T, const CUlaunchConfig*>) {
    to = v == nullptr ? 0 : reinterpret_cast<u64>(v->hStream);
    return true;
  }
  return false;
}
template <class... A>
u64 stream_of(const A&... a) {
  u64 stream = 0;
  static_cast<void>((take_stream(stream, a) || ...));
  return stream;
}

// Parameter arrays of a launch: its `void**` parameters in order (values, extra).
template <class... A>
void take_arrays(void*** to, const A&... a) {
  int n = 0;
  const auto take = [&](const auto& v) {
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(v)>, void**>) {
      if (n < 2) {
        to[n++] = v;
      }
    }
  };
  (take(a), ...);
}

} // namespace capturesan::shim::operand
