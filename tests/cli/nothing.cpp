// In place of the shim and of the simulated driver: a library that does nothing.
extern "C" int capturesan_test_nothing() { return 0; }
