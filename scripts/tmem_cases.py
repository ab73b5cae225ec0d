"""What ws_tmem computes, as cases of `sim-grid.py --tmem`, and all of its problems, as
those of `--whole`."""

import itertools
import random
import shlex

from grid_cases import MASKS, TOLERANCE, Case

TMEM_LENGTHS = (1, 127, 128, 129, 255, 257, 512, 1000)
#: Of ws_tmem: tiles and blocks that are full, and one key more or less; of packed
#: sequences one has no queries and one no keys.
TMEM_AXES = {
    "dtype": tuple(TOLERANCE),
    "d": (16, 32, 48, 64, 80, 96, 112, 128),
    "mask": tuple(MASKS),
    "nq": TMEM_LENGTHS,
    "nk": TMEM_LENGTHS,
    "heads": ((1, 1), (2, 2), (3, 1), (8, 2)),
    "packed": (False, True),
    "softmax": ("threshold", "exact", "lagged", "optimistic"),
    # Packed sequences and rows of three heads have no `tma`: theirs is another
    # case of auto.
    "epilogue": ("auto", "direct", "tma"),
    # Heads of a group as rows of their query, where there are any.
    "rows": (False, True),
    # Two CTAs that multiply together, where halves of values are whole boxes.
    "pair": (False, True),
    # Rows of their batch or of packed sequences, batches that end before k does, or
    # pages of so many keys.
    "keys": ("rows", "lengths", "16", "64", "256"),
}


class PackedCase(Case):
    """A problem, maybe of packed sequences."""

    def __init__(self, values):
        *usual, self.packed = values
        super().__init__(usual)

    @property
    def name(self):
        return super().name + ("-packed" if self.packed else "")

    def command(self, tool, chip):
        command = super().command(tool, chip)
        if self.packed:
            command[1] = f"--q=1x{self.heads}x{self.nq + 5}x{self.d}x{self.dtype}"
            command[3] = f"--varlen=q:{self.nq},0,5/k:{self.nk},40,0"
        return command


class TmemCase(PackedCase):
    """One point of the grid of ws_tmem."""

    def __init__(self, values):
        super().__init__(values[:7])
        self.softmax, self.epilogue, self.rows, self.pair, keys = values[7:]
        self.pair &= self.d % 32 == 0
        self.rows &= self.heads != self.kv_heads
        # What is packed says by itself where its sequences end.
        self.keys = "rows" if self.packed and keys == "lengths" else keys

    @property
    def name(self):
        rows = ("-rows" if self.rows else "") + ("-pair" if self.pair else "")
        keys = {"rows": "", "lengths": "-lengths"}.get(self.keys, f"-pages{self.keys}")
        return f"{super().name}-{self.softmax}-{self.epilogue}{rows}{keys}"

    def command(self, tool, chip):
        command = super().command(tool, chip)
        if not self.packed and self.keys != "rows":
            command[1] = f"--q=3x{self.heads}x{self.nq}x{self.d}x{self.dtype}"
            command.append(f"--kv-lengths={self.nk // 2 + 1},0,{self.nk}")
        if self.keys.isdigit():
            command.append(f"--page-size={self.keys}")
        return [*command, "--schedule=ws_tmem", f"--set=spills=allow,{self.parameters}"]

    @property
    def parameters(self):
        """The plan's."""
        parameters = f"softmax={self.softmax}"
        has_tma = not self.packed and not (self.rows and self.heads == 3)
        if self.epilogue != "auto" and (has_tma or self.epilogue != "tma"):
            parameters += f",epilogue={self.epilogue}"
        if self.heads != self.kv_heads:
            parameters += f",pack_heads={str(self.rows).lower()}"
        if self.pair:
            parameters += ",pair=true"
        return parameters


#: Of heads above 256 and of values whose columns two CTAs divide, (D, Dv), whose plans
#: have one tile.
TMEM_WIDE_AXES = TMEM_AXES | {
    "d": ((264, 72), (320, 320), (512, 512), (576, 256), (136, 400), (640, 64)),
    "nq": (1, 127, 129, 257),
    "nk": (1, 127, 129, 257, 512),
    "softmax": ("threshold", "exact", "lagged"),
    "epilogue": ("auto", "direct"),
    "pair": (False,),
}


