"""Classes of inputs on which softmax policies are compared (accuracy.py).

Each class gives scores another shape: how they are spread, whether the largest
come early or late, how many of them matter. A policy that keeps a standing
maximum, or narrow probabilities, loses accuracy in some of them only.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable

import gpu_inputs
import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
#: Channels that carry what a class adds to the scores of a key.
CARRIERS = 8
#: What q has in each of them.
CARRIER = 2.0


class Problem:
    """One head: q (rows, dim), k (keys, dim) and v (keys, dv), scores q k / sqrt(dim)."""

    def __init__(self, seed: int, rows: int, keys: int, dim: int, dv: int, dtype: str) -> None:
        self.random = np.random.Generator(np.random.PCG64(seed))
        self.rows, self.keys, self.dim, self.dtype = rows, keys, dim, dtype
        self.q = self.draw(rows, dim)
        self.k = self.draw(keys, dim)
        self.v = self.draw(keys, dv)

    def draw(self, *shape: int) -> Array:
        return self.random.standard_normal(shape)

    def spread(self, deviation: float | Array) -> Problem:
        """Random scores of this deviation, in nats; an array has one for each key."""
        each = np.broadcast_to(deviation, self.keys)
        most = math.sqrt(max(float(each.max()), 1e-30))
        self.q *= most
        self.k *= (each / most)[:, None]
        return self

    def add(self, profile: Array | float) -> Problem:
        """Adds nats to the scores of each key. The type rounds what one channel
        holds, and the next ones make up for it."""
        self.q[:, :CARRIERS] = CARRIER
        left = np.broadcast_to(profile, self.keys) * math.sqrt(self.dim) / CARRIER
        for channel in range(CARRIERS):
            part = left / (CARRIERS - channel)
            self.k[:, channel] = gpu_inputs.decode(
                gpu_inputs.encode(part, self.dtype), self.dtype
            )
            left = left - self.k[:, channel]
        return self

    def raise_keys(self, count: int, nats: float, begin: float = 0.0) -> Problem:
        """Raises so many keys, drawn from those behind the fraction `begin`."""
        profile = np.zeros(self.keys)
        first = int(begin * self.keys)
        drawn = self.random.choice(self.keys - first, max(1, count), replace=False)
        profile[first + drawn] = nats
        return self.add(profile)

    def place(self) -> Array:
        """The keys' places from 0 to 1."""
        return np.linspace(0.0, 1.0, self.keys)


def raise_share(share: float, nats: float, deviation: float = 1.0) -> Callable[[Problem], object]:
    return lambda p: p.spread(deviation).raise_keys(round(share * p.keys), nats)


def raise_one(nats: float, place: float, deviation: float = 0.5) -> Callable[[Problem], object]:
    def change(p: Problem) -> None:
        profile = np.zeros(p.keys)
        profile[round(place * (p.keys - 1))] = nats
        p.spread(deviation).add(profile)

    return change


