"""Arguments as Python has them: shapes, types, lists, numpy's numbers, paths."""

import fractions
import pathlib

import attn
import numpy as np
import pytest
from attn import arrays, bundle
from attn.options import readers
from attn.serving import decode_problem
from attn.serving.settings import Settings

SHAPE = (1, 2, 64, 64)
TEXT = {"q": "1x2x64x64xf16"}


class Bfloat16:
    """Stands for torch.bfloat16 or a type of ml_dtypes."""

    def __init__(self, text):
        self.text = text

    def __str__(self):
        return self.text


@pytest.mark.parametrize(
    "options, same",
    [
        ({"q": SHAPE, "dtype": "float16"}, {}),
        ({"q": list(SHAPE), "dtype": "f16"}, {}),
        ({"q": np.array(SHAPE), "dtype": np.float16}, {}),
        ({"q": SHAPE, "dtype": np.dtype("float16")}, {}),
        ({"q": SHAPE, "dtype": Bfloat16("torch.float16")}, {}),
        ({"q": SHAPE, "dtype": Bfloat16("torch.bfloat16")}, {"q": "1x2x64x64xbf16"}),
        ({"q": SHAPE, "dtype": "float8_e4m3fn"}, {"q": "1x2x64x64xf8E4M3FN"}),
        ({"q": SHAPE, "dtype": "float8_e5m2"}, {"q": "1x2x64x64xf8E5M2"}),
        ({"q": (True, np.uint8(2), np.int64(64), np.array(64)), "dtype": "half"}, {}),
        ({"kv_heads": np.int32(1), "kv_len": np.int64(40)}, {"kv_heads": "1", "kv_len": "40"}),
        ({"kv_heads": True, "dv": 32}, {"kv_heads": 1, "dv": "32"}),
        ({"causal": np.True_, "lse": np.bool_(0)}, {"causal": "", "lse": "false"}),
        ({"causal": np.False_, "dynamic": 0, "sinks": 1}, {"sinks": "true"}),
        ({"causal": "bottom-right"}, {"causal": "bottom-right"}),
        ({"window": (np.int64(8), None)}, {"window": "8,-1"}),
        ({"window": np.array([8, -1])}, {"window": "8,-1"}),
        ({"window": [8, 0, "bottom-right"]}, {"window": "8,0,bottom-right"}),
        ({"softcap": np.float32(2.5), "scale": np.float16(0.5)}, {"softcap": 2.5, "scale": "0.5"}),
        ({"scale": fractions.Fraction(1, 4), "softcap": 3}, {"scale": 0.25, "softcap": "3.0"}),
        ({"scale": np.float32(0.1)}, {"scale": "0.10000000149011612"}),
        ({"kv_splits": np.int64(8)}, {"kv_splits": "8"}),
        ({"varlen": [24, 40], "kv_len": None}, {"varlen": "q:24,40"}),
        ({"varlen": np.array([24, 40])}, {"varlen": "q:24,40"}),
        ({"varlen": ([24, 40], (30, 9))}, {"varlen": "q:24,40/k:30,9"}),
        ({"varlen": np.array([[24, 40], [30, 9]])}, {"varlen": "q:24,40/k:30,9"}),
        ({"varlen": {"k": [30, 9], "q": [24, 40]}}, {"varlen": "q:24,40/k:30,9"}),
        ({"kv_lengths": np.array([40, -1])}, {"kv_lengths": "40,-1"}),
        (
            {"kv_lengths": (np.int32(40),), "page_size": np.int8(16)},
            {"kv_lengths": "40", "page_size": "16"},
        ),
        ({"window": (-1, None)}, {}),
        ({"window": (8, 3), "causal": True}, {"window": "8,0"}),
        ({"window": "8,3", "causal": "top-left"}, {"window": "8,0"}),
        ({"window": (8, -1), "causal": "bottom-right"}, {"window": "8,0,bottom-right"}),
        (
            {"window": (8, 3, "bottom-right"), "causal": "bottom-right"},
            {"window": "8,0,bottom-right"},
        ),
        ({"window": (-1, 3), "causal": "bottom-right"}, {"causal": "bottom-right"}),
        ({"window": (8, 3, "top-left"), "causal": False}, {"window": "8,3"}),
        ({"out_type": np.float32}, {"out_type": "f32"}),
        ({"out_type": "float32", "layout": "bnhd"}, {"out_type": "f32", "layout": "bnhd"}),
    ],
)
def test_means_the_same(options, same):
    """As the text form."""
    given = {**({} if "q" in options else TEXT), **options}
    assert readers.format_flags(given) == readers.format_flags({**TEXT, **same})


