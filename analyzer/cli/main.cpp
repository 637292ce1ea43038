#include "analyzer/cli/command.h"

int main(int argc, char** argv) { return capturesan::cli::dispatch({argv + (argc > 0 ? 1 : 0), argv + argc}); }
