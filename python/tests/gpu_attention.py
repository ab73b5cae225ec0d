#!/usr/bin/env python3
"""Checks attn.attention on the GPU against float64: layouts, options, score_mod
and mask_mod, packed sequences, torch.compile and CUDA graphs; and measures the
host's time of a call beside PyTorch's.

    PYTHONPATH=python python3 python/tests/gpu_attention.py --prepare FOLDER --chip sm_90a
    PYTHONPATH=python python3 python/tests/gpu_attention.py FOLDER

The first command compiles all kernels into a cache folder and needs torch but no
GPU; the second one needs no compiler where the folder is filled. Exit status 1
when something is wrong.
"""

from __future__ import annotations

import argparse
import math
import os
import re
import sys
import time
import traceback

import torch

import attn
from attn import mods as am

#: Largest relative error of O, largest absolute error of LSE.
TOLERANCES = {torch.float16: 2e-3, torch.bfloat16: 1.6e-2}
LSE_TOLERANCE = 1e-3
F16, BF16 = torch.float16, torch.bfloat16


def randn(*shape, dtype=F16, device="meta"):
    return torch.randn(*shape, device=device, dtype=torch.float32).to(dtype)


class Case:
    """Tensors and options of a call; `score` and `mask` are what its functions
    do to whole tensors."""

    def __init__(self, q, k, v, options=None, score=None, mask=None):
        self.tensors = (q, k, v)
        self.options = options or {}
        self.score, self.mask = score, mask

    def call(self, **more):
        return attn.attention(*self.tensors, lse=True, **{**self.options, **more})


def dense(device, dtype=F16, shape=(2, 4, 300, 64), keys=None, kv_heads=None, **options):
    batch, heads, rows, dim = shape
    k, v = (
        randn(batch, kv_heads or heads, keys or rows, dim, dtype=dtype, device=device)
        for _ in range(2)
    )
    return Case(randn(*shape, dtype=dtype, device=device), k, v, options)


def bnhd(device):
    q, k, v = (randn(2, 300, 4, 128, dtype=BF16, device=device).transpose(1, 2) for _ in range(3))
    return Case(q, k, v, {"causal": True})


def packed_projection(device):
    q, k, v = randn(2, 200, 3, 4, 64, device=device).permute(2, 0, 3, 1, 4)
    return Case(q, k, v, {"causal": True})


def broadcast_keys(device):
    q, k = randn(2, 4, 130, 64, device=device), randn(1, 1, 130, 64, device=device)
    return Case(q, k.expand(2, 4, -1, -1), k.expand(2, 4, -1, -1))


def packed(device, **options):
    lengths_q, lengths_k = [0, 100, 100, 357, 400], [0, 90, 130, 387, 500]
    if device == "meta":
        sums = [torch.empty(5, dtype=torch.int32, device=device) for _ in range(2)]
    else:
        sums = [torch.tensor(n, dtype=torch.int32, device=device) for n in (lengths_q, lengths_k)]
    q = randn(400, 4, 64, device=device)
    k, v = (randn(500, 2, 64, device=device) for _ in range(2))
    options = {"cu_seqlens_q": sums[0], "cu_seqlens_k": sums[1], "max_seqlen_q": 257, **options}
    return Case(q, k, v, options)


def alibi(device, make=dense, **options):
    slopes = randn(4, dtype=torch.float32, device=device) * 0.1
    case = make(device, **options)
    case.options["score_mod"] = lambda score, b, h, q, k: score + slopes[h] * (k - q)
    case.score = lambda score, b, h, q, k: score + slopes.double()[h] * (k - q)
    return case


def table_bias(device):
    table = randn(4, 257, dtype=BF16, device=device)
    case = dense(device, BF16, (1, 4, 200, 128), causal=True)
    case.options["score_mod"] = lambda s, b, h, q, k: s + table[h, am.clip(k - q, -128, 128) + 128]
    case.score = lambda s, b, h, q, k: s + table.double()[h, (k - q).clamp(-128, 128) + 128]
    return case


def documents(device):
    if device == "meta":
        ids = torch.empty(2, 300, dtype=torch.int64, device=device)
    else:
        ids = torch.randint(0, 5, (2, 300), device=device).sort(-1).values
    case = dense(device)
    case.options["mask_mod"] = lambda b, h, q, k: (ids[b, q] == ids[b, k]) & (q >= k)
    case.mask = case.options["mask_mod"]
    return case


def sliding(device):
    case = dense(device, BF16, (1, 4, 500, 64))
    case.options["mask_mod"] = case.mask = lambda b, h, q, k: (q >= k) & (q - k < 64)
    return case


def prefix(device):
    prefixes = torch.full((2,), 100, dtype=torch.int32, device=device)
    case = dense(device)
    case.options["mask_mod"] = case.mask = lambda b, h, q, k: (k < prefixes[b]) | (q >= k)
    return case


