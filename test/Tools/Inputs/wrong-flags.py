"""Gives each program flags that it does not have: the status says so, nothing is written,
and the error names the flag that was meant, where the program has it.

usage: wrong-flags.py BIN
"""

import pathlib
import re
import subprocess
import sys

PROGRAMS = ("attn-compile", "attn-opt", "attn-reduce", "attn-targets", "attn-lsp-server", "attn-sim",
            "attn-lint-sass")  # fmt: skip

# What begins with the h of -h, with its value beside it and apart.
OF_HELP = ["--heads=4", "--head-dim=64", "-heads", "--hidden", "--hel", "--helpp", "-hq"]

COMPILE = {
    # What others call it.
    "--arch": "--chip", "--target": "--chip", "--gpu-architecture": "--chip", "--gpu": "--chip",
    "-arch": "--chip", "--sm": "--chip", "--heads": "-q", "--head-dim": "-q", "--seqlen": "-q",
    "--dtype": "-q", "--batch": "-q", "--query": "-q", "--num_kv_heads": "--kv-heads",
    "--seqlen_k": "--kv-len", "--is_causal": "--causal", "--logits-soft-cap": "--softcap",
    "--sm_scale": "--scale", "--softmax-scale": "--scale", "--sliding-window": "--window",
    "--block-size": "--page-size", "--num-splits": "--kv-splits", "--cu-seqlens": "--varlen",
    "--output": "-o", "--out": "-o", "--rung": "--emit", "--test": "--verify",
    # Slips.
    "--kvheads": "--kv-heads", "--kv_heads": "--kv-heads", "--KV-HEADS": "--kv-heads",
    "--kv-head": "--kv-heads", "--kvlen": "--kv-len", "--chips": "--chip", "--chp": "--chip",
    "--casual": "--causal", "--causl": "--causal", "--soft-cap": "--softcap",
    "--sofcap": "--softcap", "--windw": "--window", "--scales": "--scale", "--sinnks": "--sinks",
    "--pagesize": "--page-size", "--page_size": "--page-size", "--var-len": "--varlen",
    "--rope": "--rope-dim", "--ropedim": "--rope-dim", "--outtype": "--out-type",
    "--kv-typ": "--kv-type", "--dynamc": "--dynamic", "--nolse": "--no-lse", "--layuot": "--layout",
    "--sets": "--set", "--shedule": "--schedule", "--schedul": "--schedule", "--emmit": "--emit",
    "--launchout": "--launch-out", "--launch": "--launch-out", "--bundel": "--bundle",
    "--auto-tune": "--autotune", "--verfy": "--verify", "--verify-all": "--verify",
    "--checkptx": "--check-ptx", "--check": "--check-ptx", "--print-plans": "--print-plan",
    "--dump": "--dump-dir", "--list-parameter": "--list-parameters", "--jsn": "--json",
    "--corner": "--corners", "--remarks": "--remarks-filter", "--debuglines": "--debug-lines",
    "--require_proof": "--require-proof", "--no-check-barrier": "--no-check-barriers",
    "--witnes": "--witness", "--skeletton": "--skeleton", "--partial": "--partials",
}  # fmt: skip

# What of these a program has.
KNOWN = {"attn-sim": ("--launch", "--out")}

# Beside those of attn-compile, of which each program gets all.
MORE = {
    "attn-sim": {
        "--arch": "--chip", "--launch-record": "--launch", "--record": "--launch", "--outs": "--out",
        "--profil": "--profile", "--sanitise": "--sanitize", "--asume": "--assume",
        "--timline": "--timeline", "--html": "--timeline", "--threads": "--jobs", "--grd": "--grid",
        "--tollerance": "--tolerance", "--step_limit": "--step-limit", "--estimat": "--estimate",
        "--verify-all": "--verify", "--schedul": "--schedule", "--skeletton": "--skeleton",
    },
    "attn-lint-sass": {
        "--arch": "--chip", "--kernels": "--kernel", "--bugdet": "--budget", "--logs": "--log",
        "--nam": "--name",
    },
    "attn-targets": {"--fromat": "--format", "--formats": "--format"},
    "attn-opt": {
        "--attn-plann": "--attn-plan", "--attn_plan": "--attn-plan", "--attn-expnad": "--attn-expand",
        "--attn-check-barrier": "--attn-check-barriers", "--attn-to-nvm": "--attn-to-nvvm",
        "--mlir-print-ir-after-al": "--mlir-print-ir-after-all", "--canonicalise": "--canonicalize",
        "--verify-diagnostic": "--verify-diagnostics", "--pass_pipeline": "--pass-pipeline",
        "--split-input-files": "--split-input-file", "--output": "-o",
    },
    "attn-reduce": {"--reduction_tree": "--reduction-tree", "--attn-plann": "--attn-plan",
                    "--output": "-o"},
}  # fmt: skip


def fail(message: str) -> None:
    print(message, file=sys.stderr)
    sys.exit(1)


def run(program: str, *arguments: str) -> list[str]:
    """The lines of standard error; the status is right, and nothing else is printed."""
    done = subprocess.run([pathlib.Path(sys.argv[1]) / program, *arguments],
                          capture_output=True, text=True, input="", check=False)  # fmt: skip
    said = f"{program} {' '.join(arguments[:3])}"
    if done.returncode != 1:
        fail(f"{said}: expected status 1, got {done.returncode}")
    if done.stdout:
        fail(f"{said}: expected no output, got\n{done.stdout}")
    return done.stderr.splitlines()


def main() -> None:
    count = 0
    for program in sys.argv[2:] or PROGRAMS:
        for flag in OF_HELP:
            name = flag.split("=")[0]
            (line,) = run(program, flag)
            if f"{program}: error: unknown flag '{name}'" not in line:
                fail(f"{program} {flag}: got {line}")
            # A flag of one letter is not the beginning of others.
            if "may not occur within a group" in line:
                fail(f"{program} {flag}: got {line}")
            count += 1
        if program == "attn-lsp-server":
            continue
        wanted = COMPILE if program == "attn-compile" else MORE.get(program, {})
        flags = [*dict.fromkeys([*COMPILE, *wanted])]
        flags = [flag for flag in flags if flag not in KNOWN.get(program, ())]
        lines = run(program, *(f"{flag}=1" for flag in flags))
        found = {}
        for line in lines:
            match = re.match(rf"{program}: error: unknown flag '([^']+)'(?:; did you mean '([^'=]+).*'\?|, see --help)$", line)
            if not match:
                fail(f"{program}: got {line}")
            found[match[1]] = match[2]
        wrong = [f"{program} {flag}: expected an error" for flag in flags if flag not in found]
        wrong += [
            f"{program} {flag}: expected {wanted[flag]}, got {found.get(flag)}"
            for flag in flags if flag in wanted and found.get(flag) != wanted[flag]
        ]  # fmt: skip
        if wrong:
            fail("\n".join(wrong))
        count += len(flags)
    print(f"{count} wrong flags refused")


if __name__ == "__main__":
    main()
