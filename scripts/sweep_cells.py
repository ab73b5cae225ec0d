"""The problems that `plan-sweep.py` compiles: all head dimensions, all features, and the
grid of ws_tmem."""

from __future__ import annotations

import dataclasses
import hashlib
import re

from tmem_cases import CHIPS as TMEM_CHIPS
from tmem_cases import TMEM_AXES, PackedCase, draw_whole

CHIPS = (
    "sm_90a", "sm_80", "sm_86", "sm_100a", "sm_89", "sm_103a", "sm_100f", "sm_120", "sm_110",
    "sm_121",
)  # fmt: skip
TYPES = ("bf16", "f16", "f8E4M3FN", "f8E5M2")
DIMS = range(16, 257, 8)
#: Those that kernels of sm_90a alone have, for keys and values alike.
WIDE_DIMS = range(264, 513, 8)
#: What has kernels of its own, in the order of what is seen in it.
STAGES = {
    ("sm_90a", "bf16"): 0,
    ("sm_80", "bf16"): 0,
    ("sm_86", "bf16"): 1,
    ("sm_100a", "bf16"): 1,
    ("sm_90a", "f8E4M3FN"): 1,
    ("sm_103a", "bf16"): 2,
    ("sm_89", "bf16"): 2,
}
#: Head dimensions of well-known models, of keys and of values.
KNOWN = {(d, d) for d in (32, 40, 64, 72, 80, 96, 128, 160, 192, 256)} | {(192, 128)}
#: Queries, keys, heads, batch and flags: short, odd and long.
LENGTHS = (
    ("long", 2048, 2048, 16, 4, ("--causal",)),
    ("odd", 578, 700, 2, 2, ("--causal",)),
    ("few", 578, 5, 2, 2, ("--causal", "--sinks")),
)
#: The same for kernels of tensor memory: one block of keys, two, three and many,
#: more tiles than one, windows, heads of a group.
TMEM_LENGTHS = (
    ("one-block", 127, 128, 4, 1, ()),
    ("one-query", 1, 300, 4, 1, ("--causal",)),
    ("two-blocks", 255, 256, 4, 1, ()),
    ("three-blocks", 257, 257, 4, 1, ()),
    ("blocks", 2048, 1000, 16, 4, ()),
    ("sinks", 512, 129, 4, 2, ("--sinks", "--no-lse")),
    ("window", 1000, 1000, 4, 1, ("--window=130,17",)),
    ("causal", 129, 255, 4, 1, ("--causal=bottom-right",)),
    ("groups", 257, 512, 8, 1, ("--causal", "--kv-heads=2")),
    ("group", 512, 200, 8, 1, ("--kv-heads=2",)),
)
MOST_TMEM_DIM = 128


@dataclasses.dataclass(frozen=True)
class Cell:
    """A problem on a chip."""

    chip: str
    dtype: str
    key_dim: int
    value_dim: int
    length: str

    @property
    def name(self) -> str:
        return f"{self.chip}-{self.dtype}-d{self.key_dim}-dv{self.value_dim}-{self.length}"

    @property
    def source(self) -> str:
        """What the compiler reads; empty where flags say all."""
        return ""

    def flags(self) -> list[str]:
        lengths = LENGTHS + TMEM_LENGTHS
        _, queries, keys, heads, batch, more = next(x for x in lengths if x[0] == self.length)
        shape = f"--q={batch}x{heads}x{queries}x{self.key_dim}x{self.dtype}"
        return [shape, f"--kv-len={keys}", f"--dv={self.value_dim}", f"--chip={self.chip}", *more]

    def rank(self) -> tuple:
        """Cells that tell most come first: kernels of their own, then those that
        are likely to be equal to one in front of them; models' head dimensions,
        then equal ones, then the others in an order that is no order."""
        dims = (self.key_dim, self.value_dim)
        group = 0 if dims in KNOWN else 1 if dims[0] == dims[1] else 2
        stage = STAGES.get((self.chip, self.dtype), 3)
        mixed = hashlib.sha256(f"{dims} {self.length}".encode()).hexdigest()
        return (stage, group, mixed, CHIPS.index(self.chip), TYPES.index(self.dtype))


