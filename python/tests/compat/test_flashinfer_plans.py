"""What the wrappers of attn.compat.flashinfer refuse at `plan`: the batch before it stays."""

import copy
import pickle

import attn
import numpy as np
import pytest
from attn.compat.flashinfer import (
    BatchDecodeWithPagedKVCacheWrapper,
    BatchMLAPagedAttentionWrapper,
    BatchPrefillWithPagedKVCacheWrapper,
)
from test_decode import (
    DIM,
    HEADS,
    KV_HEADS,
    LATENT,
    MLA_HEADS,
    PAGE,
    PAGES,
    VALUES,
    attend,
    attend_latent,
    check,
    make_batch,
    make_latent,
    refuse,
)
from test_flashinfer import to_base2, to_lists

LENGTHS = [70, 0, 16, 33]

pytestmark = pytest.mark.usefixtures("without_gpu")


def change(array, place, value):
    other = array.copy()
    other[place] = value
    return other


#: An argument, how it differs from a right one, and the error; lists are functions of the right ones.
SIZES = [
    ("page_size", 0, "page_size: expected an integer from 1 to"),
    ("page_size", 16.0, "page_size: expected an integer, got 16.0"),
]
SCALES = [
    ("sm_scale", "a", "sm_scale: expected a number, got 'a'"),
    ("sm_scale", float("nan"), "sm_scale: expected a finite number, got nan"),
    ("sm_scale", 0, "sm_scale: expected a number other than 0, got 0"),
]
POOLS = [
    *SIZES,
    *SCALES,
    ("num_qo_heads", 7, "num_qo_heads: expected a multiple of the 2 key heads, got 7"),
    ("num_qo_heads", None, "num_qo_heads: expected an integer, got None"),
    ("num_kv_heads", -2, "num_kv_heads: expected an integer from 1 to"),
    ("q_data_type", "float32", "q_data_type: expected f16 or bf16, got f32"),
    (
        "kv_data_type",
        "int8",
        "kv_data_type: expected f16 as q_data_type or a type of 8 bits, got int8",
    ),
]
DECODE = [
    *POOLS,
    (
        "head_dim",
        100,
        "head_dim: expected a head dimension that is a multiple of 8, got 100; pad to 104",
    ),
    ("q_len_per_req", 0, "q_len_per_req: expected an integer from 1 to"),
    ("disable_split_kv", "no", "disable_split_kv: expected True or False, got 'no'"),
    (
        "indptr",
        lambda each: each[::-1].copy(),
        "indptr: expected counts that do not decrease, got 6 behind 9 at entry 1",
    ),
    ("indptr", lambda each: change(each, 0, -1), "indptr: expected to begin with 0, got -1"),
    ("indptr", lambda each: each[:0], "indptr: expected one entry more than sequences, got none"),
    (
        "indices",
        lambda each: each[:-1],
        "indices: expected at least 9 pages, the last entry of indptr, got 8",
    ),
    ("indices", lambda each: change(each, 3, -1), "indices: expected ids of at least 0, got -1"),
    ("indices", lambda each: each.tolist(), "indices: expected a tensor of rank 1, got list"),
    (
        "last_page_len",
        lambda each: change(each, 0, 17),
        "last_page_len: expected 1 to 16 keys of sequence 0, got 17",
    ),
    (
        "last_page_len",
        lambda each: change(each, 2, 0),
        "last_page_len: expected 1 to 16 keys of sequence 2, got 0",
    ),
]
PREFILL = [
    *POOLS,
    (
        "head_dim_qk",
        36,
        "head_dim_qk: expected a head dimension that is a multiple of 8, got 36; pad to 40",
    ),
    (
        "head_dim_vo",
        9,
        "head_dim_vo: expected a head dimension that is a multiple of 8, got 9; pad to 16",
    ),
    ("causal", "no", "causal: expected True or False, got 'no'"),
    ("qo_indptr", lambda each: change(each, 0, 1), "qo_indptr: expected to begin with 0, got 1"),
    (
        "qo_indptr",
        lambda each: change(each, 3, 1),
        "qo_indptr: expected counts that do not decrease, got 1 behind 2 at entry 3",
    ),
    ("max_token_per_sequence", 1, "qo_indptr: expected at most 1 queries of a sequence, got 2"),
    (
        "paged_kv_indptr",
        lambda each: change(each, 1, 9),
        "paged_kv_indptr: expected counts that do not decrease",
    ),
    ("paged_kv_indices", lambda each: each[:-2], "paged_kv_indices: expected at least 9 pages"),
    (
        "paged_kv_last_page_len",
        lambda each: -each,
        "paged_kv_last_page_len: expected 1 to 16 keys of sequence 0, got -6",
    ),
]
MLA = [
    *SIZES,
    *SCALES,
    ("num_heads", 0, "num_heads: expected an integer from 1 to"),
    (
        "head_dim_ckv",
        60,
        "head_dim_ckv: expected a head dimension that is a multiple of 8, got 60; pad to 64",
    ),
    ("head_dim_kpe", -8, "head_dim_kpe: expected an integer from 1 to"),
    ("causal", "no", "causal: expected True or False, got 'no'"),
    ("use_sinks", 3, "use_sinks: expected True or False, got 3"),
    ("lse_mode", 3, "lse_mode: expected a string, got 3"),
    ("qo_indptr", lambda each: each + 1, "qo_indptr: expected to begin with 0, got 1"),
    (
        "kv_indptr",
        lambda each: each[::-1].copy(),
        "kv_indptr: expected counts that do not decrease",
    ),
    (
        "kv_indices",
        lambda each: change(each, 0, -3),
        "kv_indices: expected ids of at least 0, got -3",
    ),
    (
        "kv_len_arr",
        lambda each: change(each, 0, 113),
        "kv_len_arr: expected 0 to 112 keys of sequence 0, got 113",
    ),
    (
        "kv_len_arr",
        lambda each: change(each, 1, -1),
        "kv_len_arr: expected 0 to 16 keys of sequence 1, got -1",
    ),
]


