"""Times doors on a GPU beside what their hosts have: needs torch, and transformers for models.

    python gpu_doors.py [--json=FILE] [--only=REGEX] [--rounds=N] [--lengths=N,…] [--dims=N,…]

    attention   one layer of an 8B model's prefill (32 heads, 8 key heads, D 128, bf16, causal)
                through sdpa() and through torch's flash attention, cuDNN and, where it can be
                imported, FlashAttention-4, called itself and as torch activates it
    wide        one layer with heads of 512 columns, as Gemma 4 has
    model       prefill of 32 such layers of a Llama with random weights, by implementation
    step        host time of a decode step's attention, beside SDPA's
    flex        document mask, window, prefix, chunks and ALiBi through attn.flex_attention, with a
                block mask and without, beside torch's compiled flex_attention where that works, with
                its own kernels and with FlashAttention-4's
    lists       block masks with hidden blocks between others, as lists, beside the same
    blocks      how many blocks of 64 queries and 64 keys kernels multiply for these masks, of all,
                and of how many a query sees a key
    graph       calls in a CUDA graph: whether replays with other contents give what calls give

Each is a row of JSON with milliseconds, the median of rounds that take the candidates in turn. Rows
of masks also have "device", those of a call within a replayed CUDA graph, and "host", those that a
call takes the host alone.
"""

import argparse
import contextlib
import functools
import json
import re
import statistics
import time

import attn
import torch
from attn.doors import flex
from torch.nn import attention, functional
from torch.nn.attention import SDPBackend, sdpa_kernel

LENGTHS = (4096, 16384, 32768)
#: Those of masks, which --lengths and --dims change.
MASK_LENGTHS, MASK_DIMS = [4096, 16384], [64, 128]


def make(*shape, dtype=torch.bfloat16):
    return torch.randn(*shape, dtype=dtype, device="cuda")


def measure_rounds(candidates, rounds):
    """Median milliseconds of each candidate; one that fails has its error."""
    times, errors, counts = {name: [] for name in candidates}, {}, {}
    for name, call in candidates.items():
        try:
            for _ in range(3):
                start = time.perf_counter()
                call()
                torch.cuda.synchronize()
            # So many calls that the time of the host is behind that of the GPU.
            counts[name] = min(max(int(5e-3 / (time.perf_counter() - start)), 1), 30)
        except Exception as error:  # a peer that is missing does not stop the others
            errors[name] = f"{type(error).__name__}: {str(error)[:200]}"
    for _ in range(rounds):
        for name, call in candidates.items():
            if name in errors:
                continue
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            for _ in range(counts[name]):
                call()
            end.record()
            torch.cuda.synchronize()
            times[name].append(start.elapsed_time(end) / counts[name])
    return {
        name: round(statistics.median(each), 4) for name, each in times.items() if each
    } | errors


def measure_parts(candidates, rounds):
    """Median milliseconds of each candidate on the device alone, and on the host alone."""
    device, host = {}, {}
    for name, call in candidates.items():
        with contextlib.suppress(Exception):
            host[name] = round(statistics.median(time_host(call, 20) for _ in range(rounds)), 4)
            device[name] = round(time_replays(call, rounds), 4)
    return {"device": device, "host": host}


def time_host(call, count):
    """Milliseconds that each of so many calls takes the host; the device's queue holds them."""
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(count):
        call()
    return (time.perf_counter() - start) / count * 1e3


