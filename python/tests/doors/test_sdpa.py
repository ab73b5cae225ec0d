"""torch's scaled_dot_product_attention on attn's kernels, on the simulator, and the operators that
replace those for flash attention."""

import contextlib
import logging

import attn
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

import attn.torch  # noqa: E402
from attn.doors import flash_operators  # noqa: E402
from attn.doors import sdpa as door  # noqa: E402
from torch.nn import functional  # noqa: E402
from torch.nn.attention import bias  # noqa: E402


def make(*shape, dtype=torch.float16):
    return torch.randn(*shape).to(dtype)


def widen(value):
    is_plain = type(value) in (torch.Tensor, torch.nn.Parameter)
    return value.double() if is_plain and value.is_floating_point() else value


def compare(*operands, tolerance=5e-3, **options):
    """attn's result beside torch's in float64."""
    with attn.torch.sdpa(strict=True):
        got = functional.scaled_dot_product_attention(*operands, **options)
    want = functional.scaled_dot_product_attention(
        *map(widen, operands), **{name: widen(value) for name, value in options.items()}
    )
    assert got.shape == want.shape and got.dtype == operands[0].dtype
    assert (got - want).abs().max() < tolerance


Q, K, V = make(2, 4, 30, 40), make(2, 4, 37, 40), make(2, 4, 37, 24)
#: A row and a column of large negative numbers.
LARGE = make(30, 37)
LARGE[7] = LARGE[:, 5] = torch.finfo(torch.float16).min
CALLS = {
    "plain": ((Q, K, V), {}),
    "causal": ((Q, K, V), {"is_causal": True}),
    "scale": ((Q, K, V), {"scale": 0.3}),
    "bools": ((Q, K, V), {"attn_mask": torch.rand(30, 37) > 0.3}),
    "bools of a batch": ((Q, K, V), {"attn_mask": torch.rand(2, 1, 1, 37) > 0.3}),
    "numbers": ((Q, K, V), {"attn_mask": make(4, 30, 37)}),
    "numbers of a row": ((Q, K, V), {"attn_mask": make(2, 4, 30, 1)}),
    "three dimensions": ((Q[0], K[0], V[0]), {}),
    "two dimensions": ((Q[0, 0], K[0, 0], V[0, 0]), {}),
    "five dimensions": ([make(2, 3, 2, 9, 32)] * 3, {"attn_mask": torch.rand(2, 3, 1, 9, 9) > 0.2}),
    "grouped heads": ((make(1, 8, 9, 64), *[make(1, 2, 9, 64)] * 2), {"enable_gqa": True}),
    "wide heads": ([make(1, 1, 9, 320)] * 3, {"attn_mask": make(9, 9)}),
    "odd heads": ([make(1, 2, 9, 33)] * 3, {}),
    "views": ([make(2, 9, 3, 32).transpose(1, 2)] * 3, {}),
    "odd views": ([make(2, 3, 9, 37)[..., 1:33]] * 3, {}),
    "causal bias": ((Q, K, V), {"attn_mask": bias.causal_upper_left(30, 37)}),
    "causal bias of the last key": ((Q, K, V), {"attn_mask": bias.causal_lower_right(30, 37)}),
    "causal bias of one query": (
        (Q[:, :, :1], K, V), {"attn_mask": bias.causal_upper_left(1, 37)}
    ),  # fmt: skip
    "smallest numbers": ((Q, K, V), {"attn_mask": LARGE}),
    "nothing seen": ((Q, K, V), {"attn_mask": torch.zeros(30, 37).bool()}),
}


@pytest.mark.parametrize("call", CALLS)
def test_calls(call):
    operands, options = CALLS[call]
    compare(*operands, **options)


def test_types():
    compare(*[make(1, 2, 20, 64, dtype=torch.bfloat16)] * 3, tolerance=3e-2)


