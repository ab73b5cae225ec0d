"""Tuning without a GPU: candidates, results, tables; timing with a stand-in."""

import json
import os
import pathlib
import sys
import zipfile

import attn
import pytest
from attn import autotune
from attn.tuning import table_rows

pytestmark = pytest.mark.usefixtures("empty_cache")

SHIPPED = pathlib.Path(__file__).resolve().parents[3] / "lib/Planner/ShippedPlans.json"
PROBLEM = {
    "type": "f16",
    "out_type": "f16",
    "mask": "causal",
    "batch": 1,
    "heads": 2,
    "kv_heads": 2,
    "queries": 512,
    "keys": 512,
    "head_dim": 64,
    "value_dim": 64,
    "features": ["lse"],
}
PLANS = [f"#attn.split_q<block_n = {n}>" for n in (32, 64, 128)]


def make_index(**changes):
    candidates = [
        {"name": f"{i:02}", "plan": plan, "estimate_us": 10.0 + i, "expected_to_spill": False}
        for i, plan in enumerate(PLANS)
    ]
    index = {"version": 1, "chip": "sm_80", "problem": PROBLEM, "planned": PLANS[0]}
    return {**index, "candidates": candidates, **changes}


@pytest.fixture
def folder(tmp_path):
    """Candidates of two problems."""
    for name in ("one", "two"):
        (tmp_path / "all" / name).mkdir(parents=True)
        index = make_index(problem={**PROBLEM, "heads": len(name)})
        if name == "two":
            index["problem"]["queries"] = 1024
        (tmp_path / "all" / name / "index.json").write_text(json.dumps(index))
        for i in range(len(PLANS)):
            (tmp_path / "all" / name / f"{i:02}.attn").write_bytes(b"%d" % i)
            (tmp_path / "all" / name / f"{i:02}.ptx").write_bytes(b"ptx")
    return tmp_path / "all"


def make_measured(*times, **changes):
    problem = autotune.parse_problem("p", make_index(**changes))
    problem.board = "a board"
    for each, time in zip(problem.candidates, times, strict=True):
        each.measured_us = time
    return problem


def test_reads_folders_and_packs(folder, tmp_path):
    source = autotune.Source(folder)
    assert [name for name, _ in source.problems()] == ["one/", "two/"]
    assert [problem.name for _, problem in source.problems("tw")] == ["two"]
    packed = tmp_path / "packed.zip"
    assert source.pack(packed) == 6
    assert not any(name.endswith(".ptx") for name in zipfile.ZipFile(packed).namelist())
    again = autotune.Source(packed)
    assert [problem.key() for _, problem in again.problems()] == [
        problem.key() for _, problem in source.problems()
    ]
    assert again.read("two/01.attn") == b"1"


def test_ranks_measured_before_others():
    problem = make_measured(9.0, None, 8.0)
    assert [each.plan for each in problem.ranked()] == [PLANS[2], PLANS[0], PLANS[1]]
    problem.candidates[2].error = "wrong"
    assert [each.plan for each in problem.ranked()] == [PLANS[0], PLANS[1]]
    text = autotune.format_problem(problem)
    assert f"{PLANS[0]} (planned)" in text and f"{PLANS[2]}: wrong" in text


@pytest.mark.parametrize(
    "times, gain, plan",
    [
        ((9.0, 8.0, 8.5), 0.01, PLANS[1]),
        ((8.0, 8.5, 9.0), 0.01, None),
        ((8.05, 8.0, 9.0), 0.01, None),
        ((8.05, 8.0, 9.0), 0.0, PLANS[1]),
        ((None, 8.0, 9.0), 0.01, PLANS[1]),
        ((None, None, None), 0.01, None),
    ],
)
def test_entries_need_a_gain(times, gain, plan):
    entry = autotune.make_entry(make_measured(*times), gain)
    assert (entry and entry["plan"]) == plan


def test_merge_replaces_what_is_measured_anew(tmp_path):
    table = tmp_path / "plans.json"
    other = {**PROBLEM, "batch": 7}
    first = [make_measured(9.0, 8.0, 8.5), make_measured(9.0, 8.5, 8.0, problem=other)]
    assert autotune.merge(first, table, 0.01) == (2, 2)
    # One is measured again, and now the planner is right.
    assert autotune.merge([make_measured(7.0, 8.0, 8.0)], table, 0.01) == (1, 0)
    (entry,) = autotune.read_table(table)
    assert entry["problem"] == other and entry["plan"] == PLANS[2]
    assert entry["microseconds"] == 8.0 and entry["board"] == "a board"


