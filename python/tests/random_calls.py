"""Calls of the package's functions with wrong types, ranks, strides, sizes and numbers.

Each call begins as a right one; one or two of its arguments are changed. What comes out has to be
an error of attn's own or what float64 gives for the arguments as they were given, and arguments
stay as they were. A few hundred calls run in CI (test_random_calls.py), more by hand:

usage: python python/tests/random_calls.py [--calls N] [--seed N] [--only NAME] [--verbose]
"""

from __future__ import annotations

import argparse
import collections
import math
import os
import pathlib
import sys
import traceback

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
if __name__ == "__main__" and "ATTN_INSTALLED" not in os.environ:
    root = pathlib.Path(__file__).resolve().parents[2]
    sys.path.insert(0, str(root / "python"))
    os.environ.setdefault("ATTN_LIBRARY", str(root / "build" / "lib" / "libAttnC.so"))

import attn  # noqa: E402
import numpy as np  # noqa: E402
from random_targets import HEADS, TARGETS, Wrong  # noqa: E402

ODD = (
    None,
    True,
    False,
    0,
    1,
    -1,
    3,
    2**31,
    2**40,
    -(2**63),
    10**30,
    0.5,
    -0.0,
    math.nan,
    math.inf,
)
ODD += (
    1e300,
    1j,
    "",
    "x",
    "nhd",
    "float16",
    b"x",
    [],
    [1],
    (),
    (1, 2),
    (None, None),
    (-1, -1),
    {},
    {"a": 1},
)
ODD += (
    object(),
    int,
    len,
    np.float32,
    np.dtype("f4"),
    np.float32(2),
    np.int64(-1),
    np.array(2.0),
    np.bool_(True),
)
ODD += (
    np.zeros(0, np.float16),
    np.zeros((2, 2)),
    np.array(["a"]),
    np.array([None]),
    np.ones(3, np.int32),
)
try:
    import torch

    ODD += (
        torch.zeros(2, 4, 32),
        torch.tensor(2.0),
        torch.tensor([1, 2], dtype=torch.int32),
        torch.float16,
    )
    ODD += (torch.zeros(2, 2, device="meta"),)
except ImportError:
    torch = None
TYPES = (
    "f2",
    "f4",
    "f8",
    "i1",
    "u1",
    "i2",
    "u2",
    "i4",
    "i8",
    "u4",
    "?",
    "c8",
    ">f2",
    ">i4",
    "S2",
    "O",
    "V2",
)


def change_array(rng, array):
    """Another array of the same numbers, or of others."""
    kind = rng.integers(16)
    if kind == 0:
        return array[..., None]
    if kind == 1 and array.ndim:
        return array[0]
    if kind == 2:
        return array[:0]
    if kind == 3 and array.ndim:
        return array[..., :0]
    if kind == 4 and array.ndim:
        return np.repeat(array, 2, -1)[..., ::2]
    if kind == 5 and array.ndim:
        return array[::-1][::-1] if rng.integers(2) else np.ascontiguousarray(array[::-1])[::-1]
    if kind == 6:
        wide = np.zeros((*array.shape[:-1], array.shape[-1] + 3) if array.ndim else (), array.dtype)
        wide[..., : array.shape[-1] if array.ndim else None] = array
        return wide[..., : array.shape[-1]] if array.ndim else array
    if kind == 7:
        frozen = array.copy()
        frozen.flags.writeable = False
        return frozen
    if kind == 8:
        return array.astype(rng.choice(TYPES))
    if kind == 9:
        return array.tolist()
    if kind == 10:
        return np.broadcast_to(array.reshape(-1)[:1], array.shape) if array.size else array
    if kind == 11 and array.size:
        other = array.copy()
        other.reshape(-1)[rng.integers(array.size)] = rng.choice([-1, 0, 1, 3, 100])
        return other
    if kind == 12 and array.ndim > 1:
        return array.swapaxes(0, -1)
    if kind == 13 and torch is not None and array.dtype.kind in "fi" and array.dtype.isnative:
        return torch.from_numpy(array)
    if kind == 13:
        return np.ma.masked_array(array)
    if kind == 14 and array.ndim:
        return array[..., :-1] if rng.integers(2) else array[:-1]
    if kind == 15 and array.ndim:
        return np.asfortranarray(array)
    return memoryview(np.ascontiguousarray(array)) if array.dtype.kind != "O" else array