def make_cells() -> list[Cell]:
    """Every pair of head dimensions."""
    cells = [
        Cell(chip, dtype, d, dv, length[0])
        for chip in CHIPS
        for dtype in TYPES
        # 8-bit operands are for wgmma.
        if not dtype.startswith("f8") or chip == "sm_90a"
        for d in DIMS
        for dv in DIMS
        if not dtype.startswith("f8") or (d % 16 == 0 and dv % 16 == 0)
        for length in LENGTHS
    ]
    cells += [
        Cell("sm_90a", dtype, d, d, length[0])
        for dtype in ("bf16", "f16")
        for d in WIDE_DIMS
        for length in LENGTHS
    ]
    cells += [
        Cell(chip, dtype, d, dv, length[0])
        for chip in TMEM_CHIPS
        for dtype in ("bf16", "f16")
        for d in DIMS
        for dv in DIMS
        if max(d, dv) <= MOST_TMEM_DIM
        for length in TMEM_LENGTHS
    ]
    return sorted(cells, key=Cell.rank)


#: Head dimensions at which plans change, for keys and values alike, and pairs.
FEATURE_DIMS = (16, 40, 64, 72, 80, 96, 112, 128, 160, 192, 224, 256, 264, 288, 320, 352, 384, 416,
                448, 480, 512, 576, 640, 704, 768, 832, 896, 960, 1024)  # fmt: skip
FEATURE_PAIRS = ((64, 128), (128, 64), (192, 128), (256, 128), (320, 256), (256, 512), (512, 256),
                 (576, 512), (64, 512), (1024, 512), (512, 1024))  # fmt: skip
