#!/usr/bin/env python3
"""Checks calls on torch tensors on the GPU against float64: outputs of 8 bits, latent operands
apart, rows of 656 bytes, FlashInfer's MLA wrapper eager and in graphs, and pools of more than
2^32 elements.

    PYTHONPATH=python python3 python/tests/gpu_calls.py --prepare FOLDER --chip sm_90a
    PYTHONPATH=python python3 python/tests/gpu_calls.py FOLDER

The first command compiles all kernels into a cache folder: torch on the CPU stands for the GPU's
there, so that they have the keys of the second command's calls, which needs no compiler. Exit
status 1 when something is wrong. --small is for the stand-in driver.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

import attn
import numpy as np
import torch
from attn.launch import device_tensors
from attn.serving import decode_launch, decode_problem
from attn.compat.flashinfer import BatchMLAPagedAttentionWrapper
from attn.record import TensorView

BATCH, HEADS, KV_HEADS, DIM, PAGE, WIDTH, PAGES = 5, 16, 4, 128, 16, 12, 64
LATENT, ROPE, SCALE, QUERIES = 512, 64, 0.05, 3
LENGTHS = (150, 0, 17, 64, 192)
#: Of o by norms: of 16 bits, e4m3 and e5m2; of an LSE by distances.
EXACT, E4M3, E5M2, LOG = 4e-3, 4e-2, 9e-2, 1e-3
FAR_LENGTHS, FAR_WIDTH = (300, 64, 17, 0), 20


class Stop(Exception):
    """A call has compiled its kernel."""


class Checks:
    """Calls and what they have to give."""

    def __init__(self, chip: str | None) -> None:
        self.is_real = chip is None
        self.device = "cuda" if self.is_real else "cpu"
        self.done = self.wrong = 0
        self.random = np.random.default_rng(7)
        if chip is not None:
            self.stand_in(chip)

    def stand_in(self, chip: str) -> None:
        def view(name: str, value: Any) -> TensorView:
            dtype = device_tensors._lookup(name, device_tensors._TORCH_DTYPES, str(value.dtype))
            return TensorView(dtype, tuple(value.shape), value.stride(), value.data_ptr(), 0)

        def compile_only(problem: decode_problem.DecodeProblem, _: int) -> None:
            decode_problem.compile_decode(problem, chip)
            raise Stop

        device_tensors._view_torch = view
        decode_launch.get_chip_of = lambda *_: chip
        decode_launch.get_runner = compile_only

    def draw(self, *shape: int, dtype: torch.dtype = torch.float16) -> torch.Tensor:
        values = self.random.standard_normal(shape).astype(np.float32)
        return torch.from_numpy(values).to(self.device).to(dtype)

    def integers(self, values: Any) -> torch.Tensor:
        return torch.tensor(np.asarray(values), dtype=torch.int32, device=self.device)

    def expect(self, name: str, call: Callable[[], Any], want: Callable[[], Any], most: float,
               unit: float = 1.0) -> None:  # fmt: skip
        """`call` gives o, a unit of which stands for `unit`, or o and its LSE; `want` both."""
        self.done += 1
        try:
            got = call()
        except Stop:
            print(f"{name:30} compiled", flush=True)
            return
        except attn.AttnError as error:
            self.wrong += 1
            print(f"{name:30} WRONG {type(error).__name__}: {str(error)[:200]}", flush=True)
            return
        o, *log = got if isinstance(got, tuple) else (got,)
        expected, logs = want()
        distance = float((o.double() * unit - expected).norm() / expected.norm())
        worst = 0.0
        if log:
            both = torch.isneginf(log[0]) & torch.isneginf(logs)
            worst = float((log[0].double() - logs).masked_fill(both, 0).abs().max())
        good = distance <= most and worst <= LOG
        self.wrong += not good
        verdict = "right" if good else "WRONG"
        print(f"{name:30} o {distance:.2e} LSE {worst:.2e} {verdict}", flush=True)


def attend(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, scale: float, causal: bool = True
) -> tuple[torch.Tensor, torch.Tensor]:
    """Queries (queries, heads, dim) of a sequence, the last one at the last of the keys (keys,
    key heads, dim), in float64."""
    queries, heads, _ = q.shape
    group = heads // k.shape[1]
    rows, columns = (torch.arange(n, device=q.device) for n in (queries, k.shape[0]))
    hidden = columns[None] > rows[:, None] + k.shape[0] - queries if causal else None
    o = torch.zeros(*q.shape[:2], v.shape[2], dtype=torch.float64, device=q.device)
    log = torch.full(q.shape[:2], -math.inf, dtype=torch.float64, device=q.device)
    for head in range(heads if k.shape[0] else 0):
        s = q[:, head].double() @ k[:, head // group].double().T * scale
        s = s if hidden is None else s.masked_fill(hidden, -math.inf)
        log[:, head] = torch.logsumexp(s, -1)
        o[:, head] = torch.softmax(s, -1).nan_to_num(0) @ v[:, head // group].double()
    return o, log


def stack(parts: Sequence[tuple[torch.Tensor, torch.Tensor]]) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.cat([each[0] for each in parts]), torch.cat([each[1] for each in parts])


class Small:
    """A batch whose pools fit anywhere."""

    def __init__(self, checks: Checks) -> None:
        self.checks = checks
        ids = [checks.random.permutation(PAGES)[:WIDTH] for _ in range(BATCH)]
        self.table, self.lengths = checks.integers(ids), checks.integers(LENGTHS)
        self.counts = checks.integers(np.arange(BATCH + 1) * QUERIES)
        self.k, self.v = (checks.draw(PAGES, PAGE, KV_HEADS, DIM) for _ in range(2))
        self.pool = checks.draw(PAGES, PAGE, LATENT + ROPE)

    def gather(self, pool: torch.Tensor, sequence: int) -> torch.Tensor:
        """The rows of a sequence, (keys, heads, columns)."""
        rows = pool[self.table[sequence].long()].flatten(0, 1)[: LENGTHS[sequence]]
        return rows if rows.dim() == 3 else rows[:, None]

    def want(
        self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, scale: float, causal: bool = True
    ):
        """Of queries that lie one sequence behind the other."""
        parts = q.unflatten(0, (BATCH, -1))
        return stack([attend(parts[i], self.gather(k, i), self.gather(v, i), scale, causal)
                      for i in range(BATCH)])  # fmt: skip

    def check_outputs(self) -> None:
        checks, scale = self.checks, DIM**-0.5
        q, rows = checks.draw(BATCH, HEADS, DIM), checks.draw(BATCH * QUERIES, HEADS, DIM)
        operands = (self.k, self.v, self.table, self.lengths)

        def decode(dtype: torch.dtype) -> torch.Tensor:
            out = torch.empty(BATCH, HEADS, DIM, dtype=dtype, device=checks.device)
            log = torch.empty(BATCH, HEADS, device=checks.device)
            attn.decode(q, *operands, out_scale=50.0, out=out, lse=log)
            return out

        def prefill(**more: Any) -> Any:
            return attn.prefill(
                rows, *operands, self.counts, max_seqlen_q=QUERIES, lse=True, **more
            )

        want, of_rows = (lambda: self.want(q, self.k, self.v, scale),
                         lambda: self.want(rows, self.k, self.v, scale))  # fmt: skip
        checks.expect(
            "decode, e4m3",
            lambda: attn.decode(q, *operands, out_scale=50.0, lse=True),
            want,
            E4M3,
            0.02,
        )
        checks.expect("decode, out", lambda: decode(torch.float8_e4m3fn), want, E4M3, 0.02)
        checks.expect("decode, e5m2", lambda: decode(torch.float8_e5m2), want, E5M2, 0.02)
        checks.expect("prefill", prefill, of_rows, EXACT)
        checks.expect("prefill, e4m3", lambda: prefill(out_scale=50.0), of_rows, E4M3, 0.02)

    def check_latent(self) -> None:
        checks, (keys, ropes) = self.checks, self.pool.split((LATENT, ROPE), -1)
        q = checks.draw(BATCH, HEADS, LATENT + ROPE)
        options = {"value_dim": LATENT, "scale": SCALE, "lse": True}
        lists = (self.table, self.lengths)
        parts = [each.clone() for each in q.split((LATENT, ROPE), -1)]
        want = lambda: self.want(q, self.pool, keys, SCALE)  # noqa: E731
        checks.expect(
            "mla_decode, apart",
            lambda: attn.mla_decode(
                parts[0], keys.clone(), *lists, q_rope=parts[1], k_rope=ropes.clone(), **options
            ),
            want,
            EXACT,
        )
        checks.expect(
            "mla_decode, views",
            lambda: attn.mla_decode(q, keys, *lists, k_rope=ropes, **options),
            want,
            EXACT,
        )
        narrow, scales, rope, wide = self.make_bytes()
        want8 = lambda: self.want(q, wide, wide[..., :LATENT], SCALE)  # noqa: E731
        rows = {"k_scales": scales, "k_rope": rope, **options}
        checks.expect(
            "mla_decode, 656 bytes",
            lambda: attn.mla_decode(q, narrow, *lists, **rows),
            want8,
            EXACT,
        )
        checks.expect(
            "mla_decode, 656 bytes, e4m3",
            lambda: attn.mla_decode(q, narrow, *lists, out_scale=50.0, **rows),
            want8,
            E4M3,
            0.02,
        )

    def make_bytes(self) -> tuple[torch.Tensor, ...]:
        """512 e4m3, 4 f32 and 64 columns of 16 bits in rows of one tensor, and what they say."""
        raw = torch.zeros(PAGES, PAGE, 656, dtype=torch.uint8, device=self.checks.device)
        narrow = raw[..., :512].view(torch.float8_e4m3fn)
        scales, rope = raw[..., 512:528].view(torch.float32), raw[..., 528:].view(torch.float16)
        keys, ropes = self.pool.float().split((LATENT, ROPE), -1)
        units = keys.unflatten(-1, (4, 128)).abs().amax(-1) / 448
        scales.copy_(units)
        narrow.copy_((keys / units.repeat_interleave(128, -1)).to(torch.float8_e4m3fn))
        rope.copy_(ropes)
        return (
            narrow,
            scales,
            rope,
            torch.cat([narrow.float() * units.repeat_interleave(128, -1), rope], -1),
        )

    def check_wrapper(self) -> None:
        checks = self.checks
        for queries, causal in ((1, True), (QUERIES, True), (QUERIES, False)):
            q = checks.draw(BATCH * queries, HEADS, LATENT + ROPE)
            want = lambda: self.want(q, self.pool, self.pool[..., :LATENT], SCALE, causal)  # noqa: B023, E731
            for is_apart in (False, True):
                pairs = [each.split((LATENT, ROPE), -1) for each in (q, self.pool)]
                if is_apart:
                    pairs = [[part.clone() for part in pair] for pair in pairs]
                for is_graph in (False, True):
                    name = f"wrapper, {queries}{' causal' * causal}{' apart' * is_apart}{' graph' * is_graph}"
                    call = lambda: self.run_wrapper(pairs, queries, causal, is_graph)  # noqa: B023, E731
                    checks.expect(name, call, want, EXACT)
                    call = lambda: self.run_wrapper(pairs, queries, causal, is_graph, 0.02)  # noqa: B023, E731
                    checks.expect(f"{name} e4m3", call, want, E4M3, 0.02)

    def run_wrapper(
        self, pairs: Any, queries: int, causal: bool, is_graph: bool, unit: float | None = None
    ) -> Any:
        pages = [-(-length // PAGE) for length in LENGTHS]
        ids = [self.table[i, :n] for i, n in enumerate(pages)]
        indices = torch.nn.functional.pad(torch.cat(ids), (0, BATCH * WIDTH - sum(pages)))
        lists = [self.checks.integers(np.arange(BATCH + 1) * queries),
                 self.checks.integers(np.cumsum([0, *pages])), indices, self.lengths]  # fmt: skip
        names = ("qo_indptr", "kv_indptr", "kv_indices", "kv_len_arr")
        bounds = {**dict(zip(names, lists, strict=True)), "max_pages": WIDTH} if is_graph else {}
        wrapper = BatchMLAPagedAttentionWrapper(None, use_cuda_graph=is_graph, **bounds)
        output = (
            {}
            if unit is None
            else {"output_dtype": torch.float8_e4m3fn, "output_scale": "per-tensor"}
        )
        wrapper.plan(
            *lists, HEADS, LATENT, ROPE, PAGE, causal, SCALE, "float16", "float16", **output
        )
        options = {"return_lse": True, "return_lse_base_on_e": True, "o_scale": unit}
        rows, dtype = (
            (BATCH * queries, HEADS),
            torch.float16 if unit is None else torch.float8_e4m3fn,
        )
        out = torch.empty(*rows, LATENT, dtype=dtype, device=self.checks.device)
        outputs = {"out": out, "lse": torch.empty(rows, device=self.checks.device)}
        if not is_graph:
            outputs = {} if unit is None else {"out": out}
            return wrapper.run(*pairs[0], *pairs[1], **outputs, **options)
        wrapper.run(*pairs[0], *pairs[1], **outputs, **options)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            wrapper.run(*pairs[0], *pairs[1], **outputs, **options)
        for each in outputs.values():
            each.view(torch.uint8).fill_(0x7F)
        graph.replay()
        return outputs["out"], outputs["lse"]


class Far:
    """Pools of more than 2^32 elements. Pages whose offsets would wrap in 32 bits are NaN."""

    def __init__(self, checks: Checks, columns: tuple[int, ...], dtype: torch.dtype) -> None:
        self.checks = checks
        step = PAGE * math.prod(columns)
        bases = [-(-(2**bits) // step) for bits in (31, 32)]
        table = np.full((len(FAR_LENGTHS), FAR_WIDTH), -1, np.int32)
        places = [(i, j) for i, n in enumerate(FAR_LENGTHS) for j in range(-(-n // PAGE))]
        for number, place in enumerate(places):
            table[place] = bases[number % 2] + number // 2 + 1
        self.table, self.lengths = checks.integers(table), checks.integers(FAR_LENGTHS)
        self.rows: list[list[torch.Tensor]] = []
        self.pools = []
        for _ in range(2 if len(columns) == 2 else 1):
            pages = bases[1] + len(places) if checks.is_real else 1
            pool = torch.empty(pages, PAGE, *columns, dtype=dtype, device=checks.device)
            rows = [checks.draw(n, *columns).to(dtype) for n in FAR_LENGTHS]
            self.pools.append(pool)
            self.rows.append(rows)
            if not checks.is_real:
                continue
            used = [int(page) for page in table[table >= 0]]
            for page in (*range(len(places)), *used):
                pool[page].view(torch.uint8).fill_(0xFF)
            for i, j in places:
                part = rows[i][j * PAGE : (j + 1) * PAGE]
                pool[int(table[i, j]), : len(part)] = part

    def want(self, q: torch.Tensor, counts: Sequence[int], width: int, scale: float):
        parts = q.split(list(counts))
        of = [[each.to(q.dtype) for each in rows] for rows in self.rows]
        of = [[each if each.dim() == 3 else each[:, None] for each in rows] for rows in of]
        return stack([attend(parts[i], of[0][i], of[-1][i][..., :width], scale)
                      for i in range(len(FAR_LENGTHS))])  # fmt: skip


def check_far(checks: Checks) -> None:
    counts = (200, 64, 1, 0)
    for dtype, name in ((torch.bfloat16, "bf16"), (torch.float8_e4m3fn, "e4m3")):
        far = Far(checks, (8, 128), dtype)
        q = checks.draw(4, 32, 128, dtype=torch.bfloat16 if name == "bf16" else torch.float16)
        one = torch.ones(1, device=checks.device)
        scales = {} if name == "bf16" else {"k_scale": one, "v_scale": one}
        lists = (far.table, far.lengths)
        checks.expect(f"far decode, {name}", lambda: attn.decode(q, *far.pools, *lists, **scales),
                      lambda: far.want(q, (1,) * 4, 128, 128**-0.5), EXACT)  # fmt: skip
        if name == "bf16":
            rows = checks.draw(sum(counts), 32, 128, dtype=dtype)
            ends = checks.integers(np.cumsum([0, *counts]))
            checks.expect("far prefill", lambda: attn.prefill(rows, *far.pools, *lists, ends, max_seqlen_q=256),
                          lambda: far.want(rows, counts, 128, 128**-0.5), EXACT)  # fmt: skip
        del far
    far = Far(checks, (LATENT + ROPE,), torch.bfloat16)
    for heads in (16, 128):
        q = checks.draw(4, heads, LATENT + ROPE, dtype=torch.bfloat16)
        call = lambda: attn.mla_decode(
            q, far.pools[0], far.table, far.lengths, value_dim=LATENT, scale=SCALE
        )  # noqa: B023, E731
        checks.expect(
            f"far mla_decode, {heads}", call, lambda: far.want(q, (1,) * 4, LATENT, SCALE), EXACT
        )  # noqa: B023


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", help="the cache's")
    parser.add_argument("--prepare", action="store_true", help="compile alone")
    parser.add_argument("--chip", default="sm_90a")
    parser.add_argument("--small", action="store_true", help="without the far pools")
    options = parser.parse_args()
    os.environ["ATTN_CACHE_DIR"] = options.folder
    checks = Checks(options.chip if options.prepare else None)
    small = Small(checks)
    small.check_outputs()
    small.check_latent()
    small.check_wrapper()
    if options.small:
        print("skipped: pools of more than 2^32 elements take more memory than a host has")
    else:
        check_far(checks)
    print(f"{checks.done - checks.wrong} of {checks.done} right")
    return int(checks.wrong != 0)


if __name__ == "__main__":
    sys.exit(main())