def change(rng, name, value):
    """Another value of an argument."""
    if isinstance(value, np.ndarray) and rng.integers(3):
        return change_array(rng, value)
    if isinstance(value, (tuple, list)) and value and rng.integers(2):
        items = list(value)
        at = rng.integers(len(items))
        items[at] = change(rng, name, items[at])
        return type(value)(items) if type(value) in (tuple, list) else value._replace(
            **{value._fields[at]: items[at]})  # fmt: skip
    if isinstance(value, bool) and rng.integers(2):
        return not value
    if name in ("softcap", "scale", "sm_scale", "logits_soft_cap") and rng.integers(2):
        return [0, 0.0, 0.5, np.float32(0.25), -1.0, 30][rng.integers(6)]
    if name == "window" and rng.integers(2):
        return [(3, 0), (0, 0), (5, 5), (-1, 2), (4, None), [2, 1]][rng.integers(6)]
    if name == "sinks" and rng.integers(2):
        return np.linspace(-1, 1, HEADS).astype("f4")
    if name in ("layout", "kv_layout") and rng.integers(2):
        return ["hnd", "HND", "NHD", "bhsd"][rng.integers(4)]
    if name in (
        "kv_splits",
        "run_keys",
        "queries",
        "batch",
        "max_pages",
        "max_seqlen_q",
    ) and rng.integers(2):
        return [0, 1, 2, 3, 16, np.int64(2), 100000][rng.integers(7)]
    return ODD[rng.integers(len(ODD))]


def copy(value):
    if isinstance(value, np.ndarray):
        return value.copy()
    return type(value)(map(copy, value)) if type(value) in (tuple, list) else value


def is_same(one, other):
    if isinstance(one, np.ndarray):
        return one.dtype.hasobject or one.tobytes() == other.tobytes()
    if type(one) in (tuple, list):
        return all(map(is_same, one, other))
    return True


def draw(rng, name):
    """A call, changed."""
    make, call, judge = TARGETS[name]
    given, extra = make(rng)
    given = extra | given
    for _ in range(rng.integers(0, 3)):
        argument = list(given)[rng.integers(len(given))]
        given[argument] = change(rng, argument, given[argument])
    if name == "level" and rng.integers(4):
        field = ("page_table", "kv_lengths", "sequences")[rng.integers(3)]
        level = int(rng.integers(2))
        given["levels"] = make(rng)[0]["levels"]
        value = change(rng, field, getattr(given["levels"][level], field))
        given |= {"level": level, "field": field, "value": value}
    return given


def show(value):
    if isinstance(value, np.ndarray):
        return f"array({value.dtype}, {list(value.shape)}, {list(value.strides)}{'' if value.size > 6 else f', {value.tolist()}'})"
    if type(value) in (tuple, list):
        return f"{type(value).__name__}({', '.join(map(show, value))})"
    return repr(value)[:60]


def try_call(name, seed):
    """ "error", "result", or what is wrong."""
    rng = np.random.default_rng(seed)
    with np.errstate(all="ignore"):
        try:
            given = draw(rng, name)
        except (ValueError, TypeError, OverflowError, IndexError):
            return "skipped", ""
    before = {argument: copy(value) for argument, value in given.items()}
    _, call, judge = TARGETS[name]
    try:
        got = call(**given)
    except attn.LibraryError:
        raise
    except attn.AttnError as error:
        if name == "append_kv" and not all(map(is_same, given.values(), before.values())):
            return "wrong", f"written before it was refused: {error}"
        return "error", str(error)
    except FileNotFoundError as error:
        return "error", str(error)
    except Wrong as error:
        return "wrong", str(error)
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        return (
            "wrong",
            f"{type(error).__name__} at {os.path.basename(place.filename)}:{place.lineno}: {error}",
        )
    written = ("k_cache", "v_cache") if name == "append_kv" else ("out", "lse")
    for argument, value in given.items():
        if argument not in written and not is_same(value, before[argument]):
            return "wrong", f"{argument} was changed"
    try:
        judge(given, got, before) if name == "append_kv" else judge(given, got)
    except Wrong as error:
        return "wrong", str(error)
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        return (
            "wrong",
            f"was taken, and the reference has {type(error).__name__} at line {place.lineno}: {error}",
        )
    return "result", ""


def run(names, seeds):
    """Counts of outcomes, and what was wrong: (name, seed, message)."""
    counts, wrong = collections.Counter(), []
    for seed in seeds:
        for name in names:
            outcome, message = try_call(name, seed)
            counts[name, outcome] += 1
            if outcome == "wrong":
                wrong.append((name, seed, message))
    return counts, wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--calls", type=int, default=200, help="calls of each function")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="*", choices=list(TARGETS))
    parser.add_argument("--verbose", action="store_true", help="show the arguments")
    options = parser.parse_args()
    names = options.only or list(TARGETS)
    counts, wrong = run(names, range(options.seed, options.seed + options.calls))
    for name, seed, message in wrong:
        print(f"{name} {seed}: {message[:300]}")
        if options.verbose:
            given = draw(np.random.default_rng(seed), name)
            print(
                "   ", ", ".join(f"{argument}={show(value)}" for argument, value in given.items())
            )
    for name in names:
        print(name, {outcome: n for (each, outcome), n in sorted(counts.items()) if each == name})
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
