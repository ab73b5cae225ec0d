"""Forms of decode and prefill on chips with tensor memory, as cases of `sim-grid.py --pairs`:
each pair of values of two axes occurs, and each case is run with five seeds."""

import random
import re

from grid_cases import LSE_TOLERANCE, TOLERANCE, Case
from tmem_cases import CHIPS, WholeCase

#: Types of queries, and of keys and values if they have another one.
TYPES = {
    "bf16": ("bf16", ""),
    "f16": ("f16", ""),
    "e4m3": ("f8E4M3FN", ""),
    "e5m2": ("f8E5M2", ""),
    "bf16-e4m3": ("bf16", "f8E4M3FN"),
}
MASKS = {
    "none": [],
    "causal": ["--causal=bottom-right"],
    "window": ["--window=60,10,bottom-right"],
    "selected": ["--selected"],
}
#: Flags of a kind of results whose groups have so many columns.
RESULTS = {
    "input": lambda group: [],
    "f32": lambda group: ["--out-type=f32"],
    "fp8": lambda group: ["--out-type=f8E4M3FN", "--out-scale=50"],
    "fp8-group": lambda group: ["--out-type=f8E4M3FN", f"--out-group={group}"],
    "fp8-ue8m0": lambda group: ["--out-type=f8E4M3FN", f"--out-group={group}",
                                "--out-scale-type=f8E8M0FNU"],
    "nvfp4": lambda group: ["--out-type=f4E2M1FN", "--out-group=16"],
    "nvfp4-tiles": lambda group: ["--out-type=f4E2M1FN", "--out-group=16", "--out-scale-tiles"],
}  # fmt: skip
#: Keys of each sequence.
LENGTHS = {"one": (600,), "mixed": (520, 0, 1), "short": (130, 200), "none": (0, 0)}
#: What a kernel takes or gives besides.
EXTRAS = {"nothing": [], "amax": ["--amax"], "init": ["--init-state"]}
PAIR_AXES = {
    "schedule": ("ws_tmem", "planned"),
    # (D, Dv); of 576 columns 64 are rotated ones of latent heads.
    "d": ((64, 64), (128, 128), (192, 128), (256, 256), (512, 512), (576, 512)),
    "dtype": tuple(TYPES),
    # At least so many rows share keys: queries times heads of a group.
    "rows": (1, 32, 33, 64, 65, 128, 129, 300),
    "group": (1, 3, 8, 16, 128),
    # In dealt runs all sequences together have more than a run each.
    "runs": (1, 2, 3, 8, "dealt"),
    "page": (0, 1, 16, 48, 64),
    "mask": tuple(MASKS),
    "sinks": (False, True),
    "result": tuple(RESULTS),
    "lengths": tuple(LENGTHS),
    "extra": tuple(EXTRAS),
    "chip": CHIPS,
}
PAIR_SEEDS = (1, 2, 3, 4, 5)


def draw_axes(seed):
    """The axes, whose values stand in another order for each seed but 0, so that other points
    cover their pairs."""
    draw = random.Random(seed)
    return {
        axis: tuple(draw.sample(values, len(values))) if seed else values
        for axis, values in PAIR_AXES.items()
    }


#: What a schedule that does not take a problem says, which names those that do or what is
#: expected.
REFUSED = re.compile(r"has no legal plan on|'attn.attention' op expected")


class PairCase(Case):
    """One point of that grid."""

    #: As many CTAs as the launch says, none of which multiplies with another one.
    grid, pair, is_free = "launch", False, False

    def __init__(self, values, seed=PAIR_SEEDS[0]):
        for name, value in zip(PAIR_AXES, values, strict=True):
            setattr(self, name, value)
        self.seed, self.values = seed, values
        self.d, self.dv = self.d
        self.query_type, self.key_type = TYPES[self.dtype]
        # Entries of a table say what is selected.
        self.page = self.page or int(self.mask == "selected")

    def with_seed(self, seed):
        return PairCase(self.values, seed)

    @property
    def tolerance(self):
        # Of narrow types the report knows how far results may be.
        is_plain = self.result in ("input", "f32") and not self.key_type
        return TOLERANCE.get(self.dtype, float("inf")) if is_plain else float("inf")

    @property
    def lse_tolerance(self):
        return LSE_TOLERANCE if self.query_type in TOLERANCE else float("inf")

    def is_refusal(self, reason):
        """True of an error that says what the schedule does not take."""
        return bool(REFUSED.search(reason))

    @property
    def name(self):
        words = [f"{axis}={getattr(self, axis)}" for axis in PAIR_AXES]
        return "-".join([*words, f"dv={self.dv}", f"s{self.seed}"])

    def command(self, tool, chip):
        lengths = LENGTHS[self.lengths]
        queries = -(-self.rows // self.group)
        command = [
            tool,
            f"--q={len(lengths)}x{self.group}x{queries}x{self.d}x{self.query_type}",
            "--kv-heads=1",
            f"--kv-len={max(1, *lengths)}" if self.lengths == "none" else "--kv-lengths="
            + ",".join(map(str, lengths)),
            *MASKS[self.mask],
            *RESULTS[self.result](min(128, self.dv)),
        ]  # fmt: skip
        if self.lengths == "none":
            command.append("--kv-lengths=" + ",".join(map(str, lengths)))
        if self.d > self.dv and self.d == 576:
            command.append(f"--rope-dim={self.d - self.dv}")
        elif self.d != self.dv:
            command.append(f"--dv={self.dv}")
        if self.page:
            command.append(f"--page-size={self.page}")
        if self.key_type:
            command += [f"--kv-type={self.key_type}", "--descales"]
        elif self.query_type not in TOLERANCE:
            command.append("--descales")
        if self.runs == "dealt" and self.schedule != "planned":
            command += ["--kv-splits=4", f"--set=dealt_runs={3 * len(lengths) + 1}"]
        elif self.runs != "dealt":
            command.append(f"--kv-splits={self.runs}" if self.runs > 1 else "--no-split-keys")
        command += EXTRAS[self.extra]
        if self.sinks:
            command.append("--sinks")
        if self.schedule != "planned":
            command.append(f"--schedule={self.schedule}")
        return [*command, f"--chip={chip}", "--require-proof"]

    stages, show = WholeCase.stages, WholeCase.show