def softcap(device):
    case = dense(device, shape=(1, 4, 300, 128))
    case.options["score_mod"] = case.score = lambda s, b, h, q, k: 20 * torch.tanh(s / 20)
    return case


CASES = {
    "f16 d64": dense,
    "f16 d64 causal": lambda d: dense(d, causal=True),
    "bf16 d128 causal": lambda d: dense(d, BF16, (2, 4, 300, 128), causal=True),
    "bf16 d256": lambda d: dense(d, BF16, (1, 4, 300, 256)),
    "gqa, bottom-right": lambda d: dense(d, keys=500, kv_heads=2, causal="bottom-right"),
    "window": lambda d: dense(d, window=(100, 20)),
    "softcap, scale": lambda d: dense(d, softcap=15.0, scale=0.3),
    "sinks": lambda d: dense(d, sinks=randn(4, dtype=torch.float32, device=d)),
    "bnhd": bnhd,
    "packed projection": packed_projection,
    "broadcast keys": broadcast_keys,
    "packed sequences": packed,
    "packed sequences, causal": lambda d: packed(d, causal=True),
    "alibi": alibi,
    "alibi, any strides": lambda d: alibi(d, lambda device: packed_projection(device)),
    "alibi, packed sequences": lambda d: alibi(d, packed),
    "bias from a table": table_bias,
    "document mask": documents,
    "sliding mask_mod": sliding,
    "prefix": prefix,
    "softcap as score_mod": softcap,
}