def make_row(plan: str, **lengths) -> dict:
    problem = {"type": "f16", "out_type": "f16", "mask": "none", "batch": 1, "heads": 2, "kv_heads": 2,
               "queries": 64, "keys": 64, "head_dim": 64, "value_dim": 64, "features": ["lse"]}  # fmt: skip
    return {
        "chip": "sm_80",
        "problem": problem | lengths,
        "plan": plan,
        "microseconds": 1.0,
        "board": "b",
    }


def test_rows_of_one_plan_become_ranges():
    rows = [make_row("a", queries=n, keys=n) for n in (1024, 2048, 4096)]
    (joined,) = table_rows.join(rows, rows)
    assert joined["problem"]["queries"] == [1024, 4096] and joined["problem"]["batch"] == 1
    # The compiler's own plan in between, and one of another mask.
    between = make_row("", queries=2048, keys=2048)
    apart = table_rows.join([rows[0], rows[2]], [*rows[::2], between])
    assert [row["problem"]["queries"] for row in apart] == [1024, 4096]
    masked = make_row("", queries=2048, keys=2048, mask="causal")
    assert len(table_rows.join([rows[0], rows[2]], [masked])) == 1
    # Other plans and head dimensions have rows of their own.
    others = [make_row("b", queries=8192), make_row("a", head_dim=128)]
    assert len(table_rows.join([rows[0], *others], [])) == 3
    dynamic = [make_row("a", queries="dynamic"), make_row("a", queries="dynamic", batch=4)]
    (joined,) = table_rows.join(dynamic, [])
    assert joined["problem"]["queries"] == "dynamic" and joined["problem"]["batch"] == [1, 4]


@pytest.mark.parametrize(
    ("mine", "other", "meet"),
    [
        (64, 64, True), (64, 65, False), ([1, 64], 64, True), ([1, 64], [65, 128], False),
        (">= 64", [1, 64], True), ("> 64", [1, 64], False), ("any", 3, True), ("< 3", "any", True),
        ("dynamic", "dynamic", True), ("dynamic", 64, False),
    ],
)  # fmt: skip
def test_rows_overlap(mine, other, meet):
    assert table_rows.overlap(make_row("a", keys=mine), make_row("b", keys=other)) is meet


def test_merge_writes_ranges_and_keeps_them(tmp_path):
    table = tmp_path / "plans.json"
    first = [make_measured(9.0, 8.0, 7.0), make_measured(9.0, 8.0, 7.0)]
    first[1].problem = {**first[1].problem, "keys": 99999}
    assert autotune.merge(first, table, 0.01, ranges=True) == (2, 2)
    (row,) = autotune.read_table(table)
    assert row["problem"]["keys"][1] == 99999
    assert autotune.merge(first[:1], table, 0.01, ranges=True) == (1, 1)
    assert autotune.read_table(table) == [row]
    # Another winner in between takes the range away.
    assert autotune.merge([make_measured(9.0, 7.0, 8.0)], table, 0.01, ranges=True) == (1, 1)
    assert [each["problem"]["keys"] for each in autotune.read_table(table)] != [
        row["problem"]["keys"]
    ]


def test_merge_and_list_on_the_command_line(tmp_path, capsys):
    results, table = tmp_path / "results.json", tmp_path / "plans.json"
    rows = [autotune.to_json(make_measured(9.0, 8.0, 8.5))]
    autotune.write_json(results, {"version": 1, "results": rows})
    assert autotune.main(["--merge", str(results), f"--table={table}"]) == 0
    assert "1 plans of 1 problems" in capsys.readouterr().out
    assert autotune.main(["--list", str(table)]) == 0
    assert capsys.readouterr().out == "sm_80 1x2x512x64 f16 causal lse\n"


def test_describes_what_differs():
    problem = {
        **PROBLEM,
        "kv_heads": 1,
        "keys": 9,
        "value_dim": 8,
        "out_type": "f32",
        "mask": "none",
    }
    assert autotune.describe(problem) == "1x2x512x64 f16 kv_heads 1 keys 9 dv 8 to f32 lse"


