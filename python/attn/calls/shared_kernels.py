"""Which calls share a kernel.

The first call gets a kernel of its own lengths. A call that differs from it in batch or lengths
only gets one for any of them, which later calls share. One query, as a step of a cache that grows
has, gets one for any number of keys at once.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import NamedTuple

from .. import kernel as compiled
from .. import runtime
from ..errors import CompileError
from ..launch import events
from ..tracing.mod_regions import Regions

#: Calls of other lengths that are remembered.
_KEPT_LENGTHS = 4096
#: Keys that a kernel of one query is planned for, at least, and how many times as many it takes.
_FEWEST_KEYS = 4096
_MOST_TIMES = 4

_lock = threading.Lock()
_loaded: dict[object, runtime.LoadedKernel] = {}
#: The lengths of the first call of each kind.
_first: dict[object, Lengths] = {}
#: Keys that kernels of one query are planned for, by kind and batch.
_planned_keys: dict[object, int] = {}


class Lengths(NamedTuple):
    """What the calls of a kind may differ in."""

    batch: int
    queries: int
    keys: int


class Problem(NamedTuple):
    """A kernel to compile."""

    chip: str
    flags: Mapping[str, object]
    regions: Regions | None
    #: The only schedule that takes the problem, if the planner is not to look for one.
    schedule: str | None = None
    #: Any number of keys, not that of the flags.
    has_open_keys: bool = False
    #: Why only `schedule` takes it; the same kernel whatever that is.
    reason: str = ""

    def get_key(self) -> object:
        flags = tuple(self.flags.items())
        return (self.chip, flags, self.regions, self.schedule, self.has_open_keys)


def _compile(problem: Problem) -> compiled.Kernel:
    chip, flags, regions, schedule, has_open_keys, _ = problem
    if has_open_keys:
        return compiled.compile_open_keys(chip, flags, regions)
    return compiled.compile_flags(chip, flags, regions, schedule)


def load(problem: Problem) -> runtime.LoadedKernel:
    """The loaded kernel of a problem, compiled by the first call."""
    key = problem.get_key()
    kernel = _loaded.get(key)
    if kernel is not None:
        return kernel
    made = _compile(problem)
    events.tell("kernel for %s: %s", problem.flags["q"], made.plan)
    for note in made.plan_notes:
        events.tell("kernel for %s: %s", problem.flags["q"], note)
    if problem.reason:
        events.tell("kernel for %s: by mma.sync, since %s", problem.flags["q"], problem.reason)
    loaded = made.load()
    with _lock:
        return _loaded.setdefault(key, loaded)


def _is_known(problem: Problem) -> bool:
    """Whether the kernel need not be compiled."""
    if problem.get_key() in _loaded:
        return True
    return compiled.is_compiled(problem.chip, problem.flags, problem.regions)


def _open_keys(own: Problem, lengths: Lengths, mixed: Problem) -> Problem:
    """The kernel of as many queries, in runs, for any number of keys."""
    kind = (mixed.get_key(), lengths.batch)
    keys = _planned_keys.get(kind, 0)
    if lengths.keys > _MOST_TIMES * keys:
        # More keys are to come. No other extent has the number: columns are even.
        keys = max(_FEWEST_KEYS, 2 << lengths.keys.bit_length()) + 1
        while f"x{keys}x" in f"{own.flags['q']}x{own.flags['kv_heads']}x":
            keys += 2
        with _lock:
            _planned_keys[kind] = keys
    flags = {**own.flags, "kv_len": keys, "layout": "strided"}
    return Problem(own.chip, flags, mixed.regions, has_open_keys=True)


def load_shared(own: Problem, mixed: Problem, lengths: Lengths) -> runtime.LoadedKernel:
    """The kernel of a call: `own` is the problem of its lengths, `mixed` the one of any."""
    kind = (mixed.get_key(), own.flags["layout"])
    with _lock:
        if len(_first) >= _KEPT_LENGTHS:
            _first.clear()
            _planned_keys.clear()
        first = _first.setdefault(kind, lengths)
    # A single query is a step of a cache that grows, as a rule.
    is_first = first == lengths and lengths.queries != 1
    # A kernel that is there already need not be compiled.
    if is_first or _is_known(own):
        return load(own)
    return _load_open(own, mixed, lengths) or load(own)


def _load_open(own: Problem, mixed: Problem, lengths: Lengths) -> runtime.LoadedKernel | None:
    """The kernel that calls of other lengths share, if there is one."""
    problem = _open_keys(own, lengths, mixed) if lengths.queries == 1 else mixed
    try:
        return load(problem)
    except CompileError as error:
        events.tell("kernel for %s: of its own lengths, since %s", own.flags["q"], error)
        return None


def compile_any(own: Problem, mixed: Problem, lengths: Lengths) -> compiled.Kernel:
    """The kernel that calls of any lengths share, as the simulator runs it: what `load_shared`
    gives the second call."""
    if lengths.queries == 1 and mixed.schedule is None:
        try:
            return _compile(_open_keys(own, lengths, mixed))
        except CompileError as error:
            events.tell("kernel for %s: of any queries, since %s", own.flags["q"], error)
    return _compile(mixed)


def compile_mixed(mixed: Problem) -> compiled.Kernel:
    """The kernel of packed sequences, as the simulator runs it."""
    return _compile(mixed)


def prepare(own: Problem, mixed: Problem, lengths: Lengths) -> runtime.LoadedKernel:
    """Both kernels that calls of these and of other lengths need; the one of these."""
    kernel = load(own)
    _load_open(own, mixed, lengths)
    return kernel


def clear() -> None:
    """Forgets loaded kernels and first calls."""
    with _lock:
        _loaded.clear()
        _first.clear()
        _planned_keys.clear()
