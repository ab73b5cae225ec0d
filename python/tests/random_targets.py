"""The calls that random_calls.py changes: how right ones are made, and who judges their results
by float64."""

from __future__ import annotations

import attn
import numpy as np
from attn import arrays, runtime
from attn.compat import flashinfer

HEADS, KV_HEADS, DIM, PAGE, PAGES, WIDTH = 4, 2, 32, 16, 12, 4
LATENT, VALUES = 96, 64


class Wrong(Exception):
    """A result that is not what float64 gives."""


def widen(array):
    """Numbers as float64, of bits too."""
    element = arrays.find_element(array.dtype)
    if element == "bf16":
        return arrays.from_bf16(array.view("u2")).astype(float)
    return array.astype(float)


def compare(what, got, want, atol=2e-2):
    got = widen(np.asarray(got))
    if got.shape != want.shape:
        raise Wrong(f"{what}: shape {got.shape}, not {want.shape}")
    with np.errstate(all="ignore"):
        fits = (got == want) | (np.isnan(got) & np.isnan(want))
        fits |= np.abs(got - want) <= atol * np.maximum(1, np.abs(want))
    if not fits.all():
        place = tuple(np.argwhere(~fits)[0])
        raise Wrong(f"{what}: {got[place]} at {place}, not {want[place]}, {(~fits).sum()} such")


def read_window(window, causal):
    left, right = (-1, -1) if window is None else [-1 if each is None else int(each) for each in window]
    return left, 0 if causal else right


def attend_rows(q, keys, values, seen, options):
    """(queries, heads, dim) on (keys, key heads, dim)."""
    queries, heads, dim = q.shape
    o, lse = np.zeros((queries, heads, values.shape[-1])), np.full((queries, heads), -np.inf)
    scale, cap, sinks = (options.get(name) for name in ("scale", "softcap", "sinks"))
    scale = dim**-0.5 if scale is None else float(scale)
    with np.errstate(all="ignore"):
        for i, h in np.ndindex(queries, heads):
            g = h // (heads // keys.shape[1])
            scores = keys[seen[i], g] @ q[i, h] * scale
            scores = float(cap) * np.tanh(scores / float(cap)) if cap else scores
            logits = scores if sinks is None else np.append(scores, float(sinks[h]))
            top = logits.max(initial=-np.inf)
            if np.isposinf(top) and not np.isposinf(scores.max(initial=0)):
                lse[i, h] = np.inf
            elif not np.isneginf(top):
                weights = np.exp(scores - top)
                total = np.exp(logits - top).sum()
                lse[i, h], o[i, h] = top + np.log(total), weights / total @ values[seen[i], g]
    return o, lse


