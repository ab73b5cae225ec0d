"""The published cases, over attn itself; docs/Conformance.md is generated from them."""

import attn
import numpy as np
import pytest
from attn import conformance
from attn.launch import host_arrays


def attention(q, k, v, kv_lengths=None, sinks=None, **options):
    """What an adapter of another implementation looks like."""
    inputs = {} if sinks is None else {"sinks": np.float32(sinks)}
    if kv_lengths is not None:
        inputs["kv_lengths"] = np.int32(kv_lengths)
        options["kv_lengths"] = kv_lengths
    kernel = attn.compile(
        q=q.shape,
        dtype=q.dtype,
        kv_heads=k.shape[1],
        kv_len=k.shape[2],
        sinks=sinks is not None,
        **options,
    )
    result = kernel.run(q=q, k=k, v=v, **inputs)
    return result["o"], result["lse"]


@pytest.mark.parametrize("case", conformance.CASES, ids=lambda case: case.name)
def test_case(case, monkeypatch):
    monkeypatch.setattr(host_arrays, "has_device", lambda: False)
    assert conformance.check(case, attention) == ""


def test_wrong_results_are_found():
    """Of an implementation that is wrong everywhere no case passes."""
    for case in conformance.CASES:
        o, lse = conformance.compute(case)
        assert conformance.check(case, lambda *_, o=o, lse=lse, **__: (o, lse)) == ""
        assert conformance.check(case, lambda *_, o=o, lse=lse, **__: (o * 1.01 + 0.5, lse))
        assert conformance.check(
            case, lambda *_, o=o, lse=lse, **__: (o, np.where(np.isinf(lse), 0, lse + 1))
        )
        assert "expected shape" in conformance.check(
            case, lambda *_, o=o, lse=lse, **__: (o[..., :1], lse)
        )


def test_names():
    assert len({case.name for case in conformance.CASES}) == len(conformance.CASES)
    known = set(conformance.OPTIONS)
    assert all(set(case.options) <= known for case in conformance.CASES)
    rows = [conformance.make_table(group).splitlines()[2:] for group in conformance.GROUPS]
    assert sum(map(len, rows)) == len(conformance.CASES)
