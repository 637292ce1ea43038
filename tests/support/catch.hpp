// Catch2 as the machine has it: version 3 (many headers) or version 2 (one header).
#pragma once

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
#else
#include <catch2/catch.hpp>
#endif
