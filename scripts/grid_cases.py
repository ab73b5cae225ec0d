"""What the grids of `sim-grid.py` share: a point of one, and the axes of plain problems."""

#: Largest relative error of O by element type, and absolute error of LSE.
TOLERANCE = {"f16": 2e-3, "bf16": 1.6e-2}
LSE_TOLERANCE = 1e-3

MASKS = {
    "none": [],
    "causal": ["--causal=top-left"],
    "causal-br": ["--causal=bottom-right"],
    "window": ["--window=40,8"],
    "causal-softcap": ["--causal=bottom-right", "--softcap=5"],
    "causal-sinks": ["--causal=top-left", "--sinks"],
}
LENGTHS = (1, 17, 64, 127, 300)
AXES = {
    "dtype": tuple(TOLERANCE),
    "d": (16, 40, 64, 96, 128, 192, 256),
    "mask": tuple(MASKS),
    "nq": LENGTHS,
    "nk": LENGTHS,
    "heads": ((8, 8), (8, 2), (7, 1)),
}
#: Head dimensions of ws_columns, of one CTA and of two, of fewer heads.
WIDE_AXES = AXES | {"d": (392, 456, 512, 528, 640, 1024), "heads": ((2, 2), (4, 2), (3, 1))}


class Case:
    """One point of the grid."""

    #: Whether ldmatrix has to be free of conflicts whatever the head dimension.
    is_free = False

    def __init__(self, values):
        self.dtype, self.d, self.mask, self.nq, self.nk, heads = values
        self.heads, self.kv_heads = heads

    @property
    def tolerance(self):
        """How far results may be from the reference's."""
        return TOLERANCE[self.dtype]

    @property
    def lse_tolerance(self):
        """The same of LSE."""
        return LSE_TOLERANCE

    def is_forgiven(self, problem):
        """True of what is known to be beyond the case."""
        return False

    def is_too_large(self, error):
        """True of the error of a plan that the case names and its chip cannot hold."""
        return False

    def is_refusal(self, error):
        """True of the error of a problem that the schedule does not take."""
        return False

    @property
    def name(self):
        return (
            f"{self.dtype}-d{self.d}-{self.mask}-q{self.nq}-k{self.nk}"
            f"-h{self.heads}x{self.kv_heads}"
        )

    def command(self, tool, chip):
        return [
            tool,
            f"--q=1x{self.heads}x{self.nq}x{self.d}x{self.dtype}",
            f"--kv-heads={self.kv_heads}",
            f"--kv-len={self.nk}",
            *MASKS[self.mask],
            f"--chip={chip}",
            "--verify",
            "--json",
        ]