def attend(q, k, v, case, b):
    """One sequence in float64: (head, row, dim)."""
    options = case.options
    heads, rows, dim = q.shape
    keys = k.shape[1]
    q, k, v = (each.double() for each in (q, k, v))
    k, v = (each.repeat_interleave(heads // k.shape[0], 0) for each in (k, v))
    scores = q @ k.transpose(1, 2) * (options.get("scale") or dim**-0.5)
    if options.get("softcap"):
        scores = options["softcap"] * torch.tanh(scores / options["softcap"])
    h = torch.arange(heads, device=q.device)[:, None, None]
    i = torch.arange(rows, device=q.device)[None, :, None]
    j = torch.arange(keys, device=q.device)[None, None, :]
    batch = torch.tensor(b, device=q.device)
    if case.score:
        scores = case.score(scores, batch, h, i, j)
    kept = case.mask(batch, h, i, j) if case.mask else torch.ones_like(scores, dtype=torch.bool)
    shifted = i + (keys - rows if options.get("causal") == "bottom-right" else 0)
    if options.get("causal"):
        kept = kept & (j <= shifted)
    if options.get("window"):
        left, right = options["window"]
        kept = kept & (j >= i - left) & (j <= i + right)
    scores = scores.masked_fill(~kept, -math.inf)
    lse = torch.logsumexp(scores, -1) if keys else scores.new_full((heads, rows), -math.inf)
    if options.get("sinks") is not None:
        lse = torch.logaddexp(lse, options["sinks"].double()[:, None])
    weights = torch.exp(scores - lse[..., None]).masked_fill(~kept, 0)
    return weights @ v, lse


def compare(case, o, lse):
    """Relative error of O and largest error of LSE."""
    q, k, v = case.tensors
    if "cu_seqlens_q" in case.options:
        sums = [case.options[f"cu_seqlens_{side}"].tolist() for side in "qk"]
        pairs = []
        for n in range(len(sums[0]) - 1):
            rows, keys = (slice(s[n], s[n + 1]) for s in sums)
            parts = (q[rows], k[keys], v[keys])
            wanted = attend(*[part.transpose(0, 1) for part in parts], case, n)
            pairs.append((o[rows].transpose(0, 1), lse[:, rows], *wanted))
    else:
        pairs = [(o[b], lse[b], *attend(q[b], k[b], v[b], case, b)) for b in range(len(q))]
    difference = norm = worst = 0.0
    for got, got_lse, wanted, wanted_lse in pairs:
        difference += float((got.double() - wanted).square().sum())
        norm += float(wanted.square().sum())
        if got_lse.numel():
            gap = (got_lse.double() - wanted_lse).abs()
            gap = gap.masked_fill(got_lse == wanted_lse, 0)
            worst = max(worst, float(gap.nan_to_num(math.inf).max()))
    error = math.sqrt(difference / norm) if norm else math.sqrt(difference)
    return (error if error == error else math.inf), worst


def judge(case, o, lse):
    """Whether the results are right, and the errors as text."""
    error, gap = compare(case, o, lse)
    good = error <= TOLERANCES[case.tensors[0].dtype] and gap <= LSE_TOLERANCE
    return good, f"O {error:.1e}, LSE {gap:.1e}"


def check_case(name):
    case = CASES[name]("cuda")
    o, lse = case.call()
    good, text = judge(case, o, lse)
    # Written tensors instead of new ones: the same bits.
    again, lse_again = torch.full_like(o, math.nan), torch.full_like(lse, math.nan)
    attn.attention(*case.tensors, **case.options, out=again, lse=lse_again)
    same = torch.equal(again, o) and torch.equal(lse_again, lse)
    return good and same, text + ("" if same else ", other results with out=")


def check_compile(backend):
    """A layer with a score_mod and operations around, recompiled for other shapes."""
    slopes = torch.tensor([0.1, 0.2, 0.3, 0.4], device="cuda")
    mod = attn.score_mod(lambda score, b, h, q, k: score + slopes[h] * (k - q))

    def layer(x):
        q, k, v = x.unflatten(-1, (3, 4, 64)).permute(2, 0, 3, 1, 4)
        return attn.attention(q, k, v, score_mod=mod, causal=True, lse=True)

    compiled = torch.compile(layer, fullgraph=True, backend=backend)
    worst = 0.0
    for rows in (200, 333):
        x = randn(2, rows, 768, device="cuda")
        o, lse = compiled(x)
        q, k, v = x.unflatten(-1, (3, 4, 64)).permute(2, 0, 3, 1, 4)
        case = Case(q, k, v, {"causal": True})
        case.score = lambda s, b, h, i, j: s + slopes.double()[h] * (j - i)
        error, gap = compare(case, o, lse)
        worst = max(worst, error, gap)
    return worst <= TOLERANCES[F16], f"worst {worst:.1e}"


def check_graph():
    """A captured call, replayed on other contents of the same memory."""
    case = alibi("cuda")
    case.call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        o, lse = case.call()
    results = []
    for _ in range(2):
        for tensor in case.tensors:
            tensor.copy_(randn(*tensor.shape, device="cuda"))
        o.fill_(math.nan)
        graph.replay()
        torch.cuda.synchronize()
        results.append(judge(case, o, lse))
    return all(good for good, _ in results), results[-1][1]


def check_stream():
    """The kernel runs on torch's current stream, behind what is there."""
    case = dense("cuda")
    case.call()
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(20_000_000)
        for tensor in case.tensors:
            tensor.mul_(0.5)
        o, lse = case.call()
    stream.synchronize()
    return judge(case, o, lse)


def decode_step(device, length, cache=None):
    """One query and the first rows of a cache."""
    if cache is None:
        cache = randn(2, 1, 8, 2048, 128, dtype=BF16, device=device)
    k, v = cache[:, :, :, :length]
    return Case(randn(1, 32, 1, 128, dtype=BF16, device=device), k, v)


def check_growth():
    """A prompt and 1000 tokens behind it take as many kernels as one of each."""
    from attn.calls import shared_kernels

    prompt = dense("cuda", BF16, (1, 32, 500, 128), kv_heads=8, causal=True)
    kept = set(shared_kernels._loaded)
    results = [judge(prompt, *prompt.call())]
    cache = randn(2, 1, 8, 2048, 128, dtype=BF16, device="cuda")
    for length in range(502, 1502):
        case = decode_step("cuda", length, cache)
        o, lse = case.call()
        if length % 100 == 1:
            results.append(judge(case, o, lse))
    count = len(set(shared_kernels._loaded) - kept)
    return all(good for good, _ in results) and count <= 2, f"{count} kernels, {results[-1][1]}"


def check_thread():
    """A thread whose first CUDA call this is."""
    import threading

    case, results = dense("cuda"), []
    thread = threading.Thread(target=lambda: results.append(case.call()))
    thread.start()
    thread.join()
    return judge(case, *results[0])


def measure(rows, calls=500, rounds=20):
    """Microseconds of the host for one call of each row, the best of some rounds
    through all rows. The calls of a round fit into the launch queue."""
    best = dict.fromkeys(rows, math.inf)
    for _ in range(rounds + 1):
        for name, call in rows.items():
            torch.cuda.synchronize()
            start = time.perf_counter()
            for _ in range(calls):
                call()
            best[name] = min(best[name], (time.perf_counter() - start) / calls * 1e6)
    torch.cuda.synchronize()
    return best


def measure_all():
    """Host time per call on a problem whose kernel is shorter than that."""
    from attn import runtime
    from attn.calls import attention_kernels

    torch.use_deterministic_algorithms(False)
    q = randn(1, 1, 64, 64, device="cuda")
    slopes = torch.ones(1, device="cuda")
    bias = lambda score, b, h, i, j: score + slopes[h] * (j - i)  # noqa: E731
    traced = attn.score_mod(bias)
    out = torch.empty_like(q)
    attn.attention(q, q, q, causal=True)
    (call,) = [c for c in attention_kernels._calls.values() if c.o_shape == (1, 1, 64, 64)][-1:]
    stream = runtime.get_torch_stream(0)
    addresses = [q.data_ptr()] * 3 + [out.data_ptr()]
    call.launch(addresses, stream)
    prepared = call.prepared
    step = prepared._steps[0]
    function, frame = step.function, step._local.frame
    op = torch.ops.attn.attention.default
    flash = torch.nn.attention.SDPBackend.FLASH_ATTENTION
    sdpa = torch.nn.functional.scaled_dot_product_attention
    rows = {
        "the launch alone": lambda: function.launch(frame.shape, stream, frame.parameters),
        "call.launch": lambda: call.launch(addresses, stream),
        "attn.attention": lambda: attn.attention(q, q, q, causal=True),
        "attn.attention, out=": lambda: attn.attention(q, q, q, causal=True, out=out),
        "attn.attention, lse": lambda: attn.attention(q, q, q, causal=True, lse=True),
        "attn.attention, score_mod traced before": lambda: attn.attention(
            q, q, q, score_mod=traced
        ),
        "attn.attention, score_mod a function": lambda: attn.attention(q, q, q, score_mod=bias),
        "torch.ops.attn.attention": lambda: op(q, q, q, causal="top-left"),
        "torch.empty_like": lambda: torch.empty_like(q),
    }
    rows["SDPA, flash backend"] = lambda: sdpa(q, q, q, is_causal=True)
    with torch.nn.attention.sdpa_kernel(flash):
        times = measure(rows)
    alone = times["the launch alone"]
    for name, microseconds in times.items():
        print(f"  {name:42} {microseconds:7.2f} us  {microseconds - alone:+7.2f}")
    over = times["attn.attention"] - alone
    return over < 20, f"{over:.1f} us beyond the launch"


def prepare(chip):
    """Compiles every kernel that the checks need."""
    for name, make in CASES.items():
        case = make("meta")
        attn.prepare(*case.tensors, chip=chip, lse=True, **case.options)
        if "cu_seqlens_q" not in case.options:
            out = torch.empty_like(case.tensors[0])
            attn.prepare(*case.tensors, chip=chip, lse=True, out=out, **case.options)
        print(f"{name}", file=sys.stderr)
    prompt = dense("meta", BF16, (1, 32, 500, 128), kv_heads=8, causal=True)
    for case in (prompt, decode_step("meta", 501)):
        attn.prepare(*case.tensors, chip=chip, lse=True, **case.options)
    slopes = torch.empty(4, device="meta")
    q = torch.empty(2, 200, 4, 192, dtype=F16, device="meta").transpose(1, 2)[..., :64]
    mod = lambda score, b, h, i, j: score + slopes[h] * (j - i)  # noqa: E731
    attn.prepare(q, q, q, chip=chip, score_mod=mod, causal=True, lse=True)
    q = torch.empty(1, 1, 64, 64, dtype=F16, device="meta")
    slopes = torch.empty(1, device="meta")
    attn.prepare(q, q, q, chip=chip, causal=True)
    attn.prepare(q, q, q, chip=chip, causal=True, lse=True)
    attn.prepare(q, q, q, chip=chip, score_mod=mod)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", help="the cache folder")
    parser.add_argument("--prepare", action="store_true")
    parser.add_argument("--chip", default="sm_90a")
    parser.add_argument("--only", default="", metavar="REGEX", help="checks whose name matches")
    options = parser.parse_args()
    os.environ["ATTN_CACHE_DIR"] = os.path.abspath(options.folder)
    if options.prepare:
        prepare(options.chip)
        return 0
    torch.manual_seed(0)
    # New tensors begin as NaN.
    torch.use_deterministic_algorithms(True, warn_only=True)
    checks = {name: lambda name=name: check_case(name) for name in CASES}
    checks["CUDA graph"] = check_graph
    checks["another stream"] = check_stream
    checks["another thread"] = check_thread
    checks["a growing cache"] = check_growth
    checks["torch.compile, aot_eager"] = lambda: check_compile("aot_eager")
    checks["host time"] = measure_all
    # Slow, since it compiles.
    checks["torch.compile, inductor"] = lambda: check_compile("inductor")
    failures = []
    checks = {name: check for name, check in checks.items() if re.search(options.only, name)}
    for name, check in checks.items():
        try:
            good, text = check()
        except Exception as error:
            good, text = False, f"{type(error).__name__}: {str(error)[:300]}"
            traceback.print_exc()
        print(f"{'ok   ' if good else 'WRONG'} {name:28} {text}", flush=True)
        failures += [] if good else [name]
    print(f"{len(checks) - len(failures)} of {len(checks)} right on {torch.cuda.get_device_name()}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
