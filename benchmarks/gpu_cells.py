"""The problems that the GPU benchmark times."""

from __future__ import annotations

import dataclasses
import itertools
import random

HEAD_DIMS = (64, 128, 256)
LENGTHS = (1024, 2048, 4096, 8192, 16384, 32768)
DTYPES = ("f16", "bf16")


@dataclasses.dataclass(frozen=True)
class Cell:
    """One problem. `lengths` packs sequences (batch 1, rows = their sum);
    `window` keys before its own and its own are what a query sees; `score`
    names a change of the scores."""

    batch: int
    heads: int
    kv_heads: int
    rows: int
    d: int
    dtype: str
    causal: bool = False
    window: int | None = None
    lengths: tuple[int, ...] = ()
    score: str | None = None
    #: The dimensions in memory: bhnd or bnhd, or fused for slices of one tensor
    #: (batch, row, heads of q, k and v, dim).
    layout: str = "bhnd"
    #: V with contiguous keys: (batch, head, dim, key).
    v_transposed: bool = False
    #: Keys and the values' head dimension where they differ from `rows` and `d`.
    kv_rows: int | None = None
    dv: int | None = None
    #: One more logit for each head.
    sinks: bool = False
    #: The model that has this problem, for the table of models.
    model: str = ""
    #: The kernel is one for any batch and lengths.
    is_open: bool = False

    @property
    def keys(self) -> int:
        return self.rows if self.kv_rows is None else self.kv_rows

    @property
    def value_d(self) -> int:
        return self.d if self.dv is None else self.dv

    @property
    def offset(self) -> int:
        """Query i sees keys up to i + offset: the last query sees all keys."""
        return self.keys - self.rows

    @property
    def name(self) -> str:
        parts = [self.model] if self.model else []
        parts += [self.dtype, f"d{self.d}", f"n{self.rows}"]
        parts += [f"k{self.kv_rows}"] * (self.kv_rows is not None)
        parts += [f"dv{self.dv}"] * (self.dv is not None)
        if self.heads != self.kv_heads:
            parts.append(f"gqa{self.heads}/{self.kv_heads}")
        parts += ["causal"] * self.causal
        parts += [f"window{self.window}"] * (self.window is not None)
        parts += ["varlen"] * bool(self.lengths)
        parts += [self.score] * (self.score is not None)
        parts += ["sinks"] * self.sinks
        parts += ["vt"] * self.v_transposed
        parts += ["fused"] * (self.layout == "fused")
        parts += ["open"] * self.is_open
        return "-".join(parts)

    @property
    def is_standard(self) -> bool:
        """Whether the cell belongs to the table of dense and causal problems."""
        return (
            self.dtype in DTYPES
            and not self.model
            and self.window is None
            and not self.lengths
            and self.score is None
            and self.heads == self.kv_heads
            and self.layout != "fused"
            and not self.is_open
        )

    @property
    def dense(self) -> Cell:
        """The same problem on dense tensors, with a kernel of its own lengths."""
        return dataclasses.replace(self, layout="bnhd", is_open=False)

    @property
    def flops(self) -> float:
        """2 (D + Dv) for each pair of a query and a key; a causal square counts
        half."""
        if self.window is not None:
            seen = min(self.window + 1, self.rows)
            pairs = float(self.rows * seen - seen * (seen - 1) // 2)
        elif self.kv_rows is not None:
            hidden = self.rows * (self.rows - 1) // 2 if self.causal else 0
            pairs = float(self.rows * self.kv_rows - hidden)
        else:
            squares = sum(n * n for n in self.lengths or (self.rows,))
            pairs = squares * (0.5 if self.causal else 1.0)
        return 2.0 * self.batch * self.heads * (self.d + self.value_d) * pairs

    def get_compiler_input(self) -> tuple[list[str], str | None]:
        """Flags of attn-compile, and the text of a file where flags cannot say
        it."""
        if self.score is not None:
            return [], self._get_alibi()
        flags = [f"--q={self.batch}x{self.heads}x{self.rows}x{self.d}x{self.dtype}"]
        layout = "strided" if self.layout == "fused" else self.layout
        flags += [f"--kv-heads={self.kv_heads}", f"--layout={layout}"]
        flags += ["--dynamic"] * self.is_open
        flags += [f"--kv-len={self.kv_rows}"] * (self.kv_rows is not None)
        flags += [f"--dv={self.dv}"] * (self.dv is not None)
        if self.causal:
            flags.append("--causal" if self.offset == 0 else "--causal=bottom-right")
        flags += ["--sinks"] * self.sinks
        if self.window is not None:
            flags.append(f"--window={self.window},0")
        flags += ["--v-transposed"] * self.v_transposed
        if self.lengths:
            flags.append("--varlen=q:" + ",".join(map(str, self.lengths)))
        return flags, None

    def _get_alibi(self) -> str:
        b, h, n, d = self.batch, self.heads, self.rows, self.d
        return f"""
!qkv = memref<{b}x{h}x{n}x{d}x{self.dtype}>
func.func @alibi(%q: !qkv, %k: !qkv, %v: !qkv, %o: !qkv, %lse: memref<{b}x{h}x{n}xf32>,
                 %slopes: memref<{h}xf32>) {{
  attn.attention ins(%q, %k, %v : !qkv, !qkv, !qkv)
                 outs(%o, %lse : !qkv, memref<{b}x{h}x{n}xf32>)
                 score_mod {{
                 ^bb0(%s: f32, %b: i32, %h: i32, %i: i32, %j: i32):
                   %head = arith.index_cast %h : i32 to index
                   %slope = memref.load %slopes[%head] : memref<{h}xf32>
                   %distance = arith.subi %j, %i : i32
                   %distance_f = arith.sitofp %distance : i32 to f32
                   %bias = arith.mulf %slope, %distance_f : f32
                   %r = arith.addf %s, %bias : f32
                   attn.yield %r : f32
                 }}
                 {{mask = #attn.mask<kind = causal>}}
  return
}}
"""


def make_standard(layout: str = "bhnd") -> list[Cell]:
    """Head dimension x mask x length x type; B H = 128, 64 at D = 256."""
    cells = []
    for dtype, d, causal, rows in itertools.product(DTYPES, HEAD_DIMS, (False, True), LENGTHS):
        batch = 2 if d == 256 else 4
        cells.append(Cell(batch, 32, 32, rows, d, dtype, causal, layout=layout))
    return cells


def make_narrow(layout: str = "bhnd") -> list[Cell]:
    """8-bit operands, for which only some targets have plans, with V as the
    others and with contiguous keys."""
    cells = []
    for d, causal, rows, vt in itertools.product(
        HEAD_DIMS, (False, True), LENGTHS, (False, True)
    ):
        batch = 2 if d == 256 else 4
        cell = Cell(batch, 32, 32, rows, d, "f8E4M3FN", causal, layout=layout, v_transposed=vt)
        cells.append(cell)
    return cells


def make_features(layout: str = "bhnd") -> list[Cell]:
    """Grouped heads, a window, packed sequences, and scores with ALiBi."""
    generator = random.Random(0)
    lengths = tuple(generator.randint(256, 4096) for _ in range(16))
    return [
        Cell(2, 64, 8, 4096, 128, "bf16", True, layout=layout),
        Cell(1, 32, 32, 16384, 128, "bf16", window=1024, layout=layout),
        Cell(1, 32, 32, sum(lengths), 128, "bf16", True, lengths=lengths, layout="bnhd"),
        Cell(4, 32, 32, 4096, 128, "bf16", True, score="alibi"),
    ]


def make_inputs() -> list[Cell]:
    """Slices of fused tensors, kernels for any lengths and packed sequences, each with the
    dense problem of as many products where there is one."""
    cells: list[Cell] = []
    for d, causal, (batch, heads, kv_heads, rows) in itertools.product(
        (64, 128, 256), (False, True), ((4, 32, 32, 4096), (16, 16, 16, 1024), (2, 32, 8, 8192))
    ):
        dense = Cell(batch, heads, kv_heads, rows, d, "bf16", causal, layout="bnhd")
        cells += [dense, dataclasses.replace(dense, is_open=True)]
        cells.append(dataclasses.replace(dense, layout="fused"))
    cells.append(Cell(64, 16, 16, 577, 64, "bf16", layout="bnhd"))
    cells.append(dataclasses.replace(cells[-1], layout="fused"))
    generator = random.Random(1)
    uneven = tuple(generator.randint(256, 4096) for _ in range(16))
    for d, causal, lengths in itertools.product(
        (128, 256), (False, True), ((4096,) * 4, uneven, (1024,) * 32)
    ):
        packed = Cell(
            1, 32, 32, sum(lengths), d, "bf16", causal, lengths=lengths, layout="bnhd"
        )  # fmt: skip
        cells += [packed, dataclasses.replace(packed, is_open=True)]
    return cells


def make_models() -> list[Cell]:
    """Forward attention of well-known models, with rows as projections leave
    them. Diffusion models and encoders have no mask; "chunk" is a prefill of
    2048 tokens behind 14336 that are cached; "cross" attends to 77 tokens of
    text."""

    def cell(model: str, batch: int, heads: str, rows: int, d: int, dtype: str = "bf16", **more) -> Cell:
        q_heads, _, kv_heads = heads.partition("/")
        return Cell(
            batch, int(q_heads), int(kv_heads or q_heads), rows, d, dtype,
            layout="bnhd", model=model, **more,
        )  # fmt: skip

    return [
        cell("bert-base", 32, "12", 512, 64, "f16"),
        cell("bert-large", 32, "16", 384, 64, "f16"),
        cell("vit-l-16", 64, "16", 577, 64),
        cell("vit-h-14", 64, "16", 257, 80),
        cell("siglip-so400m", 32, "16", 729, 72),
        cell("sd15-64", 8, "8", 4096, 40, "f16"),
        cell("sd15-32", 8, "8", 1024, 80, "f16"),
        cell("sd15-64-cross", 8, "8", 4096, 40, "f16", kv_rows=77),
        cell("sdxl-64", 8, "10", 4096, 64, "f16"),
        cell("sdxl-32", 8, "20", 1024, 64, "f16"),
        cell("flux", 1, "24", 4608, 128),
        cell("wan-1.3b", 1, "12", 32760, 128),
        cell("wan-14b", 1, "40", 32760, 128),
        cell("whisper-large", 8, "20", 1500, 64, "f16"),
        cell("gpt2-xl", 8, "25", 1024, 64, "f16", causal=True),
        cell("llama3-8b", 2, "32/8", 4096, 128, causal=True),
        cell("llama3-8b-chunk", 1, "32/8", 2048, 128, causal=True, kv_rows=16384),
        cell("llama3-70b", 1, "64/8", 8192, 128, causal=True),
        cell("qwen3-8b", 2, "32/8", 8192, 128, causal=True),
        cell("qwen3-30b-a3b", 2, "32/4", 4096, 128, causal=True),
        cell("phi3-mini", 2, "32", 4096, 96, causal=True),
        cell("gemma3-12b-local", 2, "16/8", 8192, 256, window=1023),
        cell("gemma3-12b-global", 2, "16/8", 8192, 256, causal=True),
        cell("gemma3-4b-local", 2, "8/4", 8192, 256, window=1023),
        cell("gemma3-27b-local", 2, "32/16", 8192, 128, window=1023),
        cell("gemma4-31b-local", 2, "32/16", 8192, 256, window=1023),
        cell("mistral-7b", 1, "32/8", 16384, 128, window=4095),
        cell("gpt-oss-local", 2, "64/8", 4096, 64, window=127, sinks=True),
        cell("gpt-oss-global", 2, "64/8", 4096, 64, causal=True, sinks=True),
        cell("deepseek-prefill", 1, "128", 4096, 192, causal=True, dv=128),
    ]


def from_json(record: dict) -> Cell:
    """The inverse of dataclasses.asdict after a trip through JSON."""
    return Cell(**{**record, "lengths": tuple(record["lengths"])})
