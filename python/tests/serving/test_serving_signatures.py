"""What calls of servers have of the table of a problem's options."""

import inspect

import attn
import pytest
from attn.compat import _checks, flashinfer
from attn.options.problem_table import KINDS
from attn.serving.settings_table import SCHEMAS, Fields

#: Settings that are options of a problem, all of them of `attn.decode`.
OPTIONS = set(Fields._fields) & {*KINDS, "score_mod", "mask_mod", "out_mod"} - {"out_type"}


@pytest.mark.parametrize(
    ("call", "absent"),
    [
        (attn.decode, set()),
        (attn.mla_decode, {"layout", "window"}),
        (attn.prefill, {"kv_splits", "selected"}),
        (attn.cascade, OPTIONS - {"layout", "softcap", "scale"}),
        (attn.DecodePlan, set()),
    ],
)
def test_options(call, absent):
    """Each has the options of the table, but for those that mean nothing there, and says what
    they are."""
    arguments = inspect.signature(call).parameters
    assert OPTIONS & set(arguments) == OPTIONS - absent
    for name in OPTIONS - absent:
        assert f"\n{name}: " in inspect.getdoc(call).replace("    ", "")
        assert arguments[name].kind == inspect.Parameter.KEYWORD_ONLY


@pytest.mark.parametrize("call", [attn.decode, attn.mla_decode, attn.prefill, attn.DecodePlan])
def test_pad(call):
    assert inspect.signature(call).parameters["pad"].default is False


def test_operators():
    """Arguments by position are part of the operators: new ones come after these."""
    names = {
        name: [each.split("=")[0].split()[-1] for each in schema.split(", ")]
        for name, schema in SCHEMAS.items()
    }
    assert names["decode"][:12] == (
        "q k_cache v_cache page_table kv_lengths sinks layout causal window softcap scale kv_splits"
    ).split()
    assert names["decode"][-5:-2] == ["v_scales", "out_scale", "partials"]
    assert names["mla_decode"][4:9] == ["value_dim", "scale", "sinks", "causal", "softcap"]
    assert names["mla_decode"][-5:-2] == ["partials", "k_scale", "v_scale"]
    assert {tuple(given[-2:]) for given in names.values()} == {("out_mod", "expected_keys")}
    assert names["prefill"][5:9] == ["cu_seqlens_q", "max_seqlen_q", "sinks", "layout"]
    for name, given in names.items():
        expected = set(inspect.signature(getattr(attn, name)).parameters) & OPTIONS
        # The function makes runs of packed queries of the operator of attn.decode.
        composed = {"run_keys"} if name == "prefill" else set()
        assert expected - composed <= set(given)
        assert not composed & set(given)


def test_wrappers():
    """Arguments of other libraries become options of the table."""
    assert {option for option, _ in _checks.OPTIONS.values()} <= OPTIONS
    plans = [getattr(flashinfer, name).plan for name in flashinfer.__all__]
    for name in _checks.OPTIONS:
        assert any(name in inspect.signature(plan).parameters for plan in plans)