def refuse_plan(wrapper, right, name, value, message):
    given = right | {name: value(right[name]) if callable(value) else value}
    refuse(message, wrapper.plan, **given)


def make_decode():
    q, k, v, table, lengths = make_batch(LENGTHS)
    names = (
        "indptr",
        "indices",
        "last_page_len",
        "num_qo_heads",
        "num_kv_heads",
        "head_dim",
        "page_size",
    )
    right = dict(zip(names, (*to_lists(table, lengths), HEADS, KV_HEADS, DIM, PAGE), strict=True))
    return BatchDecodeWithPagedKVCacheWrapper(None), right, (q, k, v, table, lengths)


def test_decode():
    """All of one wrapper, whose batch is run at the end."""
    wrapper, right, (q, k, v, table, lengths) = make_decode()
    wrapper.plan(**right)
    for case in DECODE:
        refuse_plan(wrapper, right, *case)
    check(wrapper.run_return_lse(q, (k, v)), to_base2(attend(q, k, v, table, lengths)))


def test_prefill():
    _, right, (q, k, v, table, lengths) = make_decode()
    wrapper = BatchPrefillWithPagedKVCacheWrapper(None)
    right = {
        n if n.startswith(("num", "page")) else f"paged_kv_{n}": each for n, each in right.items()
    }
    right |= {"head_dim_qk": right.pop("paged_kv_head_dim"), "qo_indptr": np.int32([0, 1, 2, 3, 4])}
    wrapper.plan(**right)
    wide = right | {"qo_indptr": np.int32([0, 1, 2, 2, 4])}
    for case in PREFILL:
        refuse_plan(wrapper, wide, *case)
    check(wrapper.run_return_lse(q, (k, v)), to_base2(attend(q, k, v, table, lengths)))
    refuse(
        'qo_indptr": expected sequence 3 to end at 3 to 3 of 3 rows, got 4',
        wrapper.run,
        q[:3],
        (k, v),
    )


def test_mla():
    q, pool, table, lengths = make_latent([100, 2, 17])
    indptr, indices, _ = to_lists(table, lengths)
    right = {"qo_indptr": np.arange(4, dtype=np.int32), "kv_indptr": indptr, "kv_indices": indices}
    right |= {
        "kv_len_arr": lengths,
        "num_heads": MLA_HEADS,
        "head_dim_ckv": VALUES,
        "page_size": PAGE,
    }
    right |= {"head_dim_kpe": LATENT - VALUES, "causal": True, "sm_scale": 0.125}
    right |= dict.fromkeys(("q_data_type", "kv_data_type"), "float16")
    wrapper = BatchMLAPagedAttentionWrapper(None)
    wrapper.plan(**right)
    for case in MLA:
        refuse_plan(wrapper, right, *case)
    want = attend_latent(q, pool, table, lengths, 0.125)[0]
    check([wrapper.run(query=q, kv_cache=pool)], [want])


def test_ids_beyond_the_pool():
    """The pool is known at `run`."""
    wrapper, right, (q, k, v, _, _) = make_decode()
    wrapper.plan(**right | {"indices": change(right["indices"], 0, PAGES)})
    refuse(
        f"indices: expected ids of the {PAGES} pages of the pool, got {PAGES}",
        wrapper.run,
        q,
        (k, v),
    )
    # What lies behind the last entry is nobody's.
    wrapper.plan(**right | {"indices": np.append(right["indices"], np.int32(PAGES))})
    assert wrapper.run(q, (k, v)).shape == q.shape


def test_names_of_arguments():
    """Errors of the calls that launch name what the wrapper was given."""
    wrapper, right, (q, k, v, _, _) = make_decode()
    wrapper.plan(**right)
    with pytest.raises(
        attn.ArgumentError, match="q: expected a torch tensor or a numpy array, got NoneType"
    ):
        wrapper.run(None, (k, v))
    refuse(
        "paged_kv_cache: expected a tensor of q's library, got NoneType", wrapper.run, q, (k, None)
    )
    turned = np.asfortranarray(k)
    refuse('"paged_kv_cache": expected an innermost stride of 1', wrapper.run, q, (turned, turned))
    refuse("out: expected an array to write to, got str", wrapper.run, q, (k, v), out="x")
    refuse(
        'kv_layout: expected "nhd" or "hnd", got', BatchDecodeWithPagedKVCacheWrapper, None, "bhsd"
    )
    for call in (pickle.dumps, copy.copy):
        refuse("BatchDecodeWithPagedKVCacheWrapper: expected to stay in its process", call, wrapper)