def raise_two(more: float) -> Callable[[Problem], object]:
    """A key that is read early stands out, and one that is read late more."""

    def change(p: Problem) -> None:
        profile = np.zeros(p.keys)
        profile[[p.keys - p.keys // 16, p.keys // 3]] = 20.0, 20.0 + more
        p.spread(0.5).add(profile)

    return change


def ramp(nats: float, deviation: float = 0.5) -> Callable[[Problem], object]:
    return lambda p: p.spread(deviation).add(nats * p.place())


def stairs(nats: float, keys: int) -> Callable[[Problem], object]:
    return lambda p: p.spread(0.5).add(nats * (np.arange(p.keys) // keys))


def heavy(degrees: float) -> Callable[[Problem], object]:
    return lambda p: p.spread(0.5).add(
        np.clip(p.random.standard_t(degrees, p.keys), -60.0, 60.0)
    )


def retrieve(nats: float) -> Callable[[Problem], object]:
    """Each query finds one key of its own."""

    def change(p: Problem) -> None:
        p.k = np.sign(p.k)
        found = p.k[p.random.integers(0, p.keys, p.rows)]
        p.q = found * nats / math.sqrt(p.dim) + 0.25 * p.q

    return change


def correlate(p: Problem) -> None:
    """Keys that resemble the ones before."""
    for j in range(1, p.keys):
        p.k[j] = 0.98 * p.k[j - 1] + math.sqrt(1 - 0.98**2) * p.k[j]
    p.spread(3.0)


def outlier_channels(p: Problem) -> None:
    p.k[:, 3] = 6.0 + p.k[:, 3]
    p.q[:, 3] *= 4.0
    p.k[:, 40 % p.dim] *= 5.0


def rows_differ(p: Problem) -> None:
    """From flat to peaked rows."""
    p.q *= np.geomspace(0.05, 8.0, p.rows)[:, None]


def mean_values(mean: float) -> Callable[[Problem], object]:
    def change(p: Problem) -> None:
        p.v += mean

    return change


def outlier_values(p: Problem) -> None:
    p.v[:: p.keys // 16] *= 16.0


CLASSES: dict[str, Callable[[Problem], object]] = {
    "flat": lambda p: p.spread(0.0),
    **{
        f"normal, deviation {s:g}": (lambda s: lambda p: p.spread(s))(s)
        for s in (0.05, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0)
    },
    "rising by 3": ramp(3),
    "rising by 9": ramp(9),
    "rising by 50": ramp(50),
    "rising by 400": ramp(400),
    "falling by 9": ramp(-9),
    "falling by 50": ramp(-50),
    "stairs of 1 each 64 keys": stairs(1, 64),
    "stairs of 2.5 each 128 keys": stairs(2.5, 128),
    "stairs of 9 each 64 keys": stairs(9, 64),
    "first key 15 higher": raise_one(15, 0),
    "last key 5 higher": raise_one(5, 1),
    "last key 15 higher": raise_one(15, 1),
    "two keys, the next 0.03 higher": raise_two(0.03),
    "two keys, the next 0.15 higher": raise_two(0.15),
    "two keys, the next 0.5 higher": raise_two(0.5),
    "two keys, the next 1.5 higher": raise_two(1.5),
    "two keys, the next 2.3 higher": raise_two(2.3),
    "two keys, the next 6 higher": raise_two(6),
    "a middle key 3 higher": raise_one(3, 0.5, 0.1),
    "a middle key 8 higher": raise_one(8, 0.5, 0.1),
    "0.2 % of keys 5 higher": raise_share(0.002, 5),
    "0.2 % of keys 9 higher": raise_share(0.002, 9),
    "2 % of keys 2 higher": raise_share(0.02, 2),
    "2 % of keys 5 higher": raise_share(0.02, 5),
    "2 % of keys 9 higher": raise_share(0.02, 9),
    "2 % of keys 15 higher": raise_share(0.02, 15),
    "2 % of keys 9 higher, deviation 2": raise_share(0.02, 9, 2.0),
    "20 % of keys 6 higher": raise_share(0.2, 6),
    "half of the keys 4 higher": raise_share(0.5, 4),
    "2 % of the later keys 2.5 higher": lambda p: p.spread(0.5).raise_keys(p.keys // 50, 2.5, 0.5),
    "heavy tails, 1.5 degrees": heavy(1.5),
    "heavy tails, 3 degrees": heavy(3),
    "each row has its key, 8 higher": retrieve(8),
    "each row has its key, 14 higher": retrieve(14),
    "deviation grows to 6": lambda p: p.spread(6.0 * p.place()),
    "deviation falls from 6": lambda p: p.spread(6.0 * p.place()[::-1]),
    "mean 60": lambda p: p.spread(0.5).add(60.0),
    "mean -60": lambda p: p.spread(0.5).add(-60.0),
    "correlated keys": correlate,
    "outlier channels": outlier_channels,
    "rows from flat to peaked": rows_differ,
    "values of mean 4": mean_values(4.0),
    "values with outliers": outlier_values,
}


def make_inputs(
    names: list[str], rows: int, keys: int, dim: int, dv: int, dtype: str
) -> dict[str, NDArray]:
    """The bits of q, k and v; a class is a batch."""
    problems = []
    for name in names:
        problem = Problem(zlib.crc32(name.encode()), rows, keys, dim, dv, dtype)
        CLASSES[name](problem)
        problems.append(problem)
    return {
        key: gpu_inputs.encode(np.stack([getattr(p, key) for p in problems])[:, None], dtype)
        for key in "qkv"
    }
