// A call made in a global capture on a non-blocking stream, then in a relaxed one. Of each: result, status after it,
// EndCapture, nodes.
#pragma once

#include "facts.h"

namespace facts {

template <class Setup, class Call>
void tell_both(kit& k, Setup&& set_up, Call&& call) {
  k.start();
  for (const auto mode : {CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_RELAXED}) {
    auto prepared = set_up();
    k.begin(k.stream, mode);
    REQUIRE(k.launch(k.stream));
    k << call(prepared);
    k.tell_end(k.stream);
  }
}

template <class Call>
void tell_both(kit& k, Call&& call) {
  tell_both(
      k, [] { return 0; }, [&](int) { return call(); });
}

} // namespace facts