def test_numbers_that_stand_for_none():
    """They mean in a problem what they mean in a call on a cache."""
    plain = attn.compile(**TEXT)
    assert attn.compile(**TEXT, softcap=0.0, window=(-1, -1), kv_splits=np.int64(0)) is plain
    whole = attn.compile(**TEXT, kv_splits=1)
    assert whole.ptx == plain.ptx and "steps" in attn.compile(**TEXT, kv_splits=2).launch
    settings = Settings.read(softcap=0, kv_splits=0, window=(None, -1))
    assert settings == Settings.read(window=(-1, -1))._replace(window=settings.window)
    assert decode_problem.to_window(False, settings.window, 2) is None
    # Keys to the right of a causal query are hidden, whatever the window says.
    assert decode_problem.to_window(True, (8, 3), 2) == (8, 0)


def test_compiles():
    kernel = attn.compile(q=(1, 2, np.int64(64), 64), dtype="float16", causal=np.True_)
    assert kernel is attn.compile(**TEXT, causal=True)
    kernel = attn.compile(q=SHAPE, dtype="float16", varlen=[24, 40])
    assert kernel.simulate(seed=np.uint64(3), verify=np.True_, threads=True).passed
    plan = {"block_n": np.int64(32)}
    assert "block_n = 32" in attn.compile(**TEXT, plan=plan).plan
    wide = attn.compile(**TEXT, chip="sm_90a", schedule="ws_wgmma", plan={"dynamic": np.True_})
    assert "dynamic = true" in wide.plan


def test_bundle_without_ptxas(empty_cache, tmp_path, monkeypatch):
    """As attn-compile --bundle: a cubin where there is a ptxas that runs."""
    broken = tmp_path / "cuda" / "bin" / "ptxas"
    broken.parent.mkdir(parents=True)
    broken.write_text(f"#!{tmp_path}/nothing\n")
    broken.chmod(0o755)
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "cuda"))
    kernel = attn.compile(**TEXT)
    kinds = [image.kind for image in bundle.parse(kernel.bundle(tmp_path / "k.attn")).images]
    assert kinds == ["ptx"]
    with pytest.raises(attn.CompileError, match="ptxas"):
        kernel.bundle(cubin=True)


