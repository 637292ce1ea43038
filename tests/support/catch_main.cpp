// main() of the Catch2 tests. Version 2 makes it from this macro; version 3 brings it as a library
// (Catch2::Catch2WithMain).
#if !__has_include(<catch2/catch_all.hpp>)
#define CATCH_CONFIG_MAIN
#endif
#include "tests/support/catch.hpp"
