"""What the programs beside this one share: libraries that may be missing, and captures."""
import sys


def need(name):
    """A library, or the end of the program: exit code 77 and the reason."""
    try:
        return __import__(name)
    except ImportError as error:
        print(f"skipped: {error}")
        sys.exit(77)


def capture(torch, work, **options):
    """`work` as a graph, after three runs beside it, as PyTorch's documentation asks for."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            work()
    torch.cuda.current_stream().wait_stream(side)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, **options):
        work()
    return graph


def add_with_cupy(times):
    """A CuPy stream captured and its graph launched so often; the data, which began at 1."""
    cupy = need("cupy")
    data = cupy.zeros(1000, dtype=cupy.float32)
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        data += 1
        stream.synchronize()
        stream.begin_capture()
        data += 1
        graph = stream.end_capture()
        for _ in range(times):
            graph.launch(stream)
        stream.synchronize()
    return data
