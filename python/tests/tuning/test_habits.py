"""`python -m attn`, `attn.tune`, the log, completion, and the table of variables."""

import os
import re
import subprocess
import sys

import attn
import pytest
from attn import __main__ as program
from attn.tuning import bench, completion, machine_report, manual
from conftest import ROOT


def test_report(capsys, monkeypatch):
    monkeypatch.setenv("ATTN_CHIP", "sm_90a")
    assert program.main([]) == 0
    lines = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert "LLVM" in lines["compiler"] and "sm_100a" in lines["targets"]
    assert lines["ATTN_CHIP"] == "'sm_90a'" and "files" in lines["cache"]
    assert {"python", "ptxas", "GPU", "numpy", "torch", "transformers"} <= set(lines)


def test_report_without_a_compiler(monkeypatch):
    def refuse():
        raise attn.LibraryError("cannot load the compiler: it is not there")

    monkeypatch.setattr(machine_report.c_library, "load", refuse)
    assert (
        "compiler",
        "none: cannot load the compiler: it is not there",
    ) in machine_report.list_lines()


def test_bench(capsys):
    """Without a GPU the planner's time; half of the products for a causal mask."""
    assert program.main(["bench", "--q=1x8x4096x128xbf16", "--causal", "--chip=sm_90a"]) == 0
    text = capsys.readouterr().out
    assert "#attn.ws_wgmma" in text and "measured  nothing: there is no GPU of this chip" in text
    expected, speed = map(float, re.search(r"expected  ([\d.]+) us, (\d+) TFLOP/s", text).groups())
    assert speed == pytest.approx(2 * 8 * 4096 * 4096 * 256 / 2 / expected / 1e6, rel=0.01)
    for words, message in (
        (["--q=1x8x64x7xbf16"], ""),
        (["--q=1x8x64x64"], "q: expected BxHxNxDxTYPE, got"),
        (["--causal"], "bench: expected --q, such as"),
        (["--q=1x8x64x64xbf16", "fast"], "bench: expected flags such as --causal"),
        (["--q=1x8x64x64xbf16", "--heds=3"], "attn.compile has no argument 'heds'"),
    ):
        assert program.main(["bench", *words]) == 1
        assert capsys.readouterr().err.startswith(f"python -m attn: error: {message}")


def test_work_of_unequal_heads():
    kernel = attn.compile(q=(2, 4, 64, 64), dtype="float16", kv_heads=2, kv_len=96, dv=32)
    assert bench.count_operations(kernel) == 2 * 2 * 4 * 64 * 96 * (64 + 32)


def test_completion(capsys):
    assert program.main(["completion", "bash"]) == 0
    script = capsys.readouterr().out
    ask = "COMP_WORDS=(attn-compile {}); COMP_CWORD=$((${{#COMP_WORDS[@]}}-1)); _attn_compile; echo ${{COMPREPLY[@]}}"
    for words, answer in (
        ("--kv-h", "--kv-heads="),
        ("--chip = sm_90", "sm_90a"),
        ("--verify-e", "--verify-each"),
        ("--layout = bn", "bnhd"),
    ):
        code = script + "compopt() { :; }\n" + ask.format(words)
        done = subprocess.run(["bash", "-c", code], capture_output=True, text=True, check=True)
        assert done.stdout.strip() == answer, done.stderr
    with pytest.raises(
        attn.ArgumentError, match="completion: expected one of bash, zsh, got 'fish'"
    ):
        completion.make("fish", [])


def test_manual(capsys):
    """Each flag that --help lists, with the constraints of the table of options."""
    for command in completion.COMMANDS:
        assert program.main(["man", command]) == 0
        page = capsys.readouterr().out.replace("\\-", "-")
        assert page.startswith(f".TH {command.upper()} 1 ")
        for flag in completion.list_flags(completion.read_help(command)):
            assert f".B {flag}" in page, flag
    page = manual.make("attn-compile").replace("\\-", "-")
    told = ".B --window=<LEFT,RIGHT[,ALIGN]>\nWindow mask; a negative number means no bound on that side (attention_c30 of"
    assert told in page
    with pytest.raises(
        attn.ArgumentError, match="man: expected one of attn-compile, attn-sim, got 'ls'"
    ):
        manual.make("ls")


def test_tune(tmp_path, capsys):
    """Plans by their estimates where there is no GPU; the problem may have functions."""
    with pytest.raises(
        attn.ArgumentError, match="candidates: expected a number of at least 1, got 0"
    ):
        attn.tune(q=(1, 1, 64, 64), dtype="float16", candidates=0)
    found = attn.tune(
        q=(1, 1, 128, 64), dtype="float16", mask_mod=lambda b, h, q_idx, kv_idx: kv_idx % 3 != 1, candidates=2
    )  # fmt: skip
    # Each plan also with a name that ptxas knows.
    assert len(found.candidates) == 4 and found.chip == "sm_80"
    assert all(each.estimate_us > 0 and each.plan.startswith("#attn.") for each in found.candidates)
    with pytest.raises(attn.CompileError):
        attn.tune(q=(1, 1, 64, 7), dtype="float16")


def run_logged(said, cache):
    code = (
        "import attn\n"
        "for _ in range(2): attn.compile(q=(1, 1, 64, 64), dtype='float16'); attn.compiler.kernel_cache.clear_memory()"
    )
    variables = {
        **os.environ,
        "ATTN_LOG": said,
        "ATTN_CACHE_DIR": str(cache),
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    return subprocess.run(
        [sys.executable, "-c", code], env=variables, capture_output=True, text=True, check=False
    )


def test_log(tmp_path):
    lines = run_logged("1", tmp_path / "a").stderr.splitlines()
    assert re.fullmatch(r"attn: compiled: q=1x1x64x64xf16 .*for sm_80 in [\d.]+ s", lines[0])
    assert lines[1].startswith("attn: cached: q=1x1x64x64xf16")
    assert run_logged("0", tmp_path / "b").stderr == ""
    assert "ATTN_LOG: expected 0 or 1, got 'yes'" in run_logged("yes", tmp_path / "c").stderr


def test_variables_are_documented():
    """Each variable that the package or the programs read stands in the page's table."""
    sources = [
        *(ROOT / "python" / "attn").rglob("*.py"),
        *(ROOT / "lib").rglob("*.cpp"),
        *(ROOT / "tools").rglob("*.cpp"),
    ]
    read = set()
    for path in sources:
        text = path.read_text(encoding="utf-8")
        read |= set(
            re.findall(r"(?:environ(?:\.get)?[(\[]\s*|getenv\(|GetEnv\()\"([A-Z_]+)\"", text)
        )
    page = (ROOT / "docs" / "Environment.md").read_text(encoding="utf-8")
    table = set(re.findall(r"^\| `([A-Z_]+)`", page, re.M))
    assert read | {"PATH"} == table
    assert set(machine_report.VARIABLES) <= table