@pytest.mark.parametrize(
    "options, error, message",
    [
        ({"q": SHAPE}, TypeError, 'q: expected dtype="float16" or another type beside the shape'),
        ({**TEXT, "dtype": "f16"}, TypeError, "dtype: expected none, since q as text has its type"),
        ({"dtype": "f16"}, TypeError, "dtype: expected q="),
        (
            {"q": (2, 64, 64), "dtype": "f16"},
            ValueError,
            r"q: expected \(batch, heads, queries, hea",
        ),
        ({"q": (1, 2, 3.5, 64), "dtype": "f16"}, TypeError, "q: queries: expected an integer, got"),
        (
            {"q": (1, 2, -1, 64), "dtype": "f16"},
            ValueError,
            "q: queries: expected an integer from 0",
        ),
        (
            {"q": (1, 2**32, 1, 64), "dtype": "f16"},
            ValueError,
            "q: heads: expected an integer from",
        ),
        ({"q": 3, "dtype": "f16"}, TypeError, "q: expected a sequence, got 3"),
        (
            {**TEXT, "kv_len": 2**64 + 64},
            ValueError,
            "kv_len: expected an integer from 0 to 2147483",
        ),
        ({**TEXT, "kv_len": 64.0}, TypeError, "kv_len: expected an integer, got 64.0"),
        ({**TEXT, "kv_heads": [1]}, TypeError, r"kv_heads: expected an integer, got \[1\]"),
        ({**TEXT, "kv_splits": -1}, ValueError, "kv_splits: expected an integer from 0 to 65535"),
        ({**TEXT, "page_size": 0}, ValueError, "page_size: expected an integer from 1 to .* got 0"),
        ({**TEXT, "scale": [1]}, TypeError, r"scale: expected a number, got \[1\]"),
        ({**TEXT, "scale": float("nan")}, ValueError, "scale: expected a finite number, got nan"),
        ({**TEXT, "scale": 10**400}, ValueError, "scale: expected a finite number"),
        ({**TEXT, "softcap": 1j}, TypeError, "softcap: expected a number, got 1j"),
        (
            {**TEXT, "softcap": -1},
            ValueError,
            "softcap: expected a number of at least 0, where 0 is no cap, got -1",
        ),
        (
            {**TEXT, "causal": True, "window": (8, 0, "bottom-right")},
            ValueError,
            'causal: expected the alignment of the window, "bottom-right", got "top-left"',
        ),
        ({**TEXT, "causal": 3}, TypeError, "causal: expected True or False, got 3"),
        ({**TEXT, "dynamic": []}, TypeError, r"dynamic: expected True or False, got \[\]"),
        ({**TEXT, "window": 8}, TypeError, "window: expected a sequence, got 8"),
        ({**TEXT, "window": (8,)}, ValueError, r"window: expected \(left, right\), got \(8,\)"),
        ({**TEXT, "window": (8, 2.5)}, TypeError, "window: expected an integer, got 2.5"),
        ({**TEXT, "window": (8, 0, 1)}, TypeError, "window: expected a string, got 1"),
        ({**TEXT, "varlen": 3}, TypeError, "varlen: expected a sequence, got 3"),
        ({**TEXT, "varlen": []}, ValueError, "varlen: expected at least one length of q, got none"),
        ({**TEXT, "varlen": [[1], [2], [3]]}, ValueError, "pair of lengths .* got 3 sequences"),
        ({**TEXT, "varlen": {"k": [1]}}, ValueError, "varlen: expected the keys q and k, got 'k'"),
        ({**TEXT, "varlen": [-1]}, ValueError, "varlen: q: expected an integer from 0"),
        ({**TEXT, "kv_lengths": 3}, TypeError, "kv_lengths: expected a sequence, got 3"),
        (
            {**TEXT, "kv_lengths": []},
            ValueError,
            "kv_lengths: expected at least one number, got none",
        ),
        (
            {**TEXT, "kv_lengths": [2**31]},
            ValueError,
            "kv_lengths: expected an integer from -2147483648",
        ),
        ({**TEXT, "page_size": 0}, ValueError, "page_size: expected an integer from 1"),
        ({**TEXT, "layout": 3}, TypeError, "layout: expected a string, got 3"),
        ({**TEXT, "chip": 90}, TypeError, "chip: expected a string, got 90"),
        ({**TEXT, "schedule": True}, TypeError, "schedule: expected a string, got True"),
        ({**TEXT, "epilogue": 1}, TypeError, "epilogue: expected a string, got 1"),
        ({**TEXT, "plan": {"block_n": [3]}}, TypeError, "plan: block_n: expected a number, a bool"),
        ({**TEXT, "plan": {3: 3}}, TypeError, "plan: expected a string, got 3"),
        ({**TEXT, "plan": [3]}, TypeError, r"plan: expected a dictionary, got \[3\]"),
        ({**TEXT, "cache": "no"}, TypeError, "cache: expected True or False, got 'no'"),
        ({"problem": 3}, TypeError, "problem: expected MLIR text or a path, got int; q="),
    ],
)
def test_refused(options, error, message):
    with pytest.raises(error, match=message):
        attn.compile(**options)


