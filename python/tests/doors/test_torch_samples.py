"""torch's own samples of scaled_dot_product_attention, those that its operator tests run, through
attn.torch.sdpa on the simulator: the same results, and which calls are left to torch."""

import collections
import logging
import re

import attn.torch
import pytest
from attn.doors import sdpa

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("expecttest", reason="torch's samples need expecttest")

from torch.nn.functional import scaled_dot_product_attention  # noqa: E402
from torch.testing._internal.common_methods_invocations import op_db  # noqa: E402
from torch.testing._internal.common_modules import module_db  # noqa: E402

(OPERATOR,) = [each for each in op_db if each.name == "nn.functional.scaled_dot_product_attention"]
#: Why samples are left to torch: nothing else may be a reason.
REASONS = r"there is no dropout|operands have 3, 4 and 4 dimensions"


def read_reasons(caplog):
    texts = [each.getMessage() for each in caplog.records if "fallback" in each.getMessage()]
    caplog.clear()
    return [text.partition("since ")[2] for text in texts]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_samples(dtype, caplog):
    """Samples with dropout draw random numbers: torch computes them, under one seed."""
    taken, left = 0, collections.Counter()
    for sample in OPERATOR.sample_inputs("cpu", dtype, requires_grad=False):
        operands = (sample.input, *sample.args)
        wide = [
            each.double() if isinstance(each, torch.Tensor) and each.is_floating_point() else each
            for each in operands
        ]
        options = dict(sample.kwargs)
        mask = options.get("attn_mask")
        wide_options = (
            {**options, "attn_mask": mask.double()}
            if mask is not None and mask.is_floating_point()
            else options
        )
        torch.manual_seed(0)
        with caplog.at_level(logging.DEBUG, "attn"), attn.torch.sdpa():
            got = scaled_dot_product_attention(*operands, **options)
        reasons = read_reasons(caplog)
        torch.manual_seed(0)
        want = scaled_dot_product_attention(
            *(operands if reasons else wide), **(options if reasons else wide_options)
        )
        assert got.shape == want.shape and got.dtype == dtype
        if reasons:
            assert re.match(REASONS, reasons[0]), reasons
            left[reasons[0]] += 1
            assert torch.equal(got, want)
            continue
        taken += 1
        seen = torch.isfinite(want)
        scale = want[seen].abs().max() if seen.any() else 1
        assert (
            (got - want)[seen].abs() <= (2e-3 if dtype == torch.float16 else 1.6e-2) * max(scale, 1)
        ).all()
    assert taken >= 8 and left["there is no dropout"] >= 8, (taken, left)


#: Layers that call the function, and how many times.
LAYERS = {"nn.TransformerEncoderLayer": 1, "nn.TransformerDecoderLayer": 2}


@pytest.mark.parametrize("name", LAYERS)
def test_layers(name, monkeypatch):
    """torch's own samples of its layers, those that its module tests run: every eighth one."""
    reached, attend = [], sdpa.attend
    monkeypatch.setattr(sdpa, "attend", lambda *given: reached.append(1) or attend(*given))
    (info,) = [each for each in module_db if each.name == name]
    options = {"device": "cpu", "dtype": torch.float16, "requires_grad": False, "training": True}
    for sample in info.module_inputs_func(info, **options)[::8]:
        given = sample.constructor_input
        layer = info.module_cls(*given.args, **given.kwargs).half()
        reached.clear()
        with torch.no_grad():
            want = layer(*sample.forward_input.args, **sample.forward_input.kwargs)
            with attn.torch.sdpa():
                got = layer(*sample.forward_input.args, **sample.forward_input.kwargs)
        assert len(reached) == LAYERS[name]
        torch.testing.assert_close(got, want, atol=1e-2, rtol=1e-2)
