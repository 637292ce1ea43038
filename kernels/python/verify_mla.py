"""The verify kernel on PyTorch tensors: a ctypes binding of the C ABI in verify_mla.h. Nothing is built against torch.

    device = open_device(0)
    step = Step(device, q=..., kv=..., ..., scale=0.1447)   # checks everything once, allocates the workspace
    step.launch()                                            # two kernel launches on the current stream; capturable

Raises VerifyMlaError with the library's own sentence. Set VERIFY_MLA_LIBRARY to the path of libverify_mla.so if it is
not beside this file. Tensors must outlive every graph that captured them: only their addresses are kept.
"""

import ctypes
import os

import torch


class VerifyMlaError(RuntimeError):
    pass


class _Buffer(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("elements", ctypes.c_int64), ("dtype", ctypes.c_int32), ("reserved", ctypes.c_int32)]


class Device(ctypes.Structure):
    _fields_ = [(n, ctypes.c_int32) for n in ("ordinal", "sm_count", "smem_per_block", "cc_major", "cc_minor", "l2_bytes")]


_BUFFERS = ("q", "kv", "kv_indptr", "kv_indices", "qo_indptr", "out_cache_loc", "custom_mask", "mask_indptr", "out", "lse", "workspace")


class _Params(ctypes.Structure):
    _fields_ = (
        [("struct_bytes", ctypes.c_uint32)]
        + [(n, ctypes.c_int32) for n in ("variant", "batch", "draft_tokens", "heads", "causal")]
        + [("scale", ctypes.c_float), ("cap", ctypes.c_float)]
        + [(n, _Buffer) for n in _BUFFERS]
        + [("stream", ctypes.c_void_p), ("flags", ctypes.c_uint32)]
        + [(n, ctypes.c_int32) for n in ("min_tiles", "row_granules", "reserved")]
    )


_DTYPES = {torch.bfloat16: 1, torch.float32: 2, torch.int32: 3, torch.int64: 4, torch.uint8: 5, torch.bool: 5}
OLD_PREFIX = 16  # a value of `flags`, a promise: see VERIFY_MLA_OLD_PREFIX in verify_mla.h
VARIANTS = {"balanced": 0, "fixed16": 1, "fixed64": 2, "eager": 3}
_library = None


def _load():
    global _library
    if _library is None:
        here = os.path.dirname(os.path.abspath(__file__))
        path = os.environ.get("VERIFY_MLA_LIBRARY", os.path.join(here, "libverify_mla.so"))
        try:
            _library = ctypes.CDLL(path)
        except OSError as e:
            raise VerifyMlaError(f"cannot load {path}: {e}") from e
    return _library


def _call(name, *args):
    error = ctypes.create_string_buffer(512)
    status = getattr(_load(), name)(*args, error, ctypes.c_size_t(len(error)))
    if status != 0:
        raise VerifyMlaError(f"{name}: {error.value.decode()}")


def open_device(ordinal=0):
    """Once per device, before any capture: queries it and raises the kernels' shared memory limits."""
    device = Device()
    _call("verify_mla_open", ctypes.c_int(ordinal), ctypes.byref(device))
    return device


def _buffer(tensor):
    if tensor is None:
        return _Buffer(None, 0, 0, 0)
    if tensor.device.type != "cuda":
        raise VerifyMlaError(f"tensors must live on the GPU, got one on {tensor.device}")
    if not tensor.is_contiguous():
        raise VerifyMlaError("tensors must be contiguous")
    if tensor.dtype not in _DTYPES:
        raise VerifyMlaError(f"no buffer of the kernel is {tensor.dtype}")
    return _Buffer(tensor.data_ptr(), tensor.numel(), _DTYPES[tensor.dtype], 0)


class Step:
    """One attention layer's verify step over fixed buffers. Keeps the tensors alive."""

    def __init__(self, device, *, batch, draft_tokens, heads, scale, q, kv, kv_indptr, kv_indices, qo_indptr, out_cache_loc,
                 out, lse=None, custom_mask=None, mask_indptr=None, causal=True, cap=0.0, variant="balanced", flags=0,
                 workspace=None):
        if variant not in VARIANTS:
            raise VerifyMlaError(f"unknown variant {variant!r}; there are {', '.join(VARIANTS)}")
        self.device = device
        self.params = _Params(struct_bytes=ctypes.sizeof(_Params), variant=VARIANTS[variant], batch=batch,
                              draft_tokens=draft_tokens, heads=heads, causal=int(causal), scale=scale, cap=cap, flags=flags)
        tensors = dict(q=q, kv=kv, kv_indptr=kv_indptr, kv_indices=kv_indices, qo_indptr=qo_indptr,
                       out_cache_loc=out_cache_loc, custom_mask=custom_mask, mask_indptr=mask_indptr, out=out, lse=lse)
        for name, tensor in tensors.items():
            setattr(self.params, name, _buffer(tensor))
        if workspace is None and variant != "eager":
            need = ctypes.c_int64()
            _call("verify_mla_workspace_bytes", ctypes.byref(device), ctypes.byref(self.params), ctypes.byref(need))
            workspace = torch.empty(need.value, dtype=torch.uint8, device=q.device)
        self.workspace = workspace
        self.params.workspace = _buffer(workspace)
        self._tensors = tensors
        _call("verify_mla_check", ctypes.byref(device), ctypes.byref(self.params))

    def launch(self):
        self.params.stream = torch.cuda.current_stream().cuda_stream
        _call("verify_mla_launch", ctypes.byref(self.device), ctypes.byref(self.params))

    def describe(self):
        text = ctypes.create_string_buffer(512)
        _load().verify_mla_describe(ctypes.byref(self.device), ctypes.byref(self.params), text, ctypes.c_size_t(len(text)))
        return text.value.decode()
