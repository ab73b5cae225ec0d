"""Times the kernels of one problem on the GPU; imports torch.

Calls are captured into CUDA graphs over sets of inputs that together exceed the
L2 cache twice. These kernels run at the limit of the board's power: each one
heats the chip with its own work and is timed for as long. The kernels take turns
in rounds of rotated order; after the first round only those near the fastest
one go on. A figure is the median of all replays of all rounds.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch

from .. import runtime
from ..errors import AttnError
from .candidates import Candidate, Problem

_DEVICE = "cuda"

#: Twice the largest L2 cache of the boards that are known.
_SET_BYTES = 2 * (126 << 20)
#: Calls of a graph are repeated until one replay takes about this long.
_REPLAY_SECONDS = 4e-3
_ROUNDS = 3
#: Slower kernels leave after the first round.
_NEAR = 1.15
_DTYPES = {
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "f32": torch.float32,
    "f8E4M3FN": torch.float8_e4m3fn,
    "f8E5M2": torch.float8_e5m2,
}
#: Largest deviation of two right kernels, relative to the largest value.
_TOLERANCES = {"f16": 2e-3, "bf16": 1.6e-2, "f32": 1e-3}

Tensors = dict[str, torch.Tensor]
Call = Callable[[int], Tensors]


def get_board() -> str | None:
    """The name of the current GPU, or None."""
    return torch.cuda.get_device_name() if torch.cuda.is_available() else None


def _make(tensor: dict[str, Any], fill: Callable[[torch.Tensor], object]) -> torch.Tensor:
    """A tensor of a launch record."""
    name, shape = tensor["name"], tensor["shape"]
    if min([*shape, *tensor["strides"]]) < 0:
        raise AttnError(f'tensor "{name}" has sizes that the launch decides')
    if tensor["dtype"] not in _DTYPES:
        raise AttnError(f'tensor "{name}": elements of type {tensor["dtype"]} are not timed')
    made = torch.empty_strided(
        shape, tensor["strides"], dtype=_DTYPES[tensor["dtype"]], device=_DEVICE
    )
    fill(made)
    return made


def make_sets(record: dict[str, Any]) -> list[Tensors]:
    """Inputs, enough to exceed the L2 cache twice; at least two sets."""
    if (record.get("problem") or {}).get("varlen"):
        raise AttnError("packed sequences are not timed: the record has no lengths")
    inputs = [each for each in record["tensors"] if each["access"] == "read"]
    size = sum(2 * math.prod(each["shape"]) for each in inputs)
    count = max(2, -(-_SET_BYTES // max(size, 1)))

    def fill(tensor: torch.Tensor) -> None:
        # Not every type can be drawn from a distribution.
        tensor.copy_(torch.randn(tensor.shape, device=_DEVICE))

    return [{each["name"]: _make(each, fill) for each in inputs} for _ in range(count)]


def capture_calls(call: Call, count: int, seconds: float) -> tuple[Any, int]:
    """Warms up, estimates one call, and captures calls over `count` sets of tensors, as many as
    take about `seconds`: the graph and its calls."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for index in range(count):
            call(index)
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        call(0)
        end.record()
    torch.cuda.synchronize()
    once = max(begin.elapsed_time(end) / 1000, 1e-6)
    rounds = max(1, math.ceil(seconds / (once * count)))
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(rounds):
            for index in range(count):
                call(index)
    return graph, rounds * count


class _Contestant:
    """One kernel while it is timed."""

    def __init__(self, candidate: Candidate) -> None:
        self.candidate = candidate
        self.graph: Any = None
        self.calls = 0
        self.call: Call | None = None
        self.milliseconds: list[float] = []

    def median(self) -> float:
        return statistics.median(self.milliseconds)

    def capture(self, call: Call, count: int) -> None:
        """Warms up, estimates one call, and captures calls over all sets.

        Keeps `call`: replays write to tensors that may have no other owner, and the
        next capture returns memory without an owner to the driver.
        """
        self.call = call
        self.graph, self.calls = capture_calls(call, count, _REPLAY_SECONDS)

    def run_for(self, seconds: float) -> None:
        """Heats, then times. The GPU is never idle in between: a replay is queued
        before the one ahead of it has ended."""
        start, before = time.perf_counter(), len(self.milliseconds)
        pending: list[tuple[bool, torch.cuda.Event, torch.cuda.Event]] = []
        while True:
            elapsed = time.perf_counter() - start
            if elapsed > 2 * seconds and len(self.milliseconds) > before:
                break
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            self.graph.replay()
            end.record()
            pending.append((elapsed > seconds, begin, end))
            if len(pending) > 1:
                self._harvest(*pending.pop(0))
        for item in pending:
            self._harvest(*item)

    def _harvest(self, timed: bool, begin: torch.cuda.Event, end: torch.cuda.Event) -> None:
        end.synchronize()
        if timed:
            self.milliseconds.append(begin.elapsed_time(end) / self.calls)


