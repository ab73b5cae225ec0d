"""Compilation, errors and simulation from Python."""

import pathlib
import shutil
import threading

import attn
import numpy as np
import pytest
from attn.arrays import from_bf16, to_bf16
from attn.compiler import plan_options

pytestmark = pytest.mark.usefixtures("empty_cache")

SMALL = {"q": "1x2x64x64xf16", "causal": True}
HAS_PTXAS = shutil.which("ptxas") or pathlib.Path("/usr/local/cuda/bin/ptxas").exists()


def reference(q, k, v, causal):
    """Attention and its LSE in float64."""
    scores = q.astype(np.float64) @ k.astype(np.float64).swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    if causal:
        seen = np.tril(np.ones(scores.shape[-2:], dtype=bool))
        scores = np.where(seen, scores, -np.inf)
    lse = np.log(np.exp(scores).sum(-1))
    return np.exp(scores - lse[..., None]) @ v.astype(np.float64), lse


def test_targets():
    chips = [target.chip for target in attn.targets()]
    assert chips[0] == "sm_80" and "sm_90a" in chips
    assert all(target.shared_bytes_per_cta > 0 for target in attn.targets())
    assert "LLVM" in attn.compiler_version()


def test_kernel():
    kernel = attn.compile(**SMALL)
    assert kernel.chip == "sm_80"
    assert f".entry {kernel.name}" in kernel.ptx
    assert kernel.plan.startswith("#attn.split_q")
    assert kernel.launch["problem"]["mask"]["kind"] == "causal"
    assert any("attn.plan" in remark.message for remark in kernel.remarks)
    assert repr(kernel) == f"<attn.Kernel {kernel.name} for sm_80, proved (isa)>"
    assert kernel.proofs[kernel.name] == attn.record.Proof("proved", "isa")


@pytest.mark.parametrize("rung", attn.RUNGS[:-1])
def test_rungs(rung):
    text = attn.compile(**SMALL).mlir(rung)
    assert {"plan": "attn.split_q", "ptx": ".entry", "launch": '"grid"'}.get(rung, "") in text


def test_unknown_rung():
    with pytest.raises(ValueError, match="expected one of problem, .*got 'cubin'"):
        attn.compile(**SMALL).mlir("cubin")


@pytest.mark.skipif(not HAS_PTXAS, reason="no ptxas")
def test_cubin():
    kernel = attn.compile(**SMALL)
    assert kernel.cubin[:4] == b"\x7fELF"
    assert kernel.cubin == attn.compile(**SMALL, cache=False).cubin


def test_plan():
    kernel = attn.compile(**SMALL, plan={"block_n": 32})
    assert "block_n = 32" in kernel.plan
    with pytest.raises(attn.CompileError, match="colour"):
        attn.compile(**SMALL, plan={"colour": 3})


def test_kernel_name():
    kernel = attn.compile(**SMALL, plan={"kernel": "my_attention"})
    assert kernel.name == "my_attention" and "kernel = my_attention" in kernel.plan
    with pytest.raises(attn.CompileError, match="expected 'kernel' to be letters, digits"):
        attn.compile(**SMALL, plan={"kernel": "a-b"})


def test_text_and_file(tmp_path):
    text = attn.compile(**SMALL).mlir("problem")
    assert attn.compile(text).launch == attn.compile(**SMALL).launch
    path = tmp_path / "problem.mlir"
    path.write_text(text)
    assert attn.compile(path).ptx == attn.compile(text).ptx


def test_error_has_text_and_places(tmp_path):
    path = tmp_path / "bad.mlir"
    path.write_text("func.func @f() {\n  attn.attention\n}\n")
    with pytest.raises(attn.CompileError, match="expected 'ins'") as caught:
        attn.compile(path)
    assert caught.value.locations == [f"{path}:3:1"]
    assert caught.value.diagnostics[0].severity == "error"


