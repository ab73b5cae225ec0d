"""Which schedules take which options on which chips: docs/Schedules.md, which gen-docs.py writes.

attn-compile --list-schedules asks each schedule's isApplicable about a small problem for each
option of the table.
"""

from __future__ import annotations

import concurrent.futures
import json
import pathlib
import subprocess

#: Plain attention, which options are added to: of few queries, which all schedules take.
SHAPE = ["--q=2x8x8x64xf16", "--kv-len=64"]
#: How each option is stated: flags, which may replace the shape. None stands for options that
#: are sizes of any problem.
EXAMPLES: dict[str, list[str] | None] = {
    "q": None,
    "kv_heads": ["--kv-heads=2"],
    "kv_len": ["--q=2x8x8x64xf16", "--kv-len=128"],
    "dv": ["--dv=32"],
    "causal": ["--causal"],
    "window": ["--window=32,0"],
    "softcap": ["--softcap=20"],
    "scale": ["--scale=0.1"],
    "kv_type": ["--kv-type=f8E4M3FN"],
    "out_type": ["--out-type=f32"],
    "out_scale": ["--out-type=f8E4M3FN", "--out-scale=2"],
    "out_group": ["--out-type=f8E4M3FN", "--out-group=64"],
    "out_scale_type": ["--out-type=f8E4M3FN", "--out-group=64", "--out-scale-type=f8E8M0FNU"],
    "out_scale_tiles": ["--out-type=f4E2M1FN", "--out-group=16", "--out-scale-tiles"],
    "amax": ["--amax"],
    "layout": ["--layout=bnhd"],
    "varlen": ["--q=1x8x8x64xf16", "--varlen=q:3,5"],
    "kv_lengths": ["--kv-lengths=30,64"],
    "page_size": ["--page-size=16", "--kv-lengths=30,64"],
    "page_indptr": ["--page-size=16", "--page-indptr", "--kv-lengths=30,64"],
    "selected": ["--page-size=1", "--selected", "--kv-lengths=30,64"],
    "added_page_size": ["--page-size=16", "--kv-lengths=30,64", "--added-page-size=1", "--added-lengths=9,20"],
    "added_lengths": ["--page-size=16", "--kv-lengths=30,64", "--added-page-size=1", "--added-lengths=9,20"],
    "block_rows": ["--q=2x8x128x64xf16", "--kv-len=128", "--block-rows=128", "--block-keys=128"],
    "block_keys": ["--q=2x8x512x64xf16", "--kv-len=256", "--block-rows=256", "--block-keys=256"],
    "rope_dim": ["--q=2x16x1x576xf16", "--kv-len=64", "--rope-dim=64"],
    "rope_apart": ["--q=2x16x1x576xf16", "--kv-len=64", "--rope-dim=64", "--rope-apart"],
    "sinks": ["--sinks"],
    "init_state": ["--init-state"],
    "descales": ["--kv-type=f8E4M3FN", "--descales"],
    "scale_group": ["--kv-type=f8E4M3FN", "--scale-group=64"],
    "v_transposed": ["--v-transposed"],
    "kv_splits": ["--kv-splits=2"],
    "run_keys": ["--run-keys=32"],
    "row_state": ["--row-state"],
    "expected_keys": ["--kv-lengths=30,64", "--expected-keys=40"],
    "lse": ["--no-lse"],
    "dynamic": ["--dynamic"],
}
#: Forms beside the options that decide which schedule there is.
FORMS = {
    "8 queries, D 64": [],
    "64 queries, D 64": ["--q=2x8x64x64xf16"],
    "D 256": ["--q=2x8x64x256xf16"],
    "D 512": ["--q=2x8x64x512xf16"],
    "D 1024": ["--q=2x8x64x1024xf16"],
    "nvfp4 results": ["--q=2x8x64x64xf16", "--out-type=f4E2M1FN", "--out-group=16"],
    "8-bit q, k and v": ["--q=2x8x64x64xf8E4M3FN", "--out-type=f16"],
    "MLA, 8-bit keys, value_dim 512": [
        "--q=2x16x1x576xf16", "--kv-len=64", "--rope-dim=64", "--kv-type=f8E4M3FN",
    ],
    "MLA, 8-bit keys, value_dim 64": [
        "--q=2x16x1x128xf16", "--kv-len=64", "--rope-dim=64", "--kv-type=f8E4M3FN",
    ],
}  # fmt: skip
#: Regions have no flag.
REGIONS = {"score_mod": "%score : f32", "mask_mod": "%hides : i1", "out_mod": "%score : f32"}
MODULE = """func.func @f(%q: memref<2x8x8x64xf16>, %o: memref<2x8x8x64xf16>) {{
  attn.attention ins(%q, %q, %q : memref<2x8x8x64xf16>, memref<2x8x8x64xf16>,
                     memref<2x8x8x64xf16>) outs(%o : memref<2x8x8x64xf16>) {region} {{
  ^bb0(%score: f32, %b: i32, %h: i32, %i: i32, %j: i32):
    %hides = arith.cmpi slt, %i, %j : i32
    attn.yield {result}
  }}
  return
}}
"""


def ask(tool: pathlib.Path, flags: list[str], text: str = "") -> dict[str, dict[str, str | None]]:
    """By schedules and chips why a problem is not taken, None where it is."""
    has_shape = any(flag.startswith("--q=") for flag in flags)
    where = ["-"] if text else [] if has_shape else SHAPE
    done = subprocess.run(
        [tool, *where, *flags, "--list-schedules"],
        input=text, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(f"{' '.join(flags)}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def name_chips(reasons: dict[str, str | None], all_chips: list[str]) -> str:
    """The chips that take a problem, as a cell."""
    taken = [chip for chip in all_chips if reasons[chip] is None]
    if len(taken) == len(all_chips):
        return "yes"
    return " ".join(chip.removeprefix("sm_") for chip in taken) or "-"


def make_table(found: dict[str, dict[str, dict[str, str | None]]], what: str) -> str:
    schedules = sorted(next(iter(found.values())))
    lines = [f"| {what} | " + " | ".join(f"`{name}`" for name in schedules) + " |"]
    lines.append("|---" * (len(schedules) + 1) + "|")
    for name, answer in found.items():
        chips = list(next(iter(answer.values())))
        cells = [name_chips(answer[schedule], chips) for schedule in schedules]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def make_page(tool: pathlib.Path, rows: list[dict]) -> str:
    """The generated part of docs/Schedules.md."""
    work: dict[str, tuple[list[str], str]] = {}
    for row in rows:
        if row["kind"] == "region":
            text = MODULE.format(region=row["name"], result=REGIONS[row["name"]])
            work[f"`{row['name']}`"] = ([], text)
            continue
        if row["name"] not in EXAMPLES:
            raise LookupError(f"schedule_pages.py: expected an example of option {row['name']}")
        flags = EXAMPLES[row["name"]]
        if flags is not None:
            work[f"`{row['name']}`"] = (flags, "")
    forms = {name: (flags, "") for name, flags in FORMS.items()}
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        both = {**work, **forms}
        answers = dict(zip(both, pool.map(lambda each: ask(tool, *each), both.values()), strict=True))
    parts = [
        make_table({name: answers[name] for name in forms}, "problem"),
        make_table({name: answers[name] for name in work}, "option"),
    ]
    return "\n".join(parts)