def gather(pool, table, length):
    """Keys of a sequence; pages that the pool does not have are zeros."""
    pages, page = pool.shape[:2]
    length = max(0, min(int(length), table.shape[0] * page))
    rows = np.zeros((length, *pool.shape[2:]))
    exists = np.zeros(length, bool)
    for n in range(length):
        id = int(table[n // page])
        if 0 <= id < pages:
            rows[n], exists[n] = pool[id, n % page], True
    return rows, exists


def attend(q, k, v, table, lengths, causal=True, window=None, selected=False, **options):
    """q is a list of (queries, heads, dim) for each sequence; pools are nhd."""
    results = []
    for b, rows in enumerate(q):
        (keys, exists), (values, _) = gather(k, table[b], lengths[b]), gather(v, table[b], lengths[b])
        at = np.arange(len(rows))[:, None] + len(keys) - len(rows)
        left, right = read_window(window, causal)
        column = np.arange(len(keys))
        seen = np.ones((len(rows), len(keys)), bool)
        if left >= 0:
            seen &= column >= at - left
        if right >= 0 and not (len(rows) == 1):
            seen &= column <= at + right
        if selected:
            seen &= exists
        results.append(attend_rows(rows, keys, values, seen, options))
    return results


def make_pools(rng, dtype="f2"):
    shape = (PAGES, PAGE, KV_HEADS, DIM)
    k, v = (rng.standard_normal(shape).astype(np.float32) for _ in "kv")
    if dtype == "u2":
        return arrays.to_bf16(k), arrays.to_bf16(v)
    return k.astype(dtype), v.astype(dtype)


def make_tables(rng, batch=2):
    table = rng.permutation(PAGES)[: batch * WIDTH].reshape(batch, WIDTH).astype(np.int32)
    lengths = rng.choice([0, 1, 17, 40, 64], batch).astype(np.int32)
    return {"page_table": table, "kv_lengths": lengths}


def make_decode(rng):
    dtype = rng.choice(["f2", "u2"])
    q = rng.standard_normal((2, HEADS, DIM)).astype(np.float32)
    q = arrays.to_bf16(q) if dtype == "u2" else q.astype(dtype)
    k, v = make_pools(rng, dtype)
    call = {"q": q, "k_cache": k, "v_cache": v, **make_tables(rng)}
    extra = {
        "layout": "nhd", "causal": True, "window": None, "softcap": None, "scale": None, "sinks": None,
        "kv_splits": None, "run_keys": None, "partials": "auto", "selected": False, "lse": False,
        "k_scale": None, "v_scale": None, "init": None, "out_scale": None, "out": None, "stream": None,
        "score_mod": None, "mask_mod": None, "k_scales": None, "v_scales": None,
    }  # fmt: skip
    return call, extra


#: Options whose results this file computes; a call with others is not compared.
COVERED = {"layout", "causal", "window", "softcap", "scale", "sinks", "selected", "lse", "kv_splits",
           "run_keys", "partials"}  # fmt: skip


def prepare(call):
    """What the reference takes of a call: tensors as float64, options; None of others."""
    given = {name: each for name, each in call.items() if each is not None}
    if abs(float(given.get("scale", 1))) > 1e4:
        return None  # Scores may leave the range that docs/Reference.md promises.
    tensors = ("q", "k_cache", "v_cache", "kv_cache", "page_table", "kv_lengths", "cu_seqlens_q")
    options = {name: each for name, each in given.items() if name not in (*tensors, "max_seqlen_q", "value_dim")}
    if set(options) - COVERED:
        return None
    for name in ("kv_splits", "run_keys", "partials", "lse"):
        options.pop(name, None)
    layout = options.pop("layout", "nhd").lower()
    wide = {name: widen(np.asarray(given[name])) for name in tensors[:4] if name in given}
    if layout == "hnd":
        wide |= {name: wide[name].swapaxes(1, 2) for name in ("k_cache", "v_cache")}
    return wide, given, options


def judge_decode(call, got):
    ready = prepare(call)
    if ready is None:
        return
    wide, given, options = ready
    q = wide["q"]
    rows = q[:, :, None] if q.ndim == 3 else q
    args = (wide["k_cache"], wide["v_cache"], given["page_table"], given["kv_lengths"])
    parts = attend([each.swapaxes(0, 1) for each in rows], *args, **options)
    shape = (*rows.shape[:3], wide["v_cache"].shape[-1])
    o = np.array([each[0].swapaxes(0, 1) for each in parts]).reshape(shape)
    lse = np.array([each[1].T for each in parts]).reshape(shape[:3])
    if q.ndim == 3:
        o, lse = o[:, :, 0], lse[:, :, 0]
    judge_outputs(call, got, o, lse, np.asarray(given["q"]).dtype)


def judge_outputs(call, got, o, lse, dtype):
    wants = call.get("lse") is not None and bool(call.get("lse"))
    if wants != isinstance(got, tuple):
        raise Wrong(f"lse={call.get('lse')!r} gives {type(got).__name__}")
    first = got[0] if wants else got
    if dtype is not None and first.dtype != dtype:
        raise Wrong(f"o has {first.dtype}, q {dtype}")
    compare("o", first, o)
    if wants:
        compare("lse", got[1], lse, 5e-3)


def make_prefill(rng):
    call, extra = make_decode(rng)
    counts = np.int32([0, rng.integers(0, 6), 7])
    q = rng.standard_normal((7, HEADS, DIM)).astype(np.float32)
    call["q"] = q.astype("f2") if call["k_cache"].dtype == np.float16 else arrays.to_bf16(q)
    call |= {"cu_seqlens_q": counts, "max_seqlen_q": 8}
    for name in ("kv_splits", "run_keys", "partials", "selected"):
        del extra[name]
    return call, extra


def judge_prefill(call, got):
    ready = prepare(call)
    if ready is None:
        return
    wide, given, options = ready
    counts = np.asarray(given["cu_seqlens_q"])
    if counts[0] != 0 or (np.diff(counts) < 0).any() or np.diff(counts).max(initial=0) > call["max_seqlen_q"]:
        raise Wrong("bounds that do not hold were taken")
    rows = [wide["q"][a:b] for a, b in zip(counts[:-1], counts[1:], strict=True)]
    args = (wide["k_cache"], wide["v_cache"], given["page_table"], given["kv_lengths"])
    parts = attend(rows, *args, **options)
    shape = (len(wide["q"]), wide["q"].shape[1], wide["v_cache"].shape[-1])
    o, lse = np.full(shape, np.nan), np.full(shape[:2], np.nan)
    for (first, end), part in zip(zip(counts[:-1], counts[1:], strict=True), parts, strict=True):
        o[first:end], lse[first:end] = part
    judge_outputs(call, got, o, lse, np.asarray(given["q"]).dtype)


def make_mla(rng):
    q = rng.standard_normal((2, HEADS, LATENT)).astype("f2")
    pool = rng.standard_normal((PAGES, PAGE, LATENT)).astype("f2")
    call = {"q": q, "kv_cache": pool, **make_tables(rng), "value_dim": VALUES, "scale": 0.1}
    extra = make_decode(rng)[1] | {"k_rope": None, "q_rope": None}
    for name in ("layout", "window", "v_scale", "v_scales"):
        del extra[name]
    return call, extra


def judge_mla(call, got):
    ready = prepare(call | {"k_cache": None})
    if ready is None:
        return
    keys = widen(np.asarray(call["kv_cache"]))
    keys = keys if keys.ndim == 4 else keys[:, :, None]
    plain = {name: each for name, each in call.items() if name not in ("kv_cache", "value_dim")}
    judge_decode(plain | {"k_cache": keys, "v_cache": keys[..., : int(call["value_dim"])]}, got)


def make_append(rng):
    k, v = make_pools(rng)
    rows = [rng.standard_normal((2, KV_HEADS, DIM)).astype("f2") for _ in "kv"]
    call = {"k": rows[0], "v": rows[1], "k_cache": k, "v_cache": v, **make_tables(rng)}
    return call, {"cu_seqlens": None, "layout": "nhd"}


def judge_append(call, got, before):
    for rows, name in (("k", "k_cache"), ("v", "v_cache")):
        pool = np.array(before[name]).view(f"u{call[name].itemsize}")
        now = np.array(call[name]).view(f"u{call[name].itemsize}")
        if str(call["layout"]).lower() == "hnd":
            pool, now = pool.swapaxes(1, 2), now.swapaxes(1, 2)
        bits = np.ascontiguousarray(call[rows]).view(f"u{call[name].itemsize}")
        lengths, counts = np.asarray(call["kv_lengths"]), call["cu_seqlens"]
        ends = np.arange(len(lengths) + 1) if counts is None else np.asarray(counts)
        for b, length in enumerate(lengths):
            for row in range(ends[b], ends[b + 1]):
                place = int(length) - int(ends[b + 1]) + row
                if place >= 0 and place // pool.shape[1] < call["page_table"].shape[1]:
                    id = int(call["page_table"][b, place // pool.shape[1]])
                    if 0 <= id < pool.shape[0]:
                        pool[id, place % pool.shape[1]] = bits[row]
        if not np.array_equal(pool, now):
            raise Wrong(f"{name} has other bits")


def make_merge(rng):
    o = rng.standard_normal((2, 3, 4, 8)).astype("f4")
    lse = rng.standard_normal((2, 3, 4)).astype("f4")
    return {"partial_o": o, "partial_lse": lse}, {"dtype": None, "out": None, "lse": None, "stream": None}


def judge_merge(call, got):
    o, lse = (np.asarray(call[name], float) for name in ("partial_o", "partial_lse"))
    if not np.isfinite(lse).all() or not np.isfinite(o).all():
        return
    top = lse.max(0, initial=-np.inf)
    weights = np.exp(lse - top)
    compare("o", got[0], (weights[..., None] * o).sum(0) / weights.sum(0)[..., None])
    compare("lse", got[1], top + np.log(weights.sum(0)))


def make_cascade(rng):
    q = rng.standard_normal((4, HEADS, DIM)).astype("f2")
    k, v = make_pools(rng)
    ids = rng.permutation(PAGES).astype(np.int32)
    first = attn.Level(ids[:4].reshape(2, 2), np.int32([20, 32]), rng.choice([2, 0]) or np.int32([0, 1, 4]))
    last = attn.Level(ids[4:12].reshape(4, 2), np.int32([3, 17, 0, 32]))
    call = {"q": q, "k_cache": k, "v_cache": v, "levels": [first, last]}
    return call, {"layout": "nhd", "softcap": None, "scale": None, "sinks": None, "init": None, "lse": False}


def call_cascade(q, k_cache, v_cache, levels, level=0, field=None, value=None, **options):
    """`field` of a level has another value."""
    if field is not None:
        levels = list(levels)
        levels[level] = levels[level]._replace(**{field: value})
    return attn.cascade(q, k_cache, v_cache, levels, **options)


def judge_cascade(call, got):
    options = {n: call[n] for n in ("softcap", "scale", "sinks") if call.get(n) is not None}
    if call.get("init") is not None or abs(float(call["scale"] or 1)) > 1e4:
        return
    levels = call["levels"]
    q, k, v = (widen(np.asarray(call[name])) for name in ("q", "k_cache", "v_cache"))
    if str(call["layout"]).lower() == "hnd":
        k, v = k.swapaxes(1, 2), v.swapaxes(1, 2)
    rows = q[:, :, None] if q.ndim == 3 else q
    outs = []
    for b, one in enumerate(rows):
        keys, values = [], []
        for each in levels:
            sequences = each.sequences
            group = b // int(sequences) if np.ndim(sequences) == 0 else int(np.searchsorted(sequences, b, "right")) - 1
            for pool, found in ((k, keys), (v, values)):
                found.append(gather(pool, each.page_table[group], each.kv_lengths[group])[0])
        keys, values = np.concatenate(keys), np.concatenate(values)
        own = min(max(int(levels[-1].kv_lengths[b]), 0), levels[-1].page_table.shape[1] * k.shape[1])
        at = np.arange(one.shape[1])[:, None] + len(keys) - one.shape[1]
        seen = np.arange(len(keys)) <= at
        if one.shape[1] > 1 and own < one.shape[1]:
            return  # The last queries have no key of their own: where they are is not defined.
        outs.append(attend_rows(one.swapaxes(0, 1), keys, values, seen, options))
    o = np.array([each[0].swapaxes(0, 1) for each in outs]).reshape(*rows.shape[:3], v.shape[-1])
    lse = np.array([each[1].T for each in outs]).reshape(rows.shape[:3])
    if q.ndim == 3:
        o, lse = o[:, :, 0], lse[:, :, 0]
    judge_outputs(call, got, o, lse, np.asarray(call["q"]).dtype)


def make_plan(rng):
    call, _ = make_decode(rng)
    call["q"] = call["q"] if call["q"].dtype == np.float16 else np.float16(widen(call["q"]))
    call |= dict(zip(("k_cache", "v_cache"), make_pools(rng), strict=True))
    call |= {"batch": 2, "heads": HEADS, "kv_heads": KV_HEADS, "dim": DIM, "page_size": PAGE, "max_pages": WIDTH}
    call["dtype"] = "float16"
    return call, {"softcap": None, "scale": None, "window": None, "lse": False, "layout": "nhd", "kv_splits": None,
                  "value_dim": None, "kv_dtype": None, "scales": None, "queries": 1, "sinks": False, "init": None,
                  "out_type": None, "latent": False, "row_bytes": None, "page_stride": None, "out_group": None,
                  "out_scale": None, "selected": False, "partials": "auto", "run_keys": None, "score_mod": None, "rope_apart": False, "device": None, "causal": True}  # fmt: skip


RUN_NAMES = ("q", "k_cache", "v_cache")


def call_plan(page_table, kv_lengths, **call):
    tensors = {name: call.pop(name) for name in RUN_NAMES}
    plan = attn.DecodePlan(**call)
    plan.plan(kv_lengths, page_table)
    return plan.run(**tensors)


def judge_plan(call, got):
    options = {n: call[n] for n in ("softcap", "scale", "window", "lse", "causal", "layout") if n in call}
    if call["sinks"] or any(call[name] is not None for name in ("init", "out_type", "score_mod", "out_scale")):
        return
    options["selected"] = call["selected"]
    batch, width = call["q"].shape[0], int(call["max_pages"])
    table = np.full((batch, width), -1, np.int32)
    lengths = np.zeros(batch, np.int32)
    given = call["page_table"]
    table[: given.shape[0], : given.shape[1]] = given
    lengths[: given.shape[0]] = call["kv_lengths"]
    tensors = {name: call[name] for name in RUN_NAMES}
    judge_decode(tensors | {"page_table": table, "kv_lengths": lengths} | options, got)


def make_compile(rng):
    q, k, v = (rng.standard_normal((1, 2, 20, 32)).astype("f2") for _ in "qkv")
    call = {"q": q, "k": k, "v": v, "problem_q": (1, 2, 20, 32), "dtype": "float16"}
    extra = dict.fromkeys(("causal", "lse", "dynamic", "sinks", "descales", "page_indptr", "selected"), False)
    extra |= dict.fromkeys(("window", "softcap", "scale", "kv_heads", "kv_len", "dv", "layout", "varlen", "out_type",
                            "kv_lengths", "kv_splits", "run_keys", "schedule", "plan", "score_mod", "mask_mod",
                            "page_size", "rope_dim", "plan_table", "problem", "kv_type", "scale_group"))  # fmt: skip
    return call, extra | {"chip": "sm_80", "cache": True, "split_keys": True, "partials": "auto", "lse": True}


def call_compile(q, k, v, problem_q, **options):
    kernel = attn.compile(q=problem_q, **options)
    return kernel.run(q=q, k=k, v=v)


def judge_compile(call, got):
    plain = {"scale", "softcap", "causal", "window", "lse", "dynamic", "kv_splits", "cache", "split_keys", "layout",
             "partials", "chip", "dtype", "problem_q", "q", "k", "v", "shipped_plans", "read_masks", "schedule", "plan"}  # fmt: skip
    if any(call[name] not in (None, False) for name in set(call) - plain):
        return
    q, k, v = (widen(np.asarray(call[name]))[0].swapaxes(0, 1) for name in "qkv")
    causal, window = call["causal"], call["window"]
    if abs(float(call["scale"] or 1)) > 1e4 or causal == "bottom-right" or (window is not None and (isinstance(window, str) or len(window) == 3)):
        return
    left, right = read_window(window, bool(causal))
    at, column = np.arange(len(q))[:, None], np.arange(len(k))
    seen = np.ones((len(q), len(k)), bool)
    seen &= True if left < 0 else column >= at - left
    seen &= True if right < 0 else column <= at + right
    o, _ = attend_rows(q, k, v, seen, {"scale": call["scale"], "softcap": call["softcap"]})
    compare("o", got["o"], o.swapaxes(0, 1)[None])


def to_lists(call):
    pages = -(-np.maximum(call["kv_lengths"], 0) // PAGE)
    indices = np.concatenate([row[:count] for row, count in zip(call["page_table"], pages, strict=True)])
    indptr = np.concatenate([[0], np.cumsum(pages)])
    last = np.where(pages > 0, call["kv_lengths"] - (pages - 1) * PAGE, 0)
    return [each.astype(np.int32) for each in (indptr, indices, last)]


def make_wrapper(rng):
    call, _ = make_decode(rng)
    call["q"] = np.float16(widen(call["q"]))
    call |= dict(zip(("k_cache", "v_cache"), make_pools(rng), strict=True))
    indptr, indices, last = to_lists(call)
    more = {"indptr": indptr, "indices": indices, "last_page_len": last, "num_qo_heads": HEADS}
    more |= {"num_kv_heads": KV_HEADS, "head_dim": DIM, "page_size": PAGE}
    tensors = {"q": call["q"], "paged_kv_cache": (call["k_cache"], call["v_cache"])}
    extra = {"window_left": -1, "logits_soft_cap": None, "sm_scale": None, "q_data_type": "float16", "lse": None,
             "kv_data_type": None, "q_len_per_req": 1, "is_causal": None, "disable_split_kv": False, "data_type": None,
             "out": None, "return_lse": False, "sinks": None, "q_scale": None, "k_scale": None, "v_scale": None,
             "kv_layout": "NHD"}  # fmt: skip
    return more | tensors, extra


RUN_OPTIONS = ("q", "paged_kv_cache", "out", "lse", "return_lse", "sinks", "q_scale", "k_scale", "v_scale")


def call_wrapper(kv_layout, **call):
    wrapper = flashinfer.BatchDecodeWithPagedKVCacheWrapper(None, kv_layout)
    good = np.int32([0, 1]), np.int32([0]), np.int32([5])
    wrapper.plan(*good, HEADS, KV_HEADS, DIM, PAGE)
    before = dict(vars(wrapper)), wrapper._pages.lengths, wrapper._pages.table
    run = {name: call.pop(name) for name in RUN_OPTIONS}
    try:
        wrapper.plan(**call)
    except attn.AttnError:
        if (dict(vars(wrapper)), wrapper._pages.lengths, wrapper._pages.table) != before:
            raise Wrong("a plan that was refused changed the batch before it") from None
        raise
    return wrapper.run(**run)


def judge_wrapper(call, got):
    numbers = ("sinks", "q_scale", "k_scale", "v_scale", "out", "lse", "kv_data_type")
    if any(call[name] is not None for name in numbers):
        return
    indptr, indices, last = (np.asarray(call[name]) for name in ("indptr", "indices", "last_page_len"))
    batch, pages = len(indptr) - 1, np.diff(indptr)
    table = np.full((batch, max(pages.max(initial=0), 1)), -1, np.int32)
    for b, count in enumerate(pages):
        table[b, :count] = indices[indptr[b] : indptr[b + 1]]
    lengths = np.where(pages > 0, (pages - 1) * int(call["page_size"]) + last, 0)
    queries = int(call["q_len_per_req"])
    k, v = call["paged_kv_cache"] if isinstance(call["paged_kv_cache"], (tuple, list)) else (
        call["paged_kv_cache"][:, 0], call["paged_kv_cache"][:, 1])  # fmt: skip
    rows = call["q"].reshape(batch, queries, *call["q"].shape[1:]).swapaxes(1, 2)
    cap = call["logits_soft_cap"]
    plain = {"q": rows, "k_cache": k, "v_cache": v, "page_table": table, "kv_lengths": lengths}
    plain |= {"layout": call["kv_layout"], "scale": call["sm_scale"], "softcap": cap if cap and cap > 0 else None}
    plain["causal"] = True if call["is_causal"] is None else bool(call["is_causal"])
    plain["window"] = None if call["window_left"] < 0 else (call["window_left"], None)
    first = got[0] if isinstance(got, tuple) else got
    judge_decode(plain, first.reshape(batch, queries, *first.shape[1:]).swapaxes(1, 2))


def make_wrapped_mla(rng):
    call, _ = make_mla(rng)
    indptr, indices, _ = to_lists(call)
    more = {"qo_indptr": np.arange(3, dtype=np.int32), "kv_indptr": indptr, "kv_indices": indices}
    more |= {"kv_len_arr": np.maximum(call["kv_lengths"], 0), "num_heads": HEADS, "head_dim_ckv": VALUES}
    more |= {"head_dim_kpe": LATENT - VALUES, "page_size": PAGE, "causal": True, "sm_scale": 0.1}
    more |= {"q_data_type": "float16", "kv_data_type": "float16", "query": call["q"], "kv_cache": call["kv_cache"]}
    return more, {"return_lse": False, "out": None, "lse": None, "sinks": None, "output_dtype": None,
                  "lse_mode": "none", "use_sinks": False, "o_scale": None, "ckv_scale": None, "kpe_scale": None}  # fmt: skip


def call_wrapped_mla(**call):
    names = ("query", "kv_cache", "out", "lse", "return_lse", "sinks", "o_scale", "ckv_scale", "kpe_scale")
    run = {name: call.pop(name) for name in names}
    wrapper = flashinfer.BatchMLAPagedAttentionWrapper(None)
    wrapper.plan(**call)
    return wrapper.run(**run)


def make_wrapped_prefill(rng):
    call, extra = make_wrapper(rng)
    call["qo_indptr"] = np.int32([0, 3, 7])
    call["q"] = rng.standard_normal((7, HEADS, DIM)).astype("f2")
    call["head_dim_qk"] = call.pop("head_dim")
    for name in ("indptr", "indices", "last_page_len"):
        call[f"paged_kv_{name}"] = call.pop(name)
    for name in ("q_len_per_req", "is_causal", "data_type"):
        del extra[name]
    return call, extra | {"causal": True, "head_dim_vo": None, "max_token_per_sequence": None, "max_sequence_kv": None}


def call_wrapped_prefill(kv_layout, **call):
    run = {name: call.pop(name) for name in RUN_OPTIONS}
    wrapper = flashinfer.BatchPrefillWithPagedKVCacheWrapper(None, kv_layout)
    wrapper.plan(**call)
    return wrapper.run(**run)


PTX = """.version 7.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 a, .param .u32 n) { .reg .u64 %d; .reg .u32 %r; ld.param.u64 %d, [a];
  ld.param.u32 %r, [n]; st.global.u32 [%d], %r; ret; }
"""


def make_sim(rng):
    call = {"ptx": PTX, "grid": 1, "args": [np.zeros(4, np.int32), 7], "block": 1}
    return call, {"cluster": 1, "shared": 0, "kernel": None, "seed": 0, "threads": 0, "options": None, "chip": ""}


def judge_sim(call, got):
    if got.outputs and got.outputs[0] is not None and call["args"][1:] == [7] and got.outputs[0].dtype == np.int32:
        if got.passed and got.outputs[0][0] != 7:
            raise Wrong(f"got {got.outputs[0]}")


def call_mod(function, kind="score_mod"):
    return getattr(attn, kind)(function)


def nothing(call, got):
    """No result to compare: whatever comes out without an error of another's is right."""


#: What makes a right call and what may be said beside, the call, and who judges its result.
TARGETS = {
    "decode": (make_decode, attn.decode, judge_decode),
    "prefill": (make_prefill, attn.prefill, judge_prefill),
    "mla_decode": (make_mla, attn.mla_decode, judge_mla),
    "append_kv": (make_append, attn.append_kv, judge_append),
    "merge_states": (make_merge, attn.merge_states, judge_merge),
    "cascade": (make_cascade, call_cascade, judge_cascade),
    "level": (make_cascade, call_cascade, nothing),
    "plan": (make_plan, call_plan, judge_plan),
    "compile": (make_compile, call_compile, judge_compile),
    "flashinfer": (make_wrapper, call_wrapper, judge_wrapper),
    "flashinfer_mla": (make_wrapped_mla, call_wrapped_mla, nothing),
    "flashinfer_prefill": (make_wrapped_prefill, call_wrapped_prefill, nothing),
    "sim": (make_sim, attn.sim.run, judge_sim),
    "mod": (lambda rng: ({"function": lambda s, b, h, i, j: s}, {}), call_mod, nothing),
    "load": (lambda rng: ({"source": b"x"}, {}), runtime.load, nothing),
    "empty": (lambda rng: ({"shape": 3, "dtype": "f4"}, {}), attn.sim.empty, nothing),
    "attention": (lambda rng: (dict.fromkeys("qkv", np.zeros((1, 1, 8, 32), "f2")), {"causal": False, "window": None,
                  "lse": False, "out": None, "chip": "sm_80", "max_seqlen_q": None, "cu_seqlens_q": None,
                  "cu_seqlens_k": None, "sinks": None, "softcap": None, "scale": None}), attn.prepare, nothing),
}  # fmt: skip