class TmemWideCase(TmemCase):
    """One point of the grid of wide heads of ws_tmem."""

    def __init__(self, values):
        dtype, (d, self.dv), *others = values
        super().__init__([dtype, d, *others])

    @property
    def name(self):
        return f"{super().name}-dv{self.dv}"

    def command(self, tool, chip):
        return [*super().command(tool, chip), f"--dv={self.dv}"]


#: In which order tiles are computed, by name: parameters of the plan.
TILES = {
    "chosen": "",
    "longest": ",order=longest_first",
    "dealt": ",dynamic=true",
    "grouped": ",group_heads=2",
}
#: Chips of ws_tmem.
CHIPS = ("sm_100a", "sm_100f", "sm_103a")
#: On how many CTAs or pairs, 0 for as many as the launch says: some compute many tiles, and of
#: those of the launch most have none.
GRIDS = {"launch": 0, "one": 1, "two": 2}
#: The same on each chip, in each order of tiles, with other inputs, and of fewer heads;
#: lengths and pages are in the other grid alone.
WHOLE_AXES = {axis: values for axis, values in TMEM_AXES.items() if axis != "keys"} | {
    "heads": ((1, 1), (2, 2), (3, 1), (4, 2)),
    "chip": CHIPS,
    "tiles": tuple(TILES),
    "grid": tuple(GRIDS),
    "seed": (1, 2, 3, 4, 5),
}
#: Axes all of whose combinations are run.
PROBLEM_AXES = ("d", "mask", "nq", "nk")


class WholeCase(TmemCase):
    """A problem of ws_tmem, compiled for a chip and run under all corners of the
    simulator with what the PTX manual orders, on scores that grow too."""

    def __init__(self, values):
        *usual, self.chip, self.tiles, self.grid, self.seed = values
        super().__init__([*usual, "rows"])
        # Groups are of whole heads, all of the same size.
        if self.tiles == "grouped" and (self.rows or self.heads % 2):
            self.tiles = "chosen"

    @property
    def name(self):
        return f"{self.chip}-{super().name}-{self.tiles}-{self.grid}-s{self.seed}"

    @property
    def parameters(self):
        return super().parameters + TILES[self.tiles]

    def command(self, tool, chip):
        # CTAs can be said of a launch of one kernel alone.
        return [*super().command(tool, chip), "--no-split-keys"]

    def stages(self, compiler, simulator, folder):
        """The commands that compile and simulate the case, with files in a folder."""
        kernel, launch = f"{folder}/kernel.ptx", f"{folder}/kernel.json"
        flags = self.command(compiler, self.chip)
        compile_it = [flag for flag in flags if flag not in ("--verify", "--json")]
        compile_it += ["-o", kernel, f"--launch-out={launch}"]
        run_it = [simulator, kernel, f"--launch={launch}", "--verify", "--sanitize", "--corners"]
        # A4 is about signals between CTAs, which kernels of pairs alone have, and the planner
        # takes pairs too.
        run_it += ["--lose-bets", "--profile=isa", "--assume=A1,A2,A4", f"--seed={self.seed}"]
        if ctas := GRIDS[self.grid] * (2 if self.pair else 1):
            run_it.append(f"--grid={ctas},1,1")
        run_it += ["--jobs=1", "--json"]
        return compile_it, run_it

    def show(self, folder):
        """Those commands as a shell's line."""
        return " && ".join(map(shlex.join, self.stages("attn-compile", "attn-sim", folder)))


def draw_whole(axes, seed):
    """Each problem once, in an order that is no order; each value of another axis as
    often as the others."""
    draw = random.Random(seed)
    problems = list(itertools.product(*(axes[axis] for axis in PROBLEM_AXES)))
    columns = dict(zip(PROBLEM_AXES, zip(*problems)))
    for axis, values in axes.items():
        if axis not in columns:
            column = list(itertools.islice(itertools.cycle(values), len(problems)))
            draw.shuffle(column)
            columns[axis] = column
    points = list(zip(*(columns[axis] for axis in axes)))
    draw.shuffle(points)
    return points


def count_pairs(points):
    """How many pairs of values of two axes occur, and how many there are."""
    axes = range(len(WHOLE_AXES))
    seen = {(a, b, point[a], point[b]) for point in points for a, b in itertools.combinations(axes, 2)}
    sizes = [len(values) for values in WHOLE_AXES.values()]
    return len(seen), sum(x * y for x, y in itertools.combinations(sizes, 2))
