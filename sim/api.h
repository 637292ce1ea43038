// The bodies of the implemented calls, declared from answers.def with the vendor's own types. A body runs with the
// driver's lock held, with valid handles, with stream 0 and its like replaced by the stream they stand for, and after
// admit().
#pragma once

#include "sim/cuda_api.h"

namespace capturesan::sim::api {

#define ANSWER(symbol, ...) decltype(::symbol) symbol;
#define ANSWER_PTSZ(symbol, ...) decltype(::symbol) symbol;
#define ANSWER_PTDS(symbol, ...) decltype(::symbol) symbol;
#define ANSWER_AS(symbol, body, ...)
#include "sim/answers.def"

} // namespace capturesan::sim::api
