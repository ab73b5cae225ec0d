#!/usr/bin/env python3
"""Times attn's kernels on the GPU beside FlashAttention-2, cuDNN and others.

Takes the folder that gpu-kernels.py made. Needs torch and nvidia-ml-py, and
neither the compiler nor a toolkit. Before a kernel is timed, rows of its
output are compared with float64.

Calls are captured into CUDA graphs over input sets that together exceed the
L2 cache twice. These kernels run at the limit of the board's power, so each
contestant heats the chip with its own work for --seconds and is timed for as
long; a second pass goes through them in reverse. A figure is the median of
all replays of both passes, with the mean SM clock and power while timed.

usage: PYTHONPATH=python benchmarks/gpu-speed.py FOLDER [--seconds=0.1]
           [--filter=REGEX] [--peers=fa2,cudnn] [--json=FILE] [--limit=SECONDS]
           [--models]
--models takes only the problems of well-known models (gpu-kernels.py --models),
and compares each with its best peer.
The exit status is 1 when a kernel is wrong or does not run.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import pathlib
import re
import statistics
import sys
import threading
import time

import gpu_cells
import gpu_peers
import gpu_reference
import pynvml
import torch

import attn
import attn.runtime
from attn.tuning.timing import capture_calls

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "scripts"))

from tool_util import progress  # noqa: E402

L2_BYTES = 60 << 20
#: Calls of a graph are repeated until one replay takes about this long.
REPLAY_SECONDS = 4e-3
DTYPES = {"f16": torch.float16, "bf16": torch.bfloat16, "f8E4M3FN": torch.float8_e4m3fn}
POWER_INSTANT = 186  # NVML_FI_DEV_POWER_INSTANT


class Monitor:
    """Reads SM clock and power while `active`."""

    def __init__(self) -> None:
        pynvml.nvmlInit()
        self.device = pynvml.nvmlDeviceGetHandleByIndex(torch.cuda.current_device())
        self.samples: list[tuple[float, float]] = []
        self.active = threading.Event()
        threading.Thread(target=self._run, daemon=True).start()

    def _read_watts(self) -> float:
        value = pynvml.nvmlDeviceGetFieldValues(self.device, [POWER_INSTANT])[0]
        if value.nvmlReturn == 0:
            return value.value.uiVal / 1000
        return pynvml.nvmlDeviceGetPowerUsage(self.device) / 1000

    def _run(self) -> None:
        while True:
            self.active.wait()
            clock = pynvml.nvmlDeviceGetClockInfo(self.device, pynvml.NVML_CLOCK_SM)
            self.samples.append((float(clock), self._read_watts()))
            time.sleep(0.005)


@dataclasses.dataclass
class Contestant:
    """One kernel on one problem."""

    name: str
    graph: torch.cuda.CUDAGraph | None = None
    call: object = None
    calls: int = 0
    milliseconds: list[float] = dataclasses.field(default_factory=list)
    samples: list[tuple[float, float]] = dataclasses.field(default_factory=list)
    error: str = ""

    def get_result(self, flops: float) -> dict:
        if self.error or not self.milliseconds:
            return {"error": self.error or "no time left"}
        ms = statistics.median(self.milliseconds)
        result = {"ms": ms, "tflops": flops / ms / 1e9, "replays": len(self.milliseconds)}
        if self.samples:
            result["mhz"] = statistics.mean(clock for clock, _ in self.samples)
            result["watts"] = statistics.mean(power for _, power in self.samples)
        return result


def make_tensor(cell: gpu_cells.Cell, heads: int, rows: int, d: int) -> torch.Tensor:
    """NaN everywhere, (batch, heads, rows, d) as the cell lays it out in memory."""
    if cell.layout != "bhnd":
        return torch.full((cell.batch, rows, heads, d), math.nan, device="cuda").transpose(1, 2)
    return torch.full((cell.batch, heads, rows, d), math.nan, device="cuda")


def make_sets(cell: gpu_cells.Cell) -> list[tuple[torch.Tensor, ...]]:
    """Sets of q, k, v, enough to exceed the L2 cache twice; at least two."""
    dtype = DTYPES[cell.dtype]

    def draw(heads: int, rows: int, d: int) -> torch.Tensor:
        return make_tensor(cell, heads, rows, d).normal_().to(dtype)

    def draw_values() -> torch.Tensor:
        value = draw(cell.kv_heads, cell.keys, cell.value_d)
        if cell.v_transposed:
            value = value.transpose(2, 3).contiguous().transpose(2, 3)
        return value

    def draw_fused() -> tuple[torch.Tensor, ...]:
        heads = (cell.heads, cell.kv_heads, cell.kv_heads)
        shape = (cell.batch, cell.rows, sum(heads), cell.d)
        rows = torch.randn(shape, device="cuda").to(dtype).transpose(1, 2)
        return rows.split(heads, 1)

    elements = cell.rows * cell.heads + cell.keys * cell.kv_heads
    size = dtype.itemsize * cell.batch * elements * (cell.d + cell.value_d)
    count = max(2, -(-2 * L2_BYTES // size))
    if cell.layout == "fused":
        return [draw_fused() for _ in range(count)]
    return [
        (draw(cell.heads, cell.rows, cell.d), draw(cell.kv_heads, cell.keys, cell.d), draw_values())
        for _ in range(count)
    ]


def make_own(folder, cell, entry, sets, slopes, offsets, sinks):
    """A call of one of our kernels on set number i."""
    kernel = attn.runtime.load(folder / entry["file"])
    fixed: dict[str, torch.Tensor] = {}
    if slopes is not None:
        fixed["capture0"] = slopes
    if sinks is not None:
        fixed["sinks"] = sinks
    if offsets is not None:
        fixed |= {"cu_seqlens_q": offsets, "cu_seqlens_k": offsets}
    outputs = [
        (
            # O of 8-bit operands is bf16.
            make_tensor(cell, cell.heads, cell.rows, cell.value_d).to(
                q.dtype if q.itemsize > 1 else torch.bfloat16
            ),
            torch.full(q.shape[:3], math.nan, dtype=torch.float32, device="cuda"),
        )
        for q, _, _ in sets
    ]

    def call(index: int) -> tuple[torch.Tensor, torch.Tensor]:
        q, k, v = sets[index]
        o, lse = outputs[index]
        kernel(q=q, k=k, v=v, o=o, lse=lse, **fixed)
        return o, lse

    return call


def capture(call, count: int, contestant: Contestant) -> None:
    """Captures calls over all sets."""
    contestant.graph, contestant.calls = capture_calls(call, count, REPLAY_SECONDS)
    # The graph writes to tensors that only the call holds on to.
    contestant.call = call


def run_for(contestant: Contestant, seconds: float, monitor: Monitor) -> None:
    """Heats for `seconds`, then times for as long; the GPU is never idle in
    between, since a replay is queued before the one ahead of it has ended."""
    start = time.perf_counter()
    pending: list[tuple[bool, torch.cuda.Event, torch.cuda.Event]] = []
    first = len(monitor.samples)
    while (elapsed := time.perf_counter() - start) < 2 * seconds or not contestant.milliseconds:
        timed = elapsed > seconds
        if timed and not monitor.active.is_set():
            first = len(monitor.samples)
            monitor.active.set()
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        contestant.graph.replay()
        end.record()
        pending.append((timed, begin, end))
        if len(pending) > 1:
            harvest(contestant, pending.pop(0))
    while pending:
        harvest(contestant, pending.pop(0))
    monitor.active.clear()
    contestant.samples += monitor.samples[first:]


def harvest(contestant: Contestant, item) -> None:
    timed, begin, end = item
    end.synchronize()
    if timed:
        contestant.milliseconds.append(begin.elapsed_time(end) / contestant.calls)


def measure(options, cell: gpu_cells.Cell, entries: list[dict], monitor: Monitor) -> dict:
    """One row of the results."""
    sets = make_sets(cell)
    slopes, offsets = gpu_reference.make_slopes(cell), gpu_reference.make_offsets(cell)
    sinks = gpu_reference.make_sinks(cell)
    row = {"cell": dataclasses.asdict(cell), "name": cell.name, "own": {}, "peers": {}}
    contestants: list[tuple[str, Contestant]] = []
    for entry in entries:
        contestant = Contestant(entry["label"])
        row["own"][entry["label"]] = {key: entry[key] for key in ("plan", "predicted")}
        try:
            call = make_own(options.folder, cell, entry, sets, slopes, offsets, sinks)
            o, lse = call(0)
            error, lse_error = gpu_reference.check(cell, *sets[0], o, lse, slopes, sinks)
            row["own"][entry["label"]] |= {"o_error": error, "lse_error": lse_error}
            capture(call, len(sets), contestant)
        except (attn.AttnError, ValueError, RuntimeError) as error:
            contestant.error = str(error).split("\n")[0][:160]
        contestants.append(("own", contestant))
    peers = gpu_peers.make_peers(cell, slopes, offsets, sinks)
    for name in options.peers or peers:
        if name in peers:
            contestant = Contestant(name)
            try:
                if cell.dtype.startswith("f8"):
                    # 8 bits are a matter of speed at which error.
                    error, _ = gpu_reference.measure_error(
                        cell, *sets[0], peers[name](*sets[0]), None, slopes, sinks
                    )
                    row["peers"][name] = {"o_error": error}
                capture(lambda i, f=peers[name]: f(*sets[i]), len(sets), contestant)
            except Exception as error:  # a peer may fail in any way
                contestant.error = f"{type(error).__name__}: {error}".split("\n")[0][:160]
            contestants.append(("peers", contestant))
    able = [contestant for _, contestant in contestants if not contestant.error]
    for contestant in [*able, *reversed(able)]:
        run_for(contestant, options.seconds, monitor)
    for side, contestant in contestants:
        row[side].setdefault(contestant.name, {}).update(contestant.get_result(cell.flops))
    return row


def format_row(row: dict) -> str:
    """Speed of the planned kernel, and of others where they are faster."""
    own = row["own"]
    first = next(iter(own.values()))
    if "tflops" not in first:
        return f"{row['name']:34} {first['error']}"
    text = f"{row['name']:34} {first['tflops']:5.0f}"
    for name, peer in row["peers"].items():
        if "tflops" in peer:
            text += f" {name} {peer['tflops']:4.0f} {first['tflops'] / peer['tflops']:5.2f}x"
            text += f" err {peer['o_error']:.1e}" if "o_error" in peer else ""
        else:
            text += f" {name} {peer['error'][:60]}"
    text += f"  {first.get('mhz', 0):5.0f} MHz {first.get('watts', 0):4.0f} W"
    text += f"  err {first['o_error']:.1e}"
    best, result = max(own.items(), key=lambda item: item[1].get("tflops", 0))
    if result is not first:
        text += f"  best {best} {result['tflops']:.0f}"
    return text


def compare_with_dense(rows: list[dict]) -> dict[str, list[tuple[float, str]]]:
    """Of fused inputs and of kernels for any lengths, the speed over that of the dense problem's
    kernel."""
    speeds = {}
    for row in rows:
        own = next(iter(row["own"].values()))
        if "tflops" in own:
            speeds[gpu_cells.from_json(row["cell"])] = own["tflops"]
    ratios: dict[str, list[tuple[float, str]]] = {}
    for cell, speed in speeds.items():
        for kind in ("fused", "open"):
            if kind in cell.name.split("-") and cell.dense in speeds:
                ratio = speed / speeds[cell.dense]
                ratios.setdefault(f"dense, {kind}", []).append((ratio, cell.name))
    return ratios


def summarise(rows: list[dict]) -> None:
    """Geometric mean and smallest ratio to each peer over the standard cells,
    and to the best peer of each model."""
    ratios: dict[str, list[tuple[float, str]]] = {}
    for row in rows:
        own = next(iter(row["own"].values()))
        cell = gpu_cells.from_json(row["cell"])
        found = {name: own["tflops"] / peer["tflops"] for name, peer in row["peers"].items()
                 if "tflops" in own and "tflops" in peer}  # fmt: skip
        if cell.model and found:
            ratios.setdefault("the best peer", []).append((min(found.values()), row["name"]))
        elif cell.is_standard:
            for name, ratio in found.items():
                ratios.setdefault(name, []).append((ratio, row["name"]))
    ratios |= compare_with_dense(rows)
    for name, values in ratios.items():
        mean = math.exp(statistics.mean(math.log(ratio) for ratio, _ in values))
        below = sum(ratio < 1 for ratio, _ in values)
        least = min(values)
        print(
            f"ratio to {name}: geometric mean {mean:.3f} over {len(values)} cells, "
            f"{below} below 1, least {least[0]:.3f} ({least[1]})"
        )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--filter", default="", metavar="REGEX")
    parser.add_argument("--seconds", type=float, default=0.1)
    parser.add_argument("--peers", type=lambda text: text.split(","), default=[])
    parser.add_argument("--models", action="store_true")
    parser.add_argument("--limit", type=float, default=math.inf, help="start no cell after it")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    listing = json.loads((options.folder / "kernels.json").read_text(encoding="utf-8"))
    torch.manual_seed(time.time_ns() & 0xFFFFFFFF)
    start, monitor, rows = time.monotonic(), Monitor(), []
    machine = {
        "gpu": torch.cuda.get_device_name(),
        "driver": pynvml.nvmlSystemGetDriverVersion(),
        "torch": torch.__version__,
        "cudnn": torch.backends.cudnn.version(),
        "fa4": gpu_peers.flash_attn_func is not None,
    }
    print(*(f"{key} {value}" for key, value in machine.items()), sep=", ")
    work = [(gpu_cells.from_json(item["cell"]), item["kernels"]) for item in listing["cells"]]
    work = [item for item in work if re.search(options.filter, item[0].name) and item[1]]
    if options.models:
        work = [item for item in work if item[0].model]
    for index, (cell, entries) in enumerate(work):
        if time.monotonic() - start > options.limit:
            print(f"{len(work) - index} cells left out: no time left")
            break
        progress(index, len(work), cell.name)
        rows.append(measure(options, cell, entries, monitor))
        print(format_row(rows[-1]), flush=True)
        torch.cuda.empty_cache()
        if options.json:
            report = {"machine": machine, "chip": listing["chip"], "cubin": listing["cubin"]}
            report |= {"seconds": options.seconds, "rows": rows}
            options.json.write_text(json.dumps(report, indent=1), encoding="utf-8")
    progress(len(work), len(work), "done")
    summarise(rows)
    print(f"{time.monotonic() - start:.0f} s")
    wrong = [row for row in rows if any("tflops" not in kernel for kernel in row["own"].values())]
    return 1 if wrong or len(rows) < len(work) else 0


if __name__ == "__main__":
    sys.exit(main())