#: What adds registers to a kernel of many queries: flags, by name.
FEATURES = {
    "plain": "",
    "causal": "--causal",
    "odd": "--causal=bottom-right --kv-len=1999",
    "window": "--window=500,20",
    "softcap": "--causal --softcap=20",
    "window-softcap": "--window=500,20 --softcap=20",
    "sinks": "--causal --sinks",
    "window-sinks": "--window=500,0 --softcap=20 --sinks",
    "no-lse": "--causal --lse=false",
    "wide-results": "--causal --out-type=f32",
    "groups": "--causal --kv-heads=2",
    "rows-apart": "--causal --layout=bnhd",
    "dynamic": "--causal --dynamic",
    "dynamic-window": "--window=500,20 --sinks --dynamic",
    "sequences": "--causal --varlen=q:1000,1048/k:1500,300",
    "windowed-sequences": "--window=500,20 --softcap=20 --varlen=q:1000,1048/k:1500,300",
    "states": "--causal --init-state",
    "lengths": "--causal=bottom-right --kv-lengths=2048",
    "pages": "--causal=bottom-right --kv-lengths=2048 --page-size=16",
    "score-mod": "",
    "mask-mod": "",
}
#: The same on chips with tensor memory, what is there alone or has code of its own there.
TMEM_FEATURES = {
    "gathered": "--causal=bottom-right --kv-lengths=2048 --page-size=1",
    "narrow": "--causal=bottom-right --kv-lengths=2048 --page-size=16 --kv-type=f8E4M3FN --descales",
    "nvfp4": "--causal --out-type=f4E2M1FN --out-group=16",
    "amax": "--causal --amax",
    "results": "--causal --out-type=f8E4M3FN --out-scale=100 --amax",
    "grouped-results": "--causal --out-type=f8E4M3FN --out-group=32",
    "value-ctas": "--causal --schedule=ws_tmem --set=value_ctas=2",
    "quad": "--schedule=ws_tmem --set=pair=true,tiles=2,own_blocks=false,cluster=4",
    "clc": "--causal --schedule=ws_tmem --set=clc=true",
}
TMEM_FEATURE_PAIRS = ((64, 64), (96, 96), (128, 128), (192, 128), (256, 256), (320, 320), (512, 512))
#: The same in pairs of CTAs, which no plan is that the planner takes by itself.
PAIRED = {
    f"pair-{feature}": f"{FEATURES[feature]} --schedule=ws_tmem --set=pair=true".strip()
    for feature in ("plain", "causal", "odd", "window", "softcap", "groups", "sequences", "pages")
}
PAIRED_DIMS = ((64, 64), (96, 96), (128, 128), (160, 96), (192, 128), (256, 256))
#: The same of one query of a sequence, or a few.
SERVED = {
    "one": "",
    "lengths": "--kv-lengths=4096,100,17,0",
    "pages": "--kv-lengths=4096,100,17,0 --page-size=16",
    "single-pages": "--kv-lengths=4096,100,17,0 --page-size=1 --page-indptr",
    "window": "--window=500,0,bottom-right --kv-lengths=4096,100,17,0 --page-size=16",
    "softcap": "--softcap=20 --sinks --kv-lengths=4096,100,17,0 --page-size=16",
    "selected": "--kv-lengths=4096,100,17,0 --page-size=1 --selected",
    "runs": "--run-keys=256 --kv-lengths=4096,100,17,0 --page-size=16",
    "splits": "--kv-splits=8 --kv-lengths=4096,100,17,0 --page-size=16",
    "states": "--init-state --kv-lengths=4096,100,17,0 --page-size=16",
    "results": "--out-type=f8E4M3FN --out-scale=100 --kv-splits=1 --kv-lengths=4096,100,17,0",
    "narrow": "--kv-type=f8E4M3FN --descales --kv-lengths=4096,100,17,0 --page-size=16",
    "scaled": "--kv-type=f8E4M3FN --scale-group=32 --kv-lengths=4096,100,17,0 --page-size=16",
    "dynamic": "--dynamic --kv-lengths=4096,100,17,0 --page-size=16",
}
#: The same of heads that share one head of keys, and of what they have on chips with tensor
#: memory alone: runs that are dealt, results of 4 bits, keys of unlike places.
SHARED = SERVED | {
    "dealt": "--schedule=ws_tmem --kv-splits=8 --kv-lengths=4096,100,17,0 --page-size=16 "
    "--set=dealt_runs=20",
    "dealt-half": "--schedule=ws_tmem --kv-splits=8 --kv-lengths=4096,100,17,0 --page-size=1 "
    "--selected --partials=f16 --set=dealt_runs=20",
    "amax": "--amax --kv-lengths=4096,100,17,0 --page-size=16 --kv-splits=1",
    "nvfp4": "--out-type=f4E2M1FN --out-group=16 --kv-lengths=4096,100,17,0 --kv-splits=1",
    "narrow-states": "--kv-type=f8E4M3FN --descales --init-state --kv-lengths=4096,100,17,0",
    "row-states": "--row-state --out-type=f32 --kv-splits=8 --kv-lengths=4096,100,17,0",
}
SHARED_DIMS = (64, 80, 96, 128, 192, 256, 320, 512)
SERVED_DIMS = (64, 80, 96, 112, 128, 160, 192, 224, 240, 256, 320, 384, 448, 512)
SERVED_PAIRS = ((192, 128), (128, 256), (256, 128), (512, 256))
#: Latent attention, whose values are columns of the keys.
LATENT = {
    "one": "",
    "pages": "--kv-lengths=4096,100,17,0 --page-size=64",
    "single-pages": "--kv-lengths=4096,100,17,0 --page-size=1 --page-indptr",
    "selected": "--kv-lengths=4096,100,17,0 --page-size=1 --selected",
    "apart": "--rope-apart --kv-lengths=4096,100,17,0 --page-size=64",
    "splits": "--kv-splits=8 --kv-lengths=4096,100,17,0 --page-size=64",
    "states": "--init-state --kv-lengths=4096,100,17,0 --page-size=64",
    "narrow": "--kv-type=f8E4M3FN --scale-group=128 --kv-lengths=4096,100,17,0 --page-size=64",
    "results": "--out-type=f8E4M3FN --out-scale=100 --kv-splits=1 --kv-lengths=4096,100,17,0",
    "dealt": "--kv-splits=8 --kv-lengths=4096,100,17,0 --page-size=64 --set=dealt_runs=20",
    "dynamic": "--dynamic --kv-lengths=4096,100,17,0 --page-size=64",
}
#: Columns of keys, all but 64 of which are those of values.
LATENT_DIMS = (192, 320, 448, 576)