def compare(got: Tensors, want: Tensors, dtypes: dict[str, str]) -> str:
    """What differs between the outputs of two kernels; empty if nothing does."""
    for name, tensor in got.items():
        tolerance = _TOLERANCES[dtypes[name]]
        a, b = tensor.float(), want[name].float()
        # Rows without keys have an LSE of -inf.
        if not torch.equal(torch.isfinite(a), torch.isfinite(b)) or torch.isnan(a).any():
            return f'"{name}" is not finite where that of the first kernel is'
        a, b = (torch.nan_to_num(each, neginf=0.0, posinf=0.0) for each in (a, b))
        error = float((a - b).abs().max() / b.abs().max().clamp(min=1e-30))
        if error > tolerance:
            return f'"{name}" differs by {error:.1e} from the first kernel, accepted {tolerance}'
    return ""


def blame(candidates: list[Candidate], differ: list[bool]) -> None:
    """Where most kernels differ from the first one, none can be trusted."""
    if sum(differ) * 2 > len(differ):
        for each in candidates:
            each.error = each.error or "most kernels differ from the first one"


class Timer:
    """Times all kernels of problems."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def run(self, problem: Problem, read: Callable[[str], bytes]) -> None:
        """Fills in what was measured, or why a kernel cannot be taken. `read`
        gives the bundle of a candidate by its name."""
        try:
            self._run(problem, read)
        finally:
            torch.cuda.empty_cache()

    def _run(self, problem: Problem, read: Callable[[str], bytes]) -> None:
        sets: list[Tensors] = []
        outputs: Tensors = {}
        first: Tensors | None = None
        differ: list[bool] = []
        contestants: list[_Contestant] = []
        for candidate in problem.candidates:
            candidate.error, candidate.measured_us = "", None
            try:
                kernel = runtime.load(read(candidate.name))
                record = kernel.launch_record
                written = [each for each in record["tensors"] if each["access"] != "read"]
                if not sets:
                    sets = make_sets(record)
                    nan = math.nan
                    outputs = {
                        each["name"]: _make(each, lambda t: t.fill_(nan)) for each in written
                    }
                joins = {each["name"] for each in written if each["access"] == "update"}
                for name, tensor in outputs.items():
                    # Results join an update: it begins at 0, as the caller has to write.
                    tensor.fill_(0 if name in joins else math.nan)

                def call(index: int, kernel: runtime.LoadedKernel = kernel) -> Tensors:
                    kernel(**sets[index], **outputs)
                    return outputs

                call(0)
                torch.cuda.synchronize()
                if first is None:
                    first = {name: tensor.clone() for name, tensor in outputs.items()}
                dtypes = {each["name"]: each["dtype"] for each in written}
                candidate.error = compare(outputs, first, dtypes)
                differ.append(bool(candidate.error))
                if candidate.error:
                    continue
                contestant = _Contestant(candidate)
                contestant.capture(call, len(sets))
                contestants.append(contestant)
            except (AttnError, RuntimeError, ValueError) as error:
                candidate.error = str(error).split("\n")[0][:160]
        blame(problem.candidates, differ)
        if any(not each.candidate.error for each in contestants):
            self._time(problem, [each for each in contestants if not each.candidate.error])

    def _time(self, problem: Problem, contestants: list[_Contestant]) -> None:
        for turn in range(_ROUNDS):
            start = turn * len(contestants) // _ROUNDS
            order = contestants[start:] + contestants[:start]
            for contestant in reversed(order) if turn % 2 else order:
                contestant.run_for(self.seconds)
            for contestant in contestants:
                contestant.candidate.measured_us = 1000 * contestant.median()
                contestant.candidate.replays = len(contestant.milliseconds)
            best = min(each.median() for each in contestants)
            contestants = [
                each
                for each in contestants
                if each.median() <= _NEAR * best or each.candidate.plan == problem.planned
            ]