@pytest.mark.parametrize("outer", [contextlib.nullcontext, lambda: Q.device, attn.torch.sdpa])
@pytest.mark.parametrize("inner", [contextlib.nullcontext, lambda: Q.device])
def test_modules(monkeypatch, outer, inner):
    """torch's own layers reach it once, whose function torch asks the mode about, and the modes
    around it and in it, such as those of a device."""
    reached = []
    attend = door.attend
    monkeypatch.setattr(door, "attend", lambda *given: reached.append(1) or attend(*given))
    layer = torch.nn.MultiheadAttention(64, 4, batch_first=True).half().eval()
    x = make(1, 10, 64)
    with torch.no_grad():
        want = layer(x, x, x, need_weights=False)[0]
        with outer(), attn.torch.sdpa(), inner():
            got = layer(x, x, x, need_weights=False)[0]
    assert (got - want).abs().max() < 5e-3 and reached == [1]


class OwnTensor(torch.Tensor):
    """One whose functions are its own."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return super().__torch_function__(func, types, args, kwargs)


LEFT = {
    "bias of other lengths": (
        (Q, K, V), {"attn_mask": bias.causal_lower_right(30, 30)}, "there is a CausalBias"
    ),  # fmt: skip
    "a tensor of its own": (
        (Q, K, V), {"attn_mask": torch.ones(30, 37).bool().as_subclass(OwnTensor)},
        "there is a OwnTensor"
    ),  # fmt: skip
    "dropout": ((Q, K, V), {"dropout_p": 0.1}, "there is no dropout"),
    "float32": ((Q.float(), K.float(), V.float()), {}, "elements are torch.float32"),
    "gradients": ((make(2, 4, 30, 40).requires_grad_(), K, V), {}, "there is no backward pass"),
    "broadcast batch": ((Q, K[:1], V[:1]), {}, "batches are torch's"),
    "no keys": ((Q, K[:, :, :0], V[:, :, :0]), {}, "there is nothing to compute"),
}


@pytest.mark.parametrize("case", LEFT)
def test_what_is_left_to_torch(case, caplog):
    operands, options, reason = LEFT[case]
    with caplog.at_level(logging.DEBUG, "attn"), attn.torch.sdpa():
        functional.scaled_dot_product_attention(*operands, **options)
    assert f"fallback: scaled_dot_product_attention is torch's, since {reason}" in caplog.text
    with (
        attn.torch.sdpa(strict=True),
        pytest.raises(attn.ArgumentError, match="no kernel of attn takes the call"),
    ):
        functional.scaled_dot_product_attention(*operands, **options)


def test_torch_refuses_what_it_did():
    if Q.is_cpu:
        # On a GPU torch lets it pass.
        with attn.torch.sdpa(), pytest.raises(RuntimeError):
            functional.scaled_dot_product_attention(
                Q, K, V, attn_mask=torch.rand(30, 37) > 0.3, is_causal=True
            )
    with attn.torch.sdpa(), pytest.raises(RuntimeError):
        functional.scaled_dot_product_attention(Q, K[..., :20], V)


def test_compiled():
    """Under torch.compile with the mode inside of what is compiled."""

    def call(q, k, v):
        with attn.torch.sdpa():
            return functional.scaled_dot_product_attention(q, k, v) * 2

    got = torch.compile(call, backend="eager")(Q, K, V)
    want = functional.scaled_dot_product_attention(*map(widen, (Q, K, V))) * 2
    assert (got - want).abs().max() < 1e-2


def test_dense_operator():
    """What aten's operator returns, on tensors of the CPU in the place of a GPU's."""
    k, v = K[:, :, :30], make(2, 4, 30, 40)
    got = flash_operators.attend_dense(Q, k, v, 0.0, True)
    want = functional.scaled_dot_product_attention(
        Q.double(), k.double(), v.double(), is_causal=True
    )  # fmt: skip
    assert (
        (got[0] - want).abs().max() < 5e-3 and got[1].shape == Q.shape[:3] and got[4:6] == (30, 30)
    )
    assert len(got) == 9 and got[6].dtype == torch.uint64
    assert flash_operators.attend_dense(Q, k, v, 0.5) == "there is no dropout"
    assert flash_operators.attend_dense(Q, k, v, 0.0, False, True) == "return_debug_mask is given"


def test_packed_operator():
    counts, keys = (torch.tensor(each, dtype=torch.int32) for each in ([0, 5, 17], [0, 9, 30]))
    q, k = make(17, 4, 32), make(30, 2, 32)
    o, lse, *_ = flash_operators.attend_rows(
        q, k, k, counts, keys, 12, 21, 0.0, True, False, window_size_left=6, window_size_right=0
    )
    assert o.shape == q.shape and lse.shape == (4, 17)
    rows, columns = torch.arange(12)[:, None], torch.arange(21)
    seen = (columns - rows <= 9) & (columns - rows >= 3)
    one = (each.transpose(0, 1)[None].double() for each in (q[5:], k[9:], k[9:]))
    want = functional.scaled_dot_product_attention(*one, attn_mask=seen, enable_gqa=True)
    assert (o[5:] - want[0].transpose(0, 1)).abs().max() < 5e-3


@pytest.mark.skipif(flash_operators._find_registry() is None, reason="torch has no registry")
def test_activation():
    """Twice, and back."""
    from torch.nn import attention

    if not torch.cuda.is_available():
        attn.torch.activate()
        attn.torch.activate()
        assert attention.current_flash_attention_impl() == "attn"
        attn.torch.deactivate()
        assert attention.current_flash_attention_impl() is None
        attention.activate_flash_attention_impl("attn")
        assert attention.current_flash_attention_impl() == "attn"
        attn.torch.deactivate()
        attn.torch.deactivate()


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_activated_operators(caplog):
    """Dense with gradients by torch's backward, packed with a window, and what goes to torch."""
    from torch.nn.attention import SDPBackend, sdpa_kernel, varlen

    operands = [torch.randn(2, 4, 128, 64, device="cuda").half().requires_grad_() for _ in range(3)]
    wide = [each.detach().double().requires_grad_() for each in operands]
    upstream = torch.randn(2, 4, 128, 64, device="cuda").half()
    attn.torch.activate()
    try:
        with caplog.at_level(logging.DEBUG, "attn"), sdpa_kernel(SDPBackend.FLASH_ATTENTION):
            o = functional.scaled_dot_product_attention(*operands, is_causal=True)
            o.backward(upstream)
            assert "fallback" not in caplog.text
            functional.scaled_dot_product_attention(*operands, dropout_p=0.5)
            assert (
                "fallback: _scaled_dot_product_flash_attention is torch's, since there is no dropout"
                in caplog.text
            )
        counts = torch.tensor([0, 50, 200], dtype=torch.int32, device="cuda")
        q = torch.randn(200, 4, 64, device="cuda").half()
        packed = varlen.varlen_attn(q, q, q, counts, counts, 150, 150, window_size=(-1, 0))
    finally:
        attn.torch.deactivate()
    want = functional.scaled_dot_product_attention(*wide, is_causal=True)
    want.backward(upstream.double())
    assert (o - want).abs().max() < 5e-3
    for each, expected in zip(operands, wide, strict=True):
        assert (each.grad - expected.grad).abs().max() < 2e-2
    one = q[50:].transpose(0, 1)[None].double()
    want = functional.scaled_dot_product_attention(one, one, one, is_causal=True)
    assert (packed[50:] - want[0].transpose(0, 1)).abs().max() < 5e-3


def test_no_registry(monkeypatch):
    monkeypatch.setattr(flash_operators, "_find_registry", lambda: None)
    with pytest.raises(
        attn.LibraryError,
        match=r"has no registry of implementations, which 2.11 brings; attn.torch.sdpa\(\)",
    ):
        attn.torch.activate()
    attn.torch.deactivate()