#: Regions of a problem, by the name of their feature.
REGIONS = {
    "score-mod": """score_mod {
      ^bb0(%s: f32, %b: i32, %h: i32, %i: i32, %j: i32):
        %head = arith.index_cast %h : i32 to index
        %slope = memref.load %slopes[%head] : memref<8xf32>
        %distance = arith.subi %j, %i : i32
        %d = arith.sitofp %distance : i32 to f32
        %bias = arith.mulf %slope, %d : f32
        %r = arith.addf %s, %bias : f32
        attn.yield %r : f32
      }""",
    "mask-mod": """mask_mod {
      ^bb0(%s: f32, %b: i32, %h: i32, %i: i32, %j: i32):
        %sum = arith.addi %i, %j : i32
        %three = arith.constant 3 : i32
        %rest = arith.remsi %sum, %three : i32
        %seen = arith.cmpi ne, %rest, %h : i32
        attn.yield %seen : i1
      }""",
}


@dataclasses.dataclass(frozen=True)
class FeatureCell:
    """A problem with one feature, or a few, on a chip."""

    chip: str
    #: "many" queries, "served" batches, "shared" ones of heads on one head of keys, or "latent"
    #: ones of so many heads.
    kind: str
    dtype: str
    key_dim: int
    value_dim: int
    feature: str
    heads: int = 8

    @property
    def name(self) -> str:
        kind = self.kind if self.kind != "latent" else f"latent{self.heads}"
        dims = f"d{self.key_dim}-dv{self.value_dim}"
        return f"{self.chip}-{kind}-{self.dtype}-{dims}-{self.feature}"

    @property
    def source(self) -> str:
        """What the compiler reads; empty where flags say all."""
        if self.feature not in REGIONS:
            return ""
        q, v = (f"memref<1x8x2048x{d}x{self.dtype}>" for d in (self.key_dim, self.value_dim))
        o = v.replace(self.dtype, "f16") if self.dtype.startswith("f8") else v
        return f"""func.func @f(%q: {q}, %k: {q}, %v: {v}, %o: {o}, %slopes: memref<8xf32>) {{
    attn.attention ins(%q, %k, %v : {q}, {q}, {v}) outs(%o : {o}) {REGIONS[self.feature]}
      {{mask = #attn.mask<kind = causal>}}
    return
  }}"""

    def flags(self) -> list[str]:
        chip = f"--chip={self.chip}"
        if self.source:
            return [chip]
        if self.kind == "latent":
            shape = f"--q=4x{self.heads}x1x{self.key_dim}x{self.dtype}"
            return [chip, shape, "--rope-dim=64", "--kv-len=4096", *LATENT[self.feature].split()]
        dims = [f"--dv={self.value_dim}", chip]
        if self.kind == "shared":
            shape = f"--q=4x{self.heads}x1x{self.key_dim}x{self.dtype}"
            more = SHARED[self.feature].split()
            return [shape, "--kv-heads=1", "--kv-len=4096", *dims, *more]
        if self.kind == "served":
            shape = f"--q=4x32x1x{self.key_dim}x{self.dtype}"
            return [shape, "--kv-heads=8", "--kv-len=4096", *dims, *SERVED[self.feature].split()]
        more = (FEATURES | PAIRED | TMEM_FEATURES)[self.feature].split()
        return [f"--q=1x8x2048x{self.key_dim}x{self.dtype}", *dims, *more]

    def rank(self) -> tuple:
        """An order that is no order, so that a part of it tells of all."""
        return (hashlib.sha256(self.name.encode()).hexdigest(),)


