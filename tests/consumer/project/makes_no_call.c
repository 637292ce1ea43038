/* Nothing is captured, which is never green. */
int main(void) { return 0; }
