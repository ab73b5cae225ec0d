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
    #: The dimensions in memory: bhnd or bnhd.
    layout: str = "bhnd"
    #: V with contiguous keys: (batch, head, dim, key).
    v_transposed: bool = False

    @property
    def name(self) -> str:
        parts = [self.dtype, f"d{self.d}", f"n{self.rows}"]
        if self.heads != self.kv_heads:
            parts.append(f"gqa{self.heads}/{self.kv_heads}")
        parts += ["causal"] * self.causal
        parts += [f"window{self.window}"] * (self.window is not None)
        parts += ["varlen"] * bool(self.lengths)
        parts += [self.score] * (self.score is not None)
        parts += ["vt"] * self.v_transposed
        return "-".join(parts)

    @property
    def is_standard(self) -> bool:
        """Whether the cell belongs to the table of dense and causal problems."""
        return (
            self.dtype in DTYPES
            and self.window is None
            and not self.lengths
            and self.score is None
            and self.heads == self.kv_heads
        )

    @property
    def flops(self) -> float:
        """4 D for each pair of a query and a key; a causal square counts half."""
        if self.window is not None:
            seen = min(self.window + 1, self.rows)
            pairs = float(self.rows * seen - seen * (seen - 1) // 2)
        else:
            squares = sum(n * n for n in self.lengths or (self.rows,))
            pairs = squares * (0.5 if self.causal else 1.0)
        return 4.0 * self.batch * self.heads * self.d * pairs

    def get_compiler_input(self) -> tuple[list[str], str | None]:
        """Flags of attn-compile, and the text of a file where flags cannot say
        it."""
        if self.score is not None:
            return [], self._get_alibi()
        flags = [f"--q={self.batch}x{self.heads}x{self.rows}x{self.d}x{self.dtype}"]
        flags += [f"--kv-heads={self.kv_heads}", f"--layout={self.layout}"]
        flags += ["--causal"] * self.causal
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


def from_json(record: dict) -> Cell:
    """The inverse of dataclasses.asdict after a trip through JSON."""
    return Cell(**{**record, "lengths": tuple(record["lengths"])})