def make_feature_cells() -> list[FeatureCell]:
    """Every feature at the head dimensions that matter."""
    cells = [
        FeatureCell(chip, "many", "bf16", d, dv, feature)
        for chip in ("sm_90a", "sm_80", "sm_86", "sm_100a", "sm_89", "sm_103a", "sm_120")
        for d, dv in [(d, d) for d in FEATURE_DIMS] + list(FEATURE_PAIRS)
        for feature in FEATURES
    ]
    cells += [
        FeatureCell("sm_90a", "many", "f8E4M3FN", d, d, feature)
        for d in FEATURE_DIMS
        if d % 16 == 0 and d <= 256
        for feature in FEATURES
    ]
    cells += [
        FeatureCell(chip, "many", "bf16", d, dv, feature)
        for chip in TMEM_CHIPS
        for d, dv in PAIRED_DIMS
        for feature in PAIRED
    ]
    cells += [
        FeatureCell(chip, "many", "bf16", d, dv, feature)
        for chip in TMEM_CHIPS
        for d, dv in TMEM_FEATURE_PAIRS
        for feature in TMEM_FEATURES
    ]
    cells += [
        FeatureCell(chip, "shared", "bf16", d, d, feature, heads=64)
        for chip in TMEM_CHIPS
        for d in SHARED_DIMS
        for feature in SHARED
    ]
    served = ("sm_90a", "sm_80", "sm_86", "sm_89", "sm_120")
    cells += [
        FeatureCell(chip, "served", "bf16", d, dv, feature)
        for chip in served
        for d, dv in [(d, d) for d in SERVED_DIMS] + list(SERVED_PAIRS)
        for feature in SERVED
    ]
    cells += [
        FeatureCell(chip, "latent", "bf16", d, d - 64, feature, heads)
        for chip in (*served, *TMEM_CHIPS)
        for d in LATENT_DIMS
        for heads in (16, 64, 128)
        for feature in LATENT
    ]
    return sorted(cells, key=FeatureCell.rank)


#: Of the grid of ws_tmem what the planner is asked for.
GRID_AXES = ("dtype", "d", "mask", "nq", "nk", "heads", "packed")
#: Rows of two tiles, which a CTA computes.
TWO_TILES = 256


@dataclasses.dataclass(frozen=True)
class GridCell:
    """A problem of the grid of ws_tmem on a chip."""

    chip: str
    point: tuple

    @property
    def name(self) -> str:
        return f"{self.chip}-{PackedCase(self.point).name}"

    @property
    def source(self) -> str:
        """What the compiler reads; empty where flags say all."""
        return ""

    def flags(self) -> list[str]:
        command = PackedCase(self.point).command("", self.chip)
        return [flag for flag in command[1:] if flag not in ("--verify", "--json")]

    def structure(self, code: str, plan: str) -> str:
        """What kernels of this plan have in common that are equal up to constants;
        `code` is the chip whose machine code this one's is."""
        case = PackedCase(self.point)
        known = [code, case.d, case.mask, case.heads, case.kv_heads, case.packed, plan]
        if not case.packed:
            # One block of keys, two and many are other loops, and so are one query, one
            # tile, two and many.
            found = re.search(r"block_n = (\d+)", plan)
            block = int(found[1]) if found else 128
            known += [min(-(-case.nk // block), 3), case.nk % block == 0]
            known += [case.nq == 1, min(-(-case.nq // TWO_TILES), 2)]
        return " ".join(map(str, known))

    def rank(self) -> tuple:
        """An order that is no order, the same on each chip."""
        mixed = hashlib.sha256(str(self.point).encode()).hexdigest()
        return (mixed, TMEM_CHIPS.index(self.chip))


def make_grid_cells() -> list[GridCell]:
    """Every problem of the grid on each chip; type, heads and packed sequences drawn."""
    points = draw_whole({axis: TMEM_AXES[axis] for axis in GRID_AXES}, 0)
    cells = [GridCell(chip, point) for chip in TMEM_CHIPS for point in points]
    return sorted(cells, key=GridCell.rank)
