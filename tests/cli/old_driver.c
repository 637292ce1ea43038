/* A libcuda.so.1 of CUDA 11.2. */
int cuDriverGetVersion(int* version) {
  *version = 11020;
  return 0;
}
