"""Compiles FlashAttention-4's forward kernels and prints the times as JSON.

usage: fa4_worker.py CHIP SMS KERNEL...       a KERNEL is TYPE,HEAD_DIM,CAUSAL
Run by compile-time-fa4.py in a process of its own. The first kernel's times are
those of a process that has compiled nothing yet. No GPU is needed: tensors are
fake ones of PyTorch, and what the CuTe DSL would ask the driver is answered here.
"""

import json
import os
import pathlib
import signal
import sys
import tempfile
import time


def cpu_clock(pid: int) -> int:
    """The clock of a process's processor time, all threads; see clock_getcpuclockid."""
    return (~pid << 3) | 2


def watch(folder: pathlib.Path) -> None:
    """Notes when PTX appears, and what processor time the parent had taken by then.

    The compiler goes from its input to machine code in one call; the PTX that it
    is told to keep is the one sign of its progress.
    """
    parent = os.getppid()
    while os.getppid() == parent:
        for ptx in folder.glob("*.ptx"):
            note = ptx.with_suffix(".seen")
            if not note.exists():
                note.write_text(json.dumps(
                    [time.monotonic(), time.clock_gettime(cpu_clock(parent))]))
        time.sleep(0.001)


def main() -> int:
    chip, sms, kernels = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        watcher = os.fork()
        if watcher == 0:
            watch(folder)
            os._exit(0)
        try:
            os.environ.update(
                CUTE_DSL_KEEP="ptx", CUTE_DSL_DUMP_DIR=name, CUTE_DSL_ARCH=chip,
                CUTE_DSL_DISABLE_FILE_CACHING="1", FLASH_ATTENTION_CUTE_DSL_CACHE_ENABLED="0",
                FLASH_ATTENTION_ARCH=chip.rstrip("a"), FLASH_ATTENTION_NUM_SMS=str(sms),
            )  # fmt: skip
            report = compile_all(sms, kernels, folder, begin)
        finally:
            os.kill(watcher, signal.SIGTERM)
            os.waitpid(watcher, 0)
    print(json.dumps(report))
    return 0


def compile_all(sms: int, kernels: list[str], folder: pathlib.Path, begin: float) -> dict:
    import importlib.metadata

    import cutlass.utils
    import torch
    from cutlass.base_dsl import compiler
    from flash_attn.cute import interface
    from torch._subclasses.fake_tensor import FakeTensorMode

    # What it would ask the driver for.
    hardware = cutlass.utils.HardwareInfo
    hardware.__init__ = lambda self, *_, **__: None
    hardware.get_max_active_clusters = lambda self, cluster, *_, **__: sms // cluster
    hardware.get_device_multiprocessor_count = lambda self, *_: sms

    # When the Python code has been traced: its MLIR goes to the passes.
    traced = []
    run_passes = compiler.Compiler.compile

    def note_traced(*args, **options):
        traced.append((time.monotonic(), time.process_time()))
        return run_passes(*args, **options)

    compiler.Compiler.compile = note_traced

    report = {
        "version": importlib.metadata.version("flash-attn-4"),
        "dsl": importlib.metadata.version("nvidia-cutlass-dsl"),
        "import": time.monotonic() - begin,
        "import_cpu": time.process_time(),
        "kernels": [],
    }
    for kernel in kernels:
        dtype, dim, causal = kernel.split(",")
        for old in folder.iterdir():
            old.unlink()
        traced.clear()
        with FakeTensorMode():
            q, k, v = (
                torch.empty((4, 4096, heads, int(dim)), dtype=getattr(torch, dtype), device="cuda")
                for heads in (32, 8, 8)
            )
            start, cpu = time.monotonic(), time.process_time()
            interface.flash_attn_func(q, k, v, causal=causal == "1", return_lse=True)
            end, cpu_end = time.monotonic(), time.process_time()
        (note,) = folder.glob("*.seen")
        seen, seen_cpu = json.loads(note.read_text())
        if len(traced) != 1:
            sys.exit(f"error: expected one compilation, got {len(traced)}")
        report["kernels"].append({
            "kernel": kernel,
            "trace": traced[0][0] - start, "trace_cpu": traced[0][1] - cpu,
            "ptx": seen - start, "ptx_cpu": seen_cpu - cpu,
            "all": end - start, "all_cpu": cpu_end - cpu,
        })  # fmt: skip
    return report


if __name__ == "__main__":
    sys.exit(main())