@pytest.mark.parametrize(
    "index, message",
    [
        ("{", "index.json"),
        ("[]", "expected version 1"),
        ('{"version": 1}', 'expected "candidates", got none'),
        ("[" * 100000, "index.json"),
        (make_index(candidates=3), "candidates: expected a list, got 3"),
        (make_index(candidates=[3]), "candidates[0]: expected an object, got 3"),
        (make_index(candidates=[{"name": 1}]), "candidates[0]: name: expected a string, got 1"),
        (make_index(candidates=[{"name": "0"}]), 'candidates[0]: expected "plan", got none'),
        (
            make_index(candidates=[{"name": "0", "plan": "p", "estimate_us": float("nan")}]),
            "estimate_us: expected a finite number, got nan",
        ),
        (make_index(problem=None), "problem: expected an object, got None"),
        (make_index(problem={**PROBLEM, "keys": "9"}), "problem: keys: expected an integer, "),
        (
            make_index(problem={**PROBLEM, "keys": [1, 2, 3]}),
            'a pair of them or "dynamic", got [1, 2, 3]',
        ),
        (make_index(problem={**PROBLEM, "features": [1]}), "features: expected strings, got 1"),
        (make_index(chip=None), "chip: expected a string, got None"),
        (make_index(name=3), "name: expected a string, got 3"),
    ],
    ids=lambda each: "",
)
def test_refuses_folders_that_are_none(tmp_path, capsys, index, message):
    text = index if isinstance(index, str) else json.dumps(index)
    (tmp_path / "index.json").write_text(text)
    assert autotune.main([str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ") and message in error


def test_refuses_other_files(tmp_path, capsys):
    (tmp_path / "empty").mkdir()
    assert autotune.main([str(tmp_path / "empty")]) == 2
    assert "no index.json" in capsys.readouterr().err
    assert autotune.main([str(tmp_path / "none")]) == 2
    assert "expected a folder or a zip file" in capsys.readouterr().err
    (tmp_path / "x.json").write_text("{}")
    assert autotune.main(["--merge", str(tmp_path / "x.json"), "--table", "t"]) == 2
    assert "no file of results" in capsys.readouterr().err
    assert autotune.main(["--list", str(tmp_path / "x.json")]) == 2
    assert "no table of plans" in capsys.readouterr().err
    with pytest.raises(autotune.TuneError, match=r"cannot read 00\.attn"):
        autotune.Source(tmp_path).read("00.attn")
    for wrong in ([], ["a", "--list", "b"], ["--merge", "a"]):
        with pytest.raises(SystemExit):
            autotune.main(wrong)


def test_damaged_zip_files_are_errors(folder, tmp_path, capsys):
    packed = tmp_path / "packed.zip"
    autotune.Source(folder).pack(packed)
    whole = packed.read_bytes()
    # In the name and in the contents of a file.
    name = whole.index(b"one/index.json")
    damaged = [b"", b"no zip file", whole[: len(whole) // 2], whole[:-30]]
    damaged += [whole[:n] + b"xy" + whole[n + 2 :] for n in (name, name + 20, name + 60)]
    for contents in damaged:
        packed.write_bytes(contents)
        assert autotune.main([str(packed)]) == 2
        assert capsys.readouterr().err.startswith(f"error: {packed}: ")


@pytest.mark.parametrize(
    "flag, message",
    [
        ("--filter=(", "expected a regular expression, got '('"),
        ("--seconds=0", "expected seconds, above 0 and at most 3600, got '0'"),
        ("--seconds=nan", "expected seconds, above 0"),
        ("--limit=-1", "expected seconds, 0 or more, got '-1'"),
        ("--limit=nan", "expected seconds, 0 or more"),
        ("--gain=2", "expected a share from 0 to 1, got '2'"),
        ("--gain=much", "expected a share from 0 to 1, got 'much'"),
    ],
)
def test_values_of_flags_are_checked(folder, capsys, flag, message):
    with pytest.raises(SystemExit) as caught:
        autotune.main([str(folder), flag])
    assert caught.value.code == 2 and message in capsys.readouterr().err


@pytest.mark.parametrize(
    "plans, message",
    [
        ([3], "plans[0]: expected an object, got 3"),
        ([{"chip": "sm_80"}], 'plans[0]: expected "plan", got none'),
        ([{"chip": "sm_80", "plan": "p", "problem": {}}], 'problem: expected "type", got none'),
    ],
)
def test_entries_of_tables_are_checked(tmp_path, capsys, plans, message):
    (tmp_path / "t.json").write_text(json.dumps({"version": 1, "plans": plans}))
    assert autotune.main(["--list", str(tmp_path / "t.json")]) == 2
    assert message in capsys.readouterr().err


def test_files_that_cannot_be_written_are_errors(folder, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(autotune, "find_timer", lambda options: (lambda *_: None, "a board"))
    (tmp_path / "file").write_text("")
    target = tmp_path / "file" / "x"
    for flags in ([f"--json={target}"], [f"--json={tmp_path / 'r'}", f"--table={target}"]):
        assert autotune.main([str(folder), *flags]) == 2
        assert f"cannot write {target}: " in capsys.readouterr().err
    assert autotune.main([str(folder), f"--pack={target}"]) == 2
    assert f"cannot write {target}: " in capsys.readouterr().err
    (tmp_path / "none").mkdir()
    assert autotune.main([str(tmp_path / "none"), f"--pack={tmp_path / 'z'}"]) == 2
    assert "no kernels to pack" in capsys.readouterr().err
    assert not (tmp_path / "z").exists()


def test_kernels_that_fail_are_a_failure(folder, tmp_path, monkeypatch, capsys):
    def timer(problem, read):
        problem.candidates[0].measured_us = 9.0
        raise RuntimeError("an illegal memory access\nand more")

    monkeypatch.setattr(autotune, "find_timer", lambda options: (timer, "a board"))
    flags = [str(folder), f"--json={tmp_path / 'r.json'}", "--filter=one"]
    assert autotune.main(flags) == 1
    assert f"{PLANS[1]}: an illegal memory access\n" in capsys.readouterr().out
    # And remains one.
    assert autotune.main(flags) == 1
    assert "one: known" in capsys.readouterr().out


def test_interruption_keeps_results(folder, tmp_path, monkeypatch, capsys):
    def timer(problem, read):
        if problem.name == "two":
            raise KeyboardInterrupt

    monkeypatch.setattr(autotune, "find_timer", lambda options: (timer, "a board"))
    results = tmp_path / "results.json"
    assert autotune.main([str(folder), f"--json={results}"]) == 130
    assert capsys.readouterr().err == "interrupted; what was timed before is kept\n"
    assert [each.name for each in autotune.read_results(results)] == ["one"]


def test_without_a_gpu_ranks_by_estimates(folder, monkeypatch, capsys):
    monkeypatch.setattr(autotune, "find_timer", lambda options: (None, "no GPU"))
    assert autotune.main([str(folder), "--filter=one"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("not timed: no GPU; ranked by estimates\none on sm_80\n")
    assert out.index(PLANS[0]) < out.index(PLANS[1]) < out.index(PLANS[2])


@pytest.fixture
def simulator(tmp_path, monkeypatch):
    """An attn-sim that knows no estimate of kernel 01."""
    program = tmp_path / "bin" / "attn-sim"
    program.parent.mkdir()
    program.write_text(
        "#!/bin/sh\n"
        'case "$1" in\n'
        "*01.ptx) echo no estimate of this one >&2; exit 2 ;;\n"
        '*02.ptx) echo \'{"estimate": {"microseconds": 28.0}}\' ;;\n'
        '*) echo \'{"estimate": {"microseconds": 30.0}}\' ;;\n'
        "esac\n"
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    monkeypatch.setattr(autotune, "find_timer", lambda options: (None, "no GPU"))
    return program


def test_simulate_asks_attn_sim(folder, simulator, capsys):
    assert autotune.main([str(folder), "--filter=one", "--simulate"]) == 1
    out = capsys.readouterr().out
    assert out.index("28.0") < out.index("30.0")
    assert f"{PLANS[1]}: attn-sim: no estimate of this one" in out
    (folder / "one" / "index.json").write_text(json.dumps(make_index(candidates=[])))
    assert autotune.main([str(folder), "--filter=one", "--simulate"]) == 0


def test_simulate_without_attn_sim(folder, simulator, monkeypatch, tmp_path, capsys):
    simulator.write_text("#!/none\n")
    assert autotune.main([str(folder), "--simulate"]) == 2
    assert f"error: cannot run {simulator}: No such file" in capsys.readouterr().err
    simulator.write_text('#!/bin/sh\necho \'{"estimate": {"microseconds": NaN}}\'\n')
    assert autotune.main([str(folder), "--simulate"]) == 1
    assert "estimate: expected a finite number, got nan" in capsys.readouterr().out
    monkeypatch.setenv("PATH", "/none")
    assert autotune.main([str(folder), "--simulate"]) == 2
    assert "error: --simulate: no attn-sim on the PATH" in capsys.readouterr().err
    packed = tmp_path / "packed.zip"
    autotune.Source(folder).pack(packed)
    assert autotune.main([str(packed), "--simulate"]) == 2
    assert "--simulate: expected a folder, got a zip file" in capsys.readouterr().err


def test_keeps_results_and_times_nothing_twice(folder, tmp_path, monkeypatch, capsys):
    timed = []

    def timer(problem, read):
        timed.append(problem.name)
        for each in problem.candidates:
            each.measured_us = 20.0 - float(read(each.name))

    monkeypatch.setattr(autotune, "find_timer", lambda options: (timer, "a board"))
    results, table = tmp_path / "results.json", tmp_path / "plans.json"
    flags = [str(folder), f"--json={results}", f"--table={table}"]
    assert autotune.main(flags) == 0
    assert timed == ["one", "two"]
    assert "2 plans of 2 problems" in capsys.readouterr().out
    # One row covers both problems, which have the same fastest plan.
    assert [entry["plan"] for entry in autotune.read_table(table)] == [PLANS[2]]
    assert autotune.main(flags) == 0
    assert timed == ["one", "two"]
    assert "one: known" in capsys.readouterr().out
    assert autotune.main([*flags, "--again", "--filter=two"]) == 0
    assert timed == ["one", "two", "two"]
    # Another board's times are others.
    monkeypatch.setattr(autotune, "find_timer", lambda options: (timer, "another"))
    assert autotune.main([*flags, "--limit=0"]) == 1
    assert "2 problems left out: no time left" in capsys.readouterr().out
    assert autotune.main([str(folder), f"--json={results}"]) == 0
    assert timed[3:] == ["one", "two"]


def test_results_go_to_the_cache(folder, empty_cache, monkeypatch):
    monkeypatch.setattr(autotune, "find_timer", lambda options: (lambda *_: None, "a board"))
    assert autotune.main([str(folder)]) == 0
    assert len(autotune.read_results(empty_cache / "autotune.json")) == 2


def test_a_table_decides(tmp_path):
    plain = attn.compile(q="1x2x512x64xf16", causal=True, cache=False)
    table = tmp_path / "plans.json"
    entry = autotune.make_entry(make_measured(9.0, 8.0, 8.5), 0.01)
    for plan in ("#attn.split_q<block_m = 64, block_n = 32>", "#attn.split_q<block_n = 32>"):
        autotune.write_json(table, {"version": 1, "plans": [{**entry, "plan": plan}]})
        # The file's contents belong to the cache's key.
        kernel = attn.compile(q="1x2x512x64xf16", causal=True, plan_table=table)
        assert kernel.plan == plan != plain.plan
    (remark,) = [each for each in kernel.remarks if "from table" in each.message]
    assert "measured 8.0 us on a board" in remark.message
    same = attn.compile(q="1x2x512x64xf16", causal=True, shipped_plans=False)
    assert same.plan == plain.plan


def test_shipped_plans_are_plans_of_their_problems():
    for entry in autotune.read_table(SHIPPED):
        problem = entry["problem"]
        assert set(problem["features"]) <= {"lse"} and problem["mask"] in ("none", "causal")
        kernel = attn.compile(
            q="{batch}x{heads}x{queries}x{head_dim}x{type}".format(**problem),
            kv_heads=problem["kv_heads"],
            kv_len=problem["keys"],
            dv=problem["value_dim"],
            causal=problem["mask"] == "causal",
            lse="lse" in problem["features"],
            chip=entry["chip"],
            cache=False,
        )
        assert kernel.plan == entry["plan"]


def test_no_torch_is_no_error(monkeypatch):
    monkeypatch.setitem(sys.modules, "attn.tuning.timing", None)
    # Another test may have loaded it.
    monkeypatch.delattr(attn.tuning, "timing", raising=False)
    timer, why = autotune.find_timer(None)
    assert timer is None and why.startswith("no torch")