def time_replays(call, rounds, count=20):
    """Median milliseconds of a call, of so many in a CUDA graph."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        for _ in range(count):
            call()
    times = []
    for _ in range(rounds):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end) / count)
    return statistics.median(times)


def call_sdpa(backend, q, k, v, **options):
    def call():
        with sdpa_kernel(backend):
            return functional.scaled_dot_product_attention(q, k, v, enable_gqa=True, **options)

    return call


def call_door(q, k, v, **options):
    def call():
        with attn.torch.sdpa(strict=True):
            return functional.scaled_dot_product_attention(q, k, v, enable_gqa=True, **options)

    return call


def time_attention(rounds):
    for length in LENGTHS:
        q, k, v = make(1, 32, length, 128), make(1, 8, length, 128), make(1, 8, length, 128)
        repeated = [each.repeat_interleave(4, 1) for each in (k, v)]
        fa4 = find_fa4()
        yield (
            {"length": length},
            measure_rounds(
                {
                    "attn": call_door(q, k, v, is_causal=True),
                    **({"fa4": call_fa4(fa4, q, k, v)} if fa4 else {}),
                    "flash": call_sdpa(SDPBackend.FLASH_ATTENTION, q, k, v, is_causal=True),
                    "cudnn": call_sdpa(SDPBackend.CUDNN_ATTENTION, q, k, v, is_causal=True),
                    "cudnn, repeated heads": call_sdpa(
                        SDPBackend.CUDNN_ATTENTION, q, *repeated, is_causal=True
                    ),
                },
                rounds,
            ),
        )
        if fa4 and hasattr(attention, "activate_flash_attention_impl"):
            # As torch activates it, in the place of its own flash attention.
            attention.activate_flash_attention_impl("FA4")
            try:
                candidates = {
                    "attn": call_door(q, k, v, is_causal=True),
                    "FA4": call_sdpa(SDPBackend.FLASH_ATTENTION, q, k, v, is_causal=True),
                }
                with take_two_results():
                    found = measure_rounds(candidates, rounds)
                yield {"length": length, "torch's flash": "FA4"}, found
            finally:
                attention.restore_flash_attention_impl()


def find_fa4():
    """FlashAttention-4's function on (batch, sequence, heads, dim); None where it is not there."""
    with contextlib.suppress(Exception):
        from flash_attn.cute import flash_attn_func

        return flash_attn_func
    return None


@contextlib.contextmanager
def take_two_results():
    """Within it FlashAttention-4's function has two results, as torch 2.11 takes them; newer
    versions have more, which their own callers take."""
    from flash_attn.cute import interface

    function = interface._flash_attn_fwd

    # The function asks its own name for what it has compiled, an attribute of it.
    @functools.wraps(function)
    def call(*given, **options):
        return function(*given, **options)[:2]

    interface._flash_attn_fwd = call
    try:
        yield
    finally:
        interface._flash_attn_fwd = function


def call_fa4(function, q, k, v):
    q, k, v = (each.transpose(1, 2).contiguous() for each in (q, k, v))
    return lambda: function(q, k, v, causal=True)


def time_wide(rounds):
    for length in (4096, 16384):
        q, k, v = make(1, 8, length, 512), make(1, 4, length, 512), make(1, 4, length, 512)
        torchs = [SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]
        candidates = {
            "attn": call_door(q, k, v, is_causal=True),
            "torch": call_sdpa(torchs, q, k, v, is_causal=True),
        }
        if length > 4096:
            # Its scores would not fit.
            del candidates["torch"]
        yield {"length": length}, measure_rounds(candidates, min(rounds, 5))


def time_model(rounds):
    import transformers

    transformers.logging.set_verbosity_error()
    attn.hf.register()
    config = transformers.LlamaConfig(
        hidden_size=4096, intermediate_size=14336, num_hidden_layers=32, num_attention_heads=32,
        num_key_value_heads=8, head_dim=128, vocab_size=32000, max_position_embeddings=40000,
    )  # fmt: skip
    torch.set_default_dtype(torch.bfloat16)
    with torch.device("cuda"):
        model = transformers.LlamaForCausalLM(config).eval()
    torch.set_default_dtype(torch.float32)

    def prefill(ids, name):
        def call():
            model.set_attn_implementation(name)
            with torch.no_grad():
                return model(ids, use_cache=False, logits_to_keep=1).logits

        return call

    for length in LENGTHS:
        ids = torch.randint(3, 32000, (1, length), device="cuda")
        got, want = (prefill(ids, name)().float() for name in ("attn", "sdpa"))
        with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
            other = prefill(ids, "sdpa")().float()
        # Compares with what bf16 makes of two orders of the same sums.
        spread, error = (
            round(((each - want).abs().max() / want.abs().max()).item(), 5) for each in (other, got)
        )
        candidates = {name: prefill(ids, name) for name in ("attn", "sdpa")}
        yield (
            {"length": length, "beside sdpa": error, "cudnn beside sdpa": spread},
            measure_rounds(candidates, min(rounds, 5)),
        )