@pytest.mark.parametrize(
    "options, message",
    [
        ({"q": "1x2x64x64xf16", "kv_heads": 3}, "multiple of the number of key heads, got 2 and 3"),
        ({"q": "1x2x64x64xf16", "chip": "sm_42"}, "sm_42"),
        ({"q": "1x2x64xf16"}, "expected BxHxNxDxTYPE"),
        ({}, "expected a problem as text or as q, got neither"),
        ({"q": "1x2x64x64xf16", "kv_heads": "two"}, "error: kv_heads: expected an integer, got"),
        ({"kv_len": 3}, "kv_len: expected q beside it"),
        ({"lse": False}, "lse=False: expected q beside it"),
        ({"q": "1x2x64x64xf16", "dtype": None, "out_type": "int8"}, "out_type: expected f16, bf16"),
        ({"q": (1, 2, 64, 64), "dtype": "int8"}, "expected type f16, bf16, .* got 'int8'"),
        ({"q": (1, 2, 64, 64), "dtype": np.float32}, "expected type f16, bf16, .* got 'f32'"),
    ],
)
def test_refused(options, message, empty_cache):
    with pytest.raises(attn.CompileError, match=message):
        attn.compile(**options)
    assert not list(empty_cache.glob("*"))


@pytest.mark.parametrize(
    "text, place",
    [
        ("module attributes {a = " + "tuple<" * 100000, "<problem>:1:1559"),
        ("module attributes {a = " + "[" * 100000, "<problem>:1:279"),
        ("// ((((\n" + "module {\n" * 50000, "<problem>:258:8"),
        ("#a = affine_map<(d0) -> (" + "-" * 100000 + "d0)>", "<problem>:1:280"),
    ],
)
def test_deep_nesting_is_an_error(text, place):
    with pytest.raises(attn.CompileError, match="expected at most 256 nested brackets") as caught:
        attn.compile(text)
    assert caught.value.locations == [place]


def test_brackets_in_strings_and_comments_do_not_count():
    text = attn.compile(**SMALL).mlir("problem")
    noise = "// " + "(" * 500 + '\nmodule attributes {x.a = "' + "[" * 500 + '\\""} {}\n'
    assert attn.compile("// " + "<" * 500 + "\n" + text).ptx
    with pytest.raises(attn.CompileError, match="to compile, got neither"):
        attn.compile(noise)


def test_wrong_option():
    with pytest.raises(TypeError, match="has no argument 'heads'; did you mean 'kv_heads'"):
        attn.compile(**SMALL, heads=3)
    with pytest.raises(attn.CompileError) as caught:
        attn.compile(q="1x2x64x64xf16", kv_heads=0)
    assert "--" not in str(caught.value) + str(caught.value.diagnostics)


@pytest.mark.parametrize("causal", [False, True])
def test_simulate_f16(causal):
    generator = np.random.default_rng(0)
    q, k, v = (generator.standard_normal((1, 2, 64, 64)).astype(np.float16) for _ in range(3))
    result = attn.compile(q="1x2x64x64xf16", causal=causal).simulate(q=q, k=k, v=v)
    output, lse = reference(q, k, v, causal)
    assert result.passed and result.report["passed"]
    np.testing.assert_allclose(result["o"], output, atol=4e-3)
    np.testing.assert_allclose(result["lse"], lse, atol=1e-3)


def test_simulate_bf16_and_window():
    generator = np.random.default_rng(1)
    q, k, v = (to_bf16(generator.standard_normal((1, 1, 32, 64))) for _ in range(3))
    kernel = attn.compile(q="1x1x32x64xbf16", window=(8, None), softcap=5.0, lse=False)
    result = kernel.simulate(q=q, k=k, v=v)
    assert result.passed and set(result.outputs) == {"o"}
    assert np.isfinite(from_bf16(result["o"])).all()


def test_simulate_dynamic():
    kernel = attn.compile(q="1x2x64x64xf16", dynamic=True)
    assert kernel.simulate()["o"].shape == (1, 2, 64, 64)
    q = np.ones((2, 2, 40, 64), np.float16)
    k = np.ones((2, 2, 24, 64), np.float16)
    result = kernel.simulate(q=q, k=k, v=k)
    assert result.passed and result["o"].shape == (2, 2, 40, 64)
    np.testing.assert_array_equal(result["o"], 1)