def test_unknown_option_of_a_problem():
    with pytest.raises(TypeError, match="has no option 'heads'; a problem has q, kv_heads"):
        readers.format_flags({**TEXT, "heads": 3})


def test_path_as_text(tmp_path, monkeypatch):
    kernel = attn.compile(**TEXT)
    path = tmp_path / "problem.mlir"
    path.write_text(kernel.mlir("problem"))
    assert attn.compile(str(path)).ptx == attn.compile(path).ptx == kernel.ptx
    monkeypatch.chdir(tmp_path)
    assert attn.compile("problem.mlir").ptx == kernel.ptx
    with pytest.raises(FileNotFoundError, match=r"missing\.mlir"):
        attn.compile("missing.mlir")
    with pytest.raises(attn.CompileError, match="to compile, got neither"):
        attn.compile("module {}")
    with pytest.raises(attn.CompileError):
        attn.compile("")
    assert kernel.bundle(str(tmp_path / "k.attn"), cubin=False)
    assert pathlib.Path("k.attn").exists()


@pytest.mark.parametrize(
    "options, error, message",
    [
        ({"seed": -1}, ValueError, "seed: expected an integer from 0 to 18446744073709551615, got"),
        ({"seed": 2**64}, ValueError, "seed: expected an integer from 0"),
        ({"seed": 0.5}, TypeError, "seed: expected an integer, got 0.5"),
        ({"threads": 2**32 + 1}, ValueError, "threads: expected an integer from 0 to 4294967295"),
        ({"threads": -1}, ValueError, "threads: expected an integer from 0"),
        ({"sizes": {"q.dim2": 2**64 + 64}}, ValueError, "sizes: q.dim2: expected an integer from"),
        ({"sizes": {"q.dim2": -64}}, ValueError, "sizes: q.dim2: expected an integer from 0"),
        ({"sizes": {"q.dim2": "64"}}, TypeError, "sizes: q.dim2: expected an integer, got '64'"),
        ({"verify": "no"}, TypeError, "verify: expected True or False, got 'no'"),
        ({"corners": None}, TypeError, "corners: expected True or False, got None"),
        (
            {"q": np.zeros(SHAPE, ">f2")},
            TypeError,
            'array "q": expected elements of float16, got >f2',
        ),
        ({"q": np.zeros(SHAPE, "i2")}, TypeError, "expected elements of float16, got int16"),
        ({"q": np.zeros(SHAPE, object)}, TypeError, "expected elements of float16, got object"),
        ({"q": "text"}, TypeError, "expected elements of float16, got <U4"),
        ({"sizes": [3]}, TypeError, r"sizes: expected a dictionary, got \[3\]"),
    ],
)
def test_simulate_refuses(options, error, message):
    with pytest.raises(error, match=message):
        attn.compile(**TEXT, dynamic=True).simulate(**options)


def test_bits_of_other_types():
    """numpy has no bf16: bits are unsigned integers in the machine's order."""
    bits = np.array([0x3F80, 0x4000], np.uint16)
    assert arrays.to_elements("q", bits, "bf16").tolist() == bits.tolist()
    assert arrays.to_elements("q", bits.view("V2"), "bf16").tolist() == bits.tolist()
    for wrong in (
        bits.astype(">u2"),
        bits.view([("a", "u1"), ("b", "u1")]),
        bits.astype(np.uint32),
    ):
        with pytest.raises(
            TypeError, match=r"expected elements of uint16 \(the bits of bf16\), got"
        ):
            arrays.to_elements("q", wrong, "bf16")


def test_types_of_ml_dtypes():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    values = np.array([1.0, 2.0])
    assert arrays.to_elements("q", values.astype(ml_dtypes.bfloat16), "bf16").tolist() == [
        0x3F80,
        0x4000,
    ]
    with pytest.raises(TypeError, match="the bits of f8E4M3FN.*got float8_e5m2"):
        arrays.to_elements("q", values.astype(ml_dtypes.float8_e5m2), "f8E4M3FN")
