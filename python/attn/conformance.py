"""Cases at the edges of attention, for any implementation (docs/Conformance.md).

    from attn import conformance

    def attention(q, k, v, **options):      # numpy arrays of float16, (batch, head, sequence, dim)
        return o, lse                       # like q, and (batch, head, query)

    for case in conformance.CASES:
        print(case.name, conformance.check(case, attention) or "passed")

A case is inputs and options; what is right follows from a float64 reference of a few lines.
Needs numpy only, and to be listed not even that.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.generic]

#: Largest errors of o and LSE, by the larger of 1 and a share of the magnitude of what is right:
#: f32 cannot hold a large LSE to a thousandth.
BOUNDS = {"o": (4e-3, 1.0), "lse": (2e-3, 1 / 1024)}
#: Groups of cases, and what they are for.
GROUPS = {
    "empty rows": "Queries that see no key, or one: o is 0 and not NaN, and the LSE is -inf.",
    "not a number": "NaN and infinity reach the rows that see them, and no others.",
    "bounds": "Scores, sinks and lengths at the ends of what types and blocks hold.",
}
#: What options mean; an implementation refuses those that it does not have.
OPTIONS = {
    "causal": '"top-left": query i sees keys up to i; "bottom-right": the last query is at '
    "the last key",
    "window": "(left, right): so many keys on each side of the diagonal of `causal`, else of "
    "top-left",
    "kv_lengths": "keys of each batch, its first ones",
    "sinks": "a logit of each head, which takes part in the softmax and has no value",
    "scale": "factor of the scores, 1 / sqrt(dim) without",
    "softcap": "scores become c tanh(score / c)",
}


@dataclasses.dataclass(frozen=True)
class Case:
    """Inputs, options, and why the result is what it is."""

    name: str
    #: One of GROUPS.
    group: str
    #: What has to come out, for people.
    expected: str
    shape: tuple[int, int, int, int] = (1, 2, 16, 32)
    kv_heads: int | None = None
    keys: int | None = None
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    #: Changes q, k and v, which are normal numbers, in place.
    change: Callable[[Array, Array, Array], None] | None = None

    def make(self) -> tuple[Array, Array, Array]:
        """q, k and v, the same at each call."""
        import numpy as np

        batch, heads, queries, dim = self.shape
        keys = queries if self.keys is None else self.keys
        rows = (batch, self.kv_heads or heads, keys, dim)
        rng = np.random.default_rng(17)
        arrays = [
            rng.standard_normal(shape).astype(np.float16) for shape in (self.shape, rows, rows)
        ]
        if self.change is not None:
            self.change(*arrays)
        return arrays[0], arrays[1], arrays[2]


def see(case: Case) -> NDArray[np.bool_]:
    """Which keys each query of each batch sees."""
    import numpy as np

    batch, _, queries, _ = case.shape
    keys = queries if case.keys is None else case.keys
    options = case.options
    lengths = np.asarray(options.get("kv_lengths", [keys] * batch))[:, None, None]
    align = options.get("causal")
    row, column = np.arange(queries)[:, None], np.arange(keys)
    place = row + (lengths - queries if align == "bottom-right" else 0)
    left, right = options.get("window", (-1, -1))
    seen = np.broadcast_to(column < lengths, (batch, queries, keys)).copy()
    if align:
        seen &= column <= place
    if left >= 0:
        seen &= column >= place - left
    if right >= 0:
        seen &= column <= place + right
    return seen


def compute(case: Case) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """o and the natural LSE in float64; a row sums over the keys that it sees, and over nothing
    else."""
    import numpy as np

    q, k, v = (each.astype(np.float64) for each in case.make())
    group = q.shape[1] // k.shape[1]
    scale = case.options.get("scale", q.shape[3] ** -0.5)
    cap, sinks = case.options.get("softcap"), case.options.get("sinks")
    seen = see(case)
    o, lse = np.zeros((*q.shape[:3], v.shape[3])), np.zeros(q.shape[:3])
    with np.errstate(all="ignore"):
        for b, h, i in np.ndindex(*lse.shape):
            keys, values = (each[b, h // group][seen[b, i]] for each in (k, v))
            scores = keys @ q[b, h, i] * scale
            scores = scores if cap is None else cap * np.tanh(scores / cap)
            logits = scores if sinks is None else np.append(scores, np.float64(sinks[h]))
            top = logits.max(initial=-np.inf)
            if np.isinf(top) and top < 0:
                lse[b, h, i] = -np.inf
                continue
            if sinks is not None and sinks[h] == np.inf:
                # It takes all.
                lse[b, h, i] = np.inf
                continue
            total = np.exp(logits - top).sum()
            lse[b, h, i] = top + np.log(total)
            o[b, h, i] = np.exp(scores - top) / total @ values
    return o, lse


def _compare(what: str, got: Any, want: NDArray[np.float64]) -> str:
    import numpy as np

    bound, share = BOUNDS[what]
    got = np.asarray(got).astype(np.float64)
    if got.shape != want.shape:
        return f"{what}: expected shape {list(want.shape)}, got {list(got.shape)}"
    with np.errstate(all="ignore"):
        error = np.abs(got - want) / np.maximum(1, np.abs(want) * share)
    same = np.isnan(want) & np.isnan(got) | (got == want)
    wrong = ~(same | (np.isfinite(want) & (error <= bound)))
    if not wrong.any():
        return ""
    place = tuple(int(n) for n in np.argwhere(wrong)[0])
    return f"{what}: expected {want[place]} at {list(place)}, got {got[place]}, {wrong.sum()} such"


def check(case: Case, attention: Callable[..., Any]) -> str:
    """What is wrong with what `attention` gives for a case; empty where nothing is."""
    o, lse = compute(case)
    got = attention(*case.make(), **case.options)
    return _compare("o", got[0], o) or _compare("lse", got[1], lse)


def make_table(group: str) -> str:
    """The cases of a group as Markdown."""
    lines = ["| case | shape and options | right is |", "|---|---|---|"]
    for case in CASES:
        if case.group != group:
            continue
        keys = case.shape[2] if case.keys is None else case.keys
        heads = f"{case.shape[1]}/{case.kv_heads}" if case.kv_heads else str(case.shape[1])
        shape = f"{case.shape[0]}x{heads}x{case.shape[2]}x{case.shape[3]}"
        parts = [f"{shape}, {keys} key{'s' * (keys != 1)}"]
        parts += [f"{name}={value!r}" for name, value in case.options.items()]
        lines.append(f"| `{case.name}` | {', '.join(parts)} | {case.expected} |")
    return "\n".join(lines) + "\n"


def _fill(index: int, place: Any, value: float) -> Callable[[Array, Array, Array], None]:
    """Writes to one of q, k and v."""

    def change(*arrays: Any) -> None:
        arrays[index][place] = value

    return change


def _scaled(q: Any, k: Any, v: Any) -> None:
    q *= 100
    k *= 100


def _behind_length(q: Any, k: Any, v: Any) -> None:
    k[:, :, 9:] = v[:, :, 9:] = math.nan


def _equal_scores(q: Any, k: Any, v: Any) -> None:
    q[...] = k[...] = 64


def _opposite(q: Any, k: Any, v: Any) -> None:
    q[...], k[...] = 64, -64


def _largest_values(q: Any, k: Any, v: Any) -> None:
    q[...], v[...] = 0, 65504


def _one_large(q: Any, k: Any, v: Any) -> None:
    q[...], k[...] = 8, 0
    k[:, :, 5] = 8


def _falling(q: Any, k: Any, v: Any) -> None:
    """Later keys have much larger scores: the running maximum moves in each block."""
    import numpy as np

    q[...] = 1
    k[...] = np.linspace(-20, 20, k.shape[2]).reshape(-1, 1)


_ALL = (slice(None), slice(None))
_EMPTY, _NAN, _BOUNDS = GROUPS
CASES: tuple[Case, ...] = (
    Case("no-keys", _EMPTY, "o = 0 and LSE = -inf", (2, 2, 16, 32), options={"kv_lengths": [0, 16]}),
    Case("no-keys-nan", _EMPTY, "o = 0: what nobody sees is not read", (1, 2, 16, 32),
         options={"kv_lengths": [0]}, change=_fill(2, _ALL, math.nan)),
    Case("no-keys-sink", _EMPTY, "o = 0 and LSE = the sink", (1, 2, 16, 32),
         options={"kv_lengths": [0], "sinks": [1.5, -40.0]}),
    Case("no-keys-no-sink", _EMPTY, "a sink of -inf is none: o = 0 and LSE = -inf", (1, 2, 16, 32),
         options={"kv_lengths": [0], "sinks": [-math.inf, 0.0]}),
    Case("infinite-sink", _EMPTY, "a sink of +inf takes all: o = 0 and LSE = +inf", (1, 2, 16, 32),
         options={"sinks": [math.inf, 0.0]}),
    Case("more-queries-than-keys", _EMPTY, "the first rows see no key", (1, 2, 33, 32), keys=16,
         options={"causal": "bottom-right"}),
    Case("block-without-keys", _EMPTY, "a whole block of rows sees no key", (1, 1, 160, 32), keys=8,
         options={"causal": "bottom-right"}),
    Case("short-batch", _EMPTY, "rows of one batch see no key, all of the other do", (2, 2, 16, 32),
         options={"causal": "bottom-right", "kv_lengths": [3, 16]}),
    Case("window-behind-keys", _EMPTY, "the last rows see no key", (1, 2, 48, 32), keys=16,
         options={"window": (4, 0)}),
    Case("window-of-own", _EMPTY, "o = v: each row sees one key", options={"window": (0, 0)}),
    Case("one-key", _EMPTY, "o = v, LSE = the score", (1, 2, 16, 32), keys=1),
    Case("nan-query", _NAN, "one row is NaN, and its LSE", change=_fill(0, (0, 0, 3, 1), math.nan)),
    Case("nan-key", _NAN, "rows of one head are NaN", change=_fill(1, (0, 1, 3, 1), math.nan)),
    Case("nan-key-causal", _NAN, "rows in front of the key are not NaN",
         options={"causal": "top-left"}, change=_fill(1, (0, 0, 9, 1), math.nan)),
    Case("nan-value", _NAN, "one column is NaN, LSE is not", change=_fill(2, (0, 0, 3, 1), math.nan)),
    Case("nan-behind-length", _NAN, "keys and values behind a length are not read", (1, 2, 16, 32),
         options={"kv_lengths": [9]}, change=_behind_length),
    Case("nan-sink", _NAN, "rows of one head are NaN", options={"sinks": [math.nan, 0.0]}),
    Case("infinite-value", _NAN, "one column is infinite", change=_fill(2, (0, 0, 3, 1), math.inf)),
    Case("hidden-infinite-key", _NAN, "keys that are hidden from a row may be anything", (1, 2, 16, 32),
         keys=24, options={"causal": "top-left"}, change=_fill(1, (0, 0, slice(16, 24), 1), math.inf)),
    Case("hidden-nan-key", _NAN, "keys that are hidden from a row may be anything", (1, 2, 16, 32), keys=24,
         options={"window": (2, 2)}, change=_fill(1, (0, 0, slice(20, 24)), math.nan)),
    Case("equal-large-scores", _BOUNDS, "the mean of the values", options={"scale": 1.0}, change=_equal_scores),
    Case("equal-small-scores", _BOUNDS, "the mean of the values", options={"scale": 1.0}, change=_opposite),
    Case("one-large-score", _BOUNDS, "the value of one key", options={"scale": 1.0}, change=_one_large),
    Case("scores-beyond-f16", _BOUNDS, "finite: scores are not rounded to f16", change=_scaled),
    Case("largest-values", _BOUNDS, "65504, not infinity", (1, 2, 16, 32), keys=80, change=_largest_values),
    Case("rising-scores", _BOUNDS, "as in one pass, whatever the order", (1, 1, 16, 32), keys=200,
         change=_falling),
    Case("soft-cap", _BOUNDS, "scores saturate at the cap", options={"softcap": 2.0}, change=_scaled),
    Case("large-sink", _BOUNDS, "o is 0 to f16, LSE = the sink", options={"sinks": [90.0, 1e4]}),
    Case("negative-scale", _BOUNDS, "the least product has the largest weight", options={"scale": -0.25}),
    Case("odd-lengths", _BOUNDS, "no key behind the last one counts", (1, 2, 17, 40), keys=67),
    Case("one-short-of-a-block", _BOUNDS, "no key behind the last one counts", (1, 1, 127, 32), keys=63,
         options={"causal": "bottom-right"}),
    Case("one-past-a-block", _BOUNDS, "no key behind the last one counts", (1, 1, 129, 32), keys=65,
         options={"causal": "bottom-right"}),
    Case("all-heads-on-one", _BOUNDS, "each head has its own result", (1, 7, 16, 32), kv_heads=1),
    Case("window-and-causal", _BOUNDS, "a row sees what both let it see", (1, 2, 16, 32), keys=24,
         options={"causal": "bottom-right", "window": (3, 5)}),
)  # fmt: skip