def test_simulate_quickly():
    kernel = attn.compile(q="2x10x256x16xf16")
    result = kernel.simulate(verify="quick", seed=1)
    assert result.passed
    assert result.report["sample"] == "64 CTAs with 4096 of 5120 rows"
    with pytest.raises(attn.ArgumentError, match="verify: expected"):
        kernel.simulate(verify="fast")


def test_simulate_refuses():
    kernel = attn.compile(**SMALL)
    with pytest.raises(TypeError, match='array "q": expected elements of float16, got float64'):
        kernel.simulate(q=np.zeros((1, 2, 64, 64)))
    with pytest.raises(attn.SimulationError, match='array "x": expected one of q, k, v, o, lse'):
        kernel.simulate(x=np.zeros(3))
    with pytest.raises(attn.SimulationError, match="dimension 2: expected 64, got 32"):
        kernel.simulate(q=np.zeros((1, 2, 32, 64), np.float16))


def test_threads():
    kernels = {}

    def work(rows):
        kernels[rows] = attn.compile(q=f"1x1x{rows}x64xf16", cache=False)

    threads = [threading.Thread(target=work, args=(rows,)) for rows in (16, 32, 64, 128)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {rows: kernel.launch["tensors"][0]["shape"][2] for rows, kernel in kernels.items()} == {
        rows: rows for rows in (16, 32, 64, 128)
    }


def test_bf16_rounding():
    values = np.array([1.0, 1.00390625, 1.01171875, np.inf, -np.inf, -0.0], np.float32)
    assert to_bf16(values).tolist() == [0x3F80, 0x3F80, 0x3F82, 0x7F80, 0xFF80, 0x8000]
    assert np.isnan(from_bf16(to_bf16(np.float32([np.nan]))))[0]
    assert from_bf16(to_bf16(values))[0] == 1.0


def test_version(monkeypatch):
    assert attn.__version__ == attn.compiler_version()
    with pytest.raises(AttributeError, match="module 'attn' has no attribute 'versions'"):
        attn.versions  # noqa: B018
    monkeypatch.setenv("ATTN_LIBRARY", "/nonexistent/libAttnC.so")
    attn.compiler.c_library.load.cache_clear()
    assert attn.__version__.endswith(" (no compiler)")
    monkeypatch.undo()
    attn.compiler.c_library.load.cache_clear()


def test_missing_library(monkeypatch):
    from attn.compiler import c_library

    monkeypatch.setenv("ATTN_LIBRARY", "/nonexistent/libAttnC.so")
    c_library.load.cache_clear()
    with pytest.raises(attn.LibraryError, match="cannot load the compiler"):
        attn.targets()
    monkeypatch.undo()
    c_library.load.cache_clear()


def test_boards_are_named_or_refused():
    size = {"q": "1x2x64x64xf16", "chip": "sm_90a"}
    for board in ("h100", "h200"):
        assert attn.compile(**size, board=board).chip == "sm_90a"
    with pytest.raises(attn.CompileError, match="unknown board 'moon', expected native or one of"):
        attn.compile(**size, board="moon")
    with pytest.raises(attn.CompileError, match="a100"):
        attn.compile(**size, board="a100")


def test_options_that_depend_on_the_machine_tell_kernels_apart():
    assert plan_options.read(None, False, str) == ([], ())
    options, texts = plan_options.read("h200", True, lambda: "ptxas of today")
    assert options == [("board", "h200"), ("assemble-check", "true")]
    assert texts == ("ptxas of today",)
    assert len(plan_options.read("native", False, str)[1]) == 1
    with pytest.raises(attn.ArgumentTypeError):
        plan_options.read(3, False, str)


def test_narrow_operands():
    for chip, schedule in (("sm_89", "split_q"), ("sm_90a", "ws_wgmma"), ("sm_100a", "ws_tmem")):
        kernel = attn.compile(q=(1, 16, 600, 128), dtype="float8_e4m3fn", chip=chip)
        assert kernel.plan.startswith(f"#attn.{schedule}<"), kernel.plan
    with pytest.raises(
        attn.CompileError, match="8-bit queries on sm_86, .* expected sm_89 or a later"
    ):
        attn.compile(q=(1, 2, 64, 64), dtype="float8_e5m2", chip="sm_86")
