"""`attn.tune`: plans of a problem, timed, in one call."""

from __future__ import annotations

import json
import os
import pathlib
from typing import TYPE_CHECKING, Any

from ..errors import ArgumentError, CompileError

if TYPE_CHECKING:
    from .candidates import Problem


def tune(
    *,
    table: str | os.PathLike[str] | None = None,
    candidates: int = 12,
    chip: str = "native",
    simulate: bool = False,
    **problem: Any,
) -> Problem:
    """Times the plans of a problem that are expected to be fastest, and keeps the best.

    `problem` has the arguments of `attn.compile` that state one, such as `q`, `dtype` and `causal`;
    `candidates` plans are compiled for `chip` and timed on the GPU. The fastest one is written to
    the plan table `table`, which `attn.compile(plan_table=...)` and `attn-compile --plan-table`
    read, beside what is there. Returns the problem with its `candidates`, each with `plan`,
    `estimate_us` and `measured_us`. Without a GPU plans are ranked by their estimates, with
    `simulate` by those of the simulator. Prints a line for each plan. Raises CompileError for a
    problem that no kernel takes."""
    import subprocess
    import tempfile

    from .. import autotune, commands
    from ..calls import call_signatures

    if not isinstance(candidates, int) or candidates < 1:
        raise ArgumentError(f"candidates: expected a number of at least 1, got {candidates!r}")
    compiled = call_signatures.compile(chip=chip, **problem)
    with tempfile.TemporaryDirectory(prefix="attn-tune-") as name:
        folder = pathlib.Path(name)
        (folder / "problem.mlir").write_text(compiled.mlir("problem"), encoding="utf-8")
        words = [
            f"--chip={compiled.chip}",
            f"--autotune={candidates}",
            f"--autotune-dir={folder / 'plans'}",
        ]
        done = subprocess.run(
            [*commands.find("attn-compile"), str(folder / "problem.mlir"), *words],
            stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
        if done.returncode:
            raise CompileError(done.stderr.strip(), ())
        flags = [str(folder / "plans"), f"--json={folder / 'found.json'}"]
        flags += [] if table is None else [f"--table={os.fspath(table)}"]
        flags += ["--simulate"] if simulate else []
        if autotune.main(flags):
            raise CompileError("the plans could not be timed; what is said above tells why", ())
        if (folder / "found.json").exists():
            return autotune.read_results(folder / "found.json")[0]
        # Nothing was timed: the plans as the compiler ranked them.
        index = json.loads((folder / "plans" / "index.json").read_text(encoding="utf-8"))
        return autotune.parse_problem("index.json", index)
