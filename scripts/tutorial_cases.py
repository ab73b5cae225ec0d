"""Triton's tutorials at small sizes, against torch: tests for scripts/triton-suites.py. Of a
tutorial its definitions run, without its measurements."""

from __future__ import annotations

import ast
import functools
import os
import pathlib
import sys
import types

import pytest
import torch
import triton

FOLDER = pathlib.Path(os.environ["ATTN_TRITON_CHECKOUT"], "python/tutorials")


@functools.cache
def load(name: str) -> types.ModuleType:
    """A tutorial as a module: its definitions, and those of its variables that can be set here."""
    (path,) = FOLDER.glob(f"{name}-*.py")
    module = types.ModuleType(f"tutorial_{name}")
    module.__file__ = str(path)
    sys.modules[module.__name__] = module
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, (ast.Expr, ast.For, ast.Assert)) or ast.unparse(node).startswith("if __name__"):
            continue
        code = compile(ast.Module([node], []), path, "exec")
        try:
            exec(code, module.__dict__)
        except Exception:
            if not isinstance(node, (ast.Assign, ast.If)):
                raise
    return module


def draw(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(shape).to(dtype)


def needs(generation: int) -> None:
    if torch.cuda.get_device_capability()[0] < generation:
        pytest.skip(f"for chips from {generation}.0 on")


def check(got: torch.Tensor, want: torch.Tensor, most: float = 1e-2) -> None:
    torch.testing.assert_close(got.float(), want.float(), rtol=most, atol=most)


def test_vector_add():
    x, y = draw(1000), draw(1000)
    assert torch.equal(load("01").add(x, y), x + y)


def test_softmax():
    x = draw(33, 200)
    check(load("02").softmax(x), x.softmax(1), 1e-5)


@pytest.mark.parametrize("activation", ["", "leaky_relu"])
def test_matrix_multiplication(activation):
    a, b = draw(130, 96, dtype=torch.float16), draw(96, 72, dtype=torch.float16)
    want = a.float() @ b.float()
    check(load("03").matmul(a, b, activation), torch.where(want < 0, 0.01 * want, want) if activation else want)


def test_dropout():
    x, keep = draw(50), torch.rand(50) > 0.5
    check(load("04").dropout(x, keep.to(torch.int32), 0.5), torch.where(keep, 2 * x, 0.0), 1e-6)


def test_seeded_dropout():
    x = draw(300)
    first, again = (load("04").seeded_dropout(x, 0.5, 123) for _ in range(2))
    assert torch.equal(first, again)
    assert not torch.equal(first, load("04").seeded_dropout(x, 0.5, 124))
    assert ((first == 0) | (first == 2 * x)).all()


def test_layer_norm():
    load("05").test_layer_norm(40, 300, torch.float16, device="cpu")


@pytest.mark.parametrize("mode", ["fwd", "bwd"])
@pytest.mark.parametrize("causal", [False, True])
def test_fused_attention(mode, causal):
    load("06").test_op(1, 2, 128, 64, causal, False, mode, "triton-fp16")


def test_extern_functions():
    x = torch.rand(500)
    o = torch.empty_like(x)
    load("07").asin_kernel[(1,)](x, o, 500, BLOCK_SIZE=1024)
    check(o, x.asin(), 1e-5)


@pytest.mark.parametrize("name", ["group_gemm_fn", "group_gemm_tma_fn"])
def test_grouped_gemm(name, monkeypatch):
    if "tma" in name:
        needs(9)
    pairs = [(draw(m, 128, dtype=torch.float16), draw(128, n, dtype=torch.float16)) for m, n in ((128, 256), (256, 128))]
    seconds = [b.T.contiguous() if "tma" in name else b for _, b in pairs]
    # Tiles are whole ones. The kernel gets its operands' addresses from memory.
    active = triton.runtime.driver.active
    active.register(*(a for a, _ in pairs), *seconds)
    module, make = load("08"), torch.empty

    def make_known(*shape, **options):
        made = make(*shape, **options)
        active.register(made)
        return made

    monkeypatch.setattr(torch, "empty", make_known)
    found = getattr(module, name)([a for a, _ in pairs], seconds)
    for got, (a, b) in zip(found, pairs, strict=True):
        check(got, a.float() @ b.float(), 3e-2)


@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("matmul", ()),
        ("matmul_persistent", ()),
        ("matmul_tma", (False,)),
        ("matmul_tma_persistent", (False,)),
        ("matmul_descriptor_persistent", (False,)),
    ],
)
def test_persistent_matmul(name, more):
    if more:
        needs(9)
    a, b = draw(150, 128, dtype=torch.float16), draw(128, 200, dtype=torch.float16)
    given = b.T.contiguous() if more else b
    check(getattr(load("09"), name)(a, given, *more), a.float() @ b.float(), 3e-2)


@pytest.mark.parametrize("kind", ["nvfp4", "mxfp8"])
def test_block_scaled_matmul(kind):
    needs(10)
    module = load("10")
    # Its products are compared with torch's instead.
    module.cublas = None
    module.validate_block_scaled(128, 256, 256, kind)


@pytest.mark.parametrize("launch_pdl", [False, True])
def test_programmatic_dependent_launch(launch_pdl):
    needs(9)
    x, y = draw(2000), draw(2000)
    assert torch.equal(load("11").add(x, y, launch_pdl), x + y)