def time_step(rounds):
    import transformers

    attn.hf.register()
    forwards = {name: transformers.AttentionInterface()[name] for name in ("attn", "sdpa")}
    layer = torch.nn.Module().eval()
    layer.num_key_value_groups = 4
    from attn.doors import model_masks

    for keys in (1000, 4000):
        q, k, v = make(1, 32, 1, 128), make(1, 8, keys, 128), make(1, 8, keys, 128)
        mask = model_masks.make_mask(1, 1, keys, keys - 1, 0, device="cuda")
        found = {}
        for name, given in (("attn", mask), ("sdpa", None)):
            with torch.no_grad():
                for _ in range(20):
                    forwards[name](layer, q, k, v, given, scaling=128**-0.5)
                torch.cuda.synchronize()
                times = []
                for _ in range(rounds):
                    start = time.perf_counter()
                    for _ in range(50):
                        forwards[name](layer, q, k, v, given, scaling=128**-0.5)
                    times.append((time.perf_counter() - start) / 50 * 1e3)
                    torch.cuda.synchronize()
            found[name] = round(statistics.median(times), 5)
        yield {"keys": keys, "unit": "host ms"}, found


def make_masks(length):
    """The masks by name, and the score_mod of one of them."""
    ids = torch.arange(length, device="cuda") // (length // 8)
    masks = {
        "document": lambda b, h, q, k: (ids[q] == ids[k]) & (q >= k),
        "window": lambda b, h, q, k: (q >= k) & (q - k <= 1024),
        "prefix": lambda b, h, q, k: (k < 1024) | (q >= k),
        "chunks": lambda b, h, q, k: (q // 1024 == k // 1024) & (q >= k),
        "alibi": lambda b, h, q, k: q >= k,
    }
    slopes = lambda s, b, h, i, j: s + (j - i) * torch.exp2(-0.5 * (h + 1))  # noqa: E731
    return masks, {"alibi": slopes}


def make_candidates(mask, score, q, k, v):
    """Calls with a mask, by name; `k` and `v` may be written over in between."""
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    length = q.shape[2]
    # A compiled function has a limit of recompilations.
    torch._dynamo.reset()
    compiled = torch.compile(flex_attention)
    block = create_block_mask(mask, None, None, length, length, device="cuda")
    # Its blocks are of 256 queries on these chips.
    flash_block = create_block_mask(
        mask, None, None, length, length, device="cuda", BLOCK_SIZE=(256, 128)
    )
    options = {"kernel_options": {"BACKEND": "FLASH"}}
    return {
        "attn": lambda: attn.flex_attention(q, k, v, score, block),
        "attn, no block mask": lambda: attn.attention(q, k, v, score_mod=score, mask_mod=mask),
        "torch": lambda: compiled(q, k, v, score, block),
        "torch, FLASH": lambda: compiled(q, k, v, score, flash_block, **options),
    }


def time_flex(rounds):
    for length in MASK_LENGTHS:
        masks, scores = make_masks(length)
        for dim in MASK_DIMS:
            for name, mask in masks.items():
                operands = [make(1, 16, length, dim) for _ in range(3)]
                candidates = make_candidates(mask, scores.get(name), *operands)
                found = measure_rounds(candidates, min(rounds, 9))
                candidates.pop("torch, FLASH")
                # Longer calls hide the host's time.
                parts = measure_parts(candidates, min(rounds, 9)) if length <= 4096 else {}
                yield {"mask": name, "length": length, "dim": dim, **parts}, found


#: Queries and keys of a block that is counted.
BLOCK = 64


def count_blocks(call, v):
    """How many blocks of queries and keys a call multiplies, in the mean of the heads: those of
    queries whose results are no numbers where a block of values is none. Writes over `v`, (1,
    heads, keys, dim)."""
    _, heads, length, _ = v.shape
    blocks = length // BLOCK
    found = 0
    for first in range(0, blocks, heads):
        v.fill_(1)
        places = range(first, min(first + heads, blocks))
        for head, place in enumerate(places):
            v[:, head, place * BLOCK : (place + 1) * BLOCK] = float("nan")
        o = call()[:, : len(places)]
        rows = o.reshape(len(places), blocks, -1).isnan().any(-1)
        found += int(rows.sum())
    return found


def time_blocks(_):
    """Blocks that are multiplied: all else was skipped."""
    for length in MASK_LENGTHS:
        masks, scores = make_masks(length)
        for dim in MASK_DIMS:
            for name, mask in masks.items():
                q, k, v = (make(1, 16, length, dim) for _ in range(3))
                candidates = make_candidates(mask, scores.get(name), q, k, v)
                candidates.pop("torch, FLASH")
                places = torch.arange(length, device="cuda")
                seen = mask(0, 0, places[:, None], places).unflatten(0, (-1, BLOCK))
                needed = seen.any(1).unflatten(1, (-1, BLOCK)).any(-1).sum().item()
                found = {each: count_blocks(call, v) for each, call in candidates.items()}
                of_all = {"all": (length // BLOCK) ** 2, "needed": needed}
                yield {"mask": name, "length": length, "dim": dim, "unit": "blocks", **of_all}, found


def time_lists(rounds):
    """Each query block sees its own block, the first one and every eighth one before it."""
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    def mask(b, h, q, k):
        row, column = q // 128, k // 128
        return (q >= k) & ((row == column) | (column == 0) | ((row - column) % 8 == 0))

    for length in MASK_LENGTHS:
        for dim in MASK_DIMS:
            q, k, v = make(1, 16, length, dim), make(1, 4, length, dim), make(1, 4, length, dim)
            torch._dynamo.reset()
            compiled = torch.compile(flex_attention)
            block = create_block_mask(mask, None, None, length, length, device="cuda")
            assert flex.find_mask(block).lists is not None
            got = attn.flex_attention(q, k, v, None, block, enable_gqa=True).float()
            want = compiled(q, k, v, None, block, enable_gqa=True).float()
            candidates = {
                "attn, lists": lambda: attn.flex_attention(q, k, v, None, block, enable_gqa=True),
                "attn, no block mask": lambda: attn.attention(q, k, v, mask_mod=mask),
                "torch": lambda: compiled(q, k, v, None, block, enable_gqa=True),
            }
            error = round((got - want).norm().item() / want.norm().item(), 6)
            parts = measure_parts(candidates, min(rounds, 9)) if length <= 4096 else {}
            yield (
                {"length": length, "dim": dim, "beside torch": error, **parts},
                measure_rounds(candidates, min(rounds, 9)),
            )


def check_graphs(_):
    """Replays of a captured call read what is in its tensors then."""
    from torch.nn.attention.flex_attention import create_block_mask

    block = create_block_mask(
        lambda b, h, q, k: (q // 256 == k // 256) | (k < 128), None, None, 1024, 1024, device="cuda"
    )
    lengths = torch.tensor([0, 100, 1024], dtype=torch.int32, device="cuda")

    def through_sdpa(q):
        with attn.torch.sdpa(strict=True):
            return functional.scaled_dot_product_attention(q, q, q, is_causal=True)

    calls = {
        "attention": lambda q: attn.attention(q, q, q, causal=True),
        "sdpa": through_sdpa,
        "flex": lambda q: attn.flex_attention(q, q, q, block_mask=block),
        "packed": lambda q: attn.attention(
            *[q[0].transpose(0, 1)] * 3, cu_seqlens_q=lengths, cu_seqlens_k=lengths, max_seqlen_q=1024
        ),
    }  # fmt: skip
    for name, call in calls.items():
        q = make(1, 8, 1024, 128)
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(3):
                call(q)
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            o = call(q)
        equal = []
        for _ in range(3):
            q.copy_(make(1, 8, 1024, 128))
            graph.replay()
            torch.cuda.synchronize()
            equal.append(torch.equal(o, call(q)))
        yield {"call": name, "unit": "equal"}, {"replays": equal}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--json")
    parser.add_argument("--only", default="")
    parser.add_argument("--rounds", type=int, default=15)
    for name, known in (("--lengths", MASK_LENGTHS), ("--dims", MASK_DIMS)):
        parser.add_argument(name, default=",".join(map(str, known)), help="of masks")
    options = parser.parse_args()
    MASK_LENGTHS[:] = map(int, options.lengths.split(","))
    MASK_DIMS[:] = map(int, options.dims.split(","))
    rows = []
    for name, run in (
        ("attention", time_attention), ("wide", time_wide), ("step", time_step), ("flex", time_flex),
        ("lists", time_lists), ("blocks", time_blocks), ("graph", check_graphs), ("model", time_model),
    ):  # fmt: skip
        if not re.search(options.only, name):
            continue
        with contextlib.suppress(KeyboardInterrupt):
            try:
                for what, found in run(options.rounds):
                    rows.append({"case": name, **what, "ms": found})
                    print(json.dumps(rows[-1]), flush=True)
            except Exception as error:
                rows.append({"case": name, "error": f"{type(error).__name__}: {str(error)[:300]}"})
                print(json.dumps(rows[-1]), flush=True)
        if options.json:
            with open(options.json, "w", encoding="utf-8") as file:
                json.dump(
                    {
                        "device": torch.cuda.get_device_name(),
                        "torch": torch.__version__,
                        "rows": rows,
                    },
                    file,
                    indent=1,
                )


if __name__ == "__main__":
    main()
