#!/usr/bin/env python3
"""Tests of the lint and documentation scripts: each finds what it is for."""

import importlib.util
import json
import pathlib
import sys
import types
import unittest

HERE = pathlib.Path(__file__).resolve().parent


def load(name: str):
    sys.path.insert(0, str(HERE))
    spec = importlib.util.spec_from_file_location(name.replace("-", "_"), HERE / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    # Data classes look their module up.
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


class MessagesTested(unittest.TestCase):
    def setUp(self):
        self.messages = load("check-messages-tested").messages

    def pieces(self, text: str) -> list[str]:
        return [piece for _, piece in self.messages(text)]

    def test_streamed(self):
        text = 'return op.emitOpError() << "expected " << n << " heads in the key";'
        self.assertEqual(self.pieces(text), ["heads in the key"])

    def test_adjacent_literals_are_one(self):
        text = 'emitError(loc, "expected a positive "\n   "scale");'
        self.assertEqual(self.pieces(text), ["expected a positive scale"])

    def test_placeholders_cut(self):
        text = 'createStringError(formatv("unknown chip \'{0}\', known are {1}", a, b));'
        self.assertEqual(self.pieces(text), ["unknown chip '"])

    def test_statement_ends(self):
        text = 'if (emitError("short")) foo("this is another statement");'
        self.assertEqual(self.pieces(text), [])

    def test_definition_of_a_maker_is_no_message(self):
        text = 'Error makeError(T m) { return f(m); }\nauto e = makeError("a long message");'
        self.assertEqual(self.pieces(text), ["a long message"])

    def test_comment_is_no_message(self):
        self.assertEqual(self.pieces('// emitError("a long message here");'), [])


class ExpectedFlags(unittest.TestCase):
    def setUp(self):
        self.problem_of = load("check-expected-flags").problem_of

    def test_missing_flag(self):
        text = "// RUN: attn-opt %s\n// expected-error @below {{x}}\n"
        self.assertIsNotNone(self.problem_of("a.mlir", text))

    def test_flag_on_continued_line(self):
        text = "// RUN: attn-opt %s \\\n// RUN:   -verify-diagnostics\n// expected-error {{x}}\n"
        self.assertIsNone(self.problem_of("a.mlir", text))


class TestClocks(unittest.TestCase):
    def setUp(self):
        self.find = load("check-test-clocks").find_clocks

    def test_clocks_of_languages(self):
        for name, line in (
            ("a.py", "start = time.monotonic()"),
            ("a.py", "assert time.time_ns() < end"),
            ("a.py", "from time import perf_counter"),
            ("a.py", "usage = resource.getrusage(resource.RUSAGE_CHILDREN)"),
            ("a.py", "worker.communicate(timeout=20)"),
            ("ATest.cpp", "auto start = std::chrono::steady_clock::now();"),
            ("A.c", "double start = clock();"),
            ("a.test", "RUN: time attn-opt %s"),
            ("a.test", "RUN: env A=1 timeout 20 attn-opt %s | FileCheck %s"),
            ("a.test", "RUN: cat %s | timeout -k 9 2m attn-opt"),
            ("a.test", "DEFINE: %{run} = /usr/bin/time -v attn-opt"),
            ("a.mlir", "// RUN: not timeout 5s attn-opt %s"),
        ):
            self.assertEqual([number for number, _ in self.find(name, f"x\n{line}\n")], [2], line)

    def test_what_is_no_verdict(self):
        for name, text in (
            ("a.py", "time.sleep(1)\nlast_time = fake.time\n"),
            ("a.py", "run(command, timeout=300)"),
            ("a.py", "# no verdict: it is what the guard refuses\ncall(lambda: time.time())"),
            ("ATest.cpp", "double time = estimate(facts); // the clock of the machine"),
            ("a.test", "Takes some time.\nRUN: attn-opt{timeout-us=0} --compile-time\nCHECK: time 3"),
            ("a.test", "RUN: timeout 300 attn-opt %s"),
        ):
            self.assertEqual(self.find(name, text), [], text)


class IncludeGuards(unittest.TestCase):
    def test_names(self):
        wanted = load("check-include-guards").wanted_guard
        path = pathlib.PurePosixPath
        self.assertEqual(wanted(path("include/attn/Layout/A.h")), "ATTN_LAYOUT_A_H")
        self.assertEqual(wanted(path("lib/Layout/A.h")), "ATTN_LIB_LAYOUT_A_H")
        self.assertEqual(wanted(path("include/attn-c/A.h")), "ATTN_C_A_H")


class LoopLists(unittest.TestCase):
    def test_finds_lists_in_calls(self):
        find = load("check-loop-lists").find_lists
        self.assertEqual(find("int a;\nfor (auto [i, x] :\n llvm::enumerate(ArrayRef({a, b}))) {}"), [2])
        self.assertEqual(find("for (Value x : llvm::reverse(ArrayRef<Value>({a, b}))) {}"), [1])
        self.assertEqual(find("for (int x : llvm::reverse(llvm::ArrayRef<int>{1, 2})) {}"), [1])

    def test_named_lists_are_fine(self):
        find = load("check-loop-lists").find_lists
        self.assertEqual(find("for (Value x : {a, b}) use(ArrayRef({x}));"), [])
        self.assertEqual(find("for (auto x : llvm::enumerate(named)) f(ArrayRef({x}));"), [])


class OptionNames(unittest.TestCase):
    def setUp(self):
        self.module = load("check-option-names")

    def test_rows(self):
        table = 'ATTN_FACTOR(softCap, "soft_cap", "C",\nATTN_EXTENT(batch, "batch")\n#define ATTN_X(A)'
        self.assertEqual(self.module.ROW.findall(table), [("FACTOR", "softCap", "soft_cap")])

    def test_guides(self):
        missing = self.module.find_missing
        self.assertEqual(missing("docs/Python.md", "`soft_cap` and `lse=False`", ["soft_cap", "lse"]), [])
        text = "| `--no-lse`, `--soft-cap-two` |"
        problems = missing("docs/attn-compile.md", text, ["lse", "cap"])
        self.assertEqual(problems, ["docs/attn-compile.md: expected a word on option cap"])

    def test_spellings(self):
        pattern = self.module.spellings("softCap", "soft_cap")
        for text in ("soft_cap = 1", "--soft-cap", "facts.softCap", "op.getSoftCapAttr()"):
            self.assertTrue(pattern.search(text), text)
        for text in ("soft_caps", "a softcap", "mySoftCap"):
            self.assertFalse(pattern.search(text), text)


class Mutants(unittest.TestCase):
    def test_expressions(self):
        module = load("mutate-source")

        def is_whole(old: str, new: str, at: str) -> bool:
            return module.Mutant(1, "x", "a.cpp", old, new, at, [], False).is_expression()

        self.assertTrue(is_whole("f(row)", "f(last)", "x = f(row);"))
        self.assertTrue(is_whole("a::eq", "a::ne", "f(a::eq, b)"))
        for old, new, at in (("row)", "last)", "x = f(row);"), ("eq", "ne", "f(a::eq, b)"),
                             ("size()", "end()", "x.size() > 1"), ("a", "f(a", "x = a;"),
                             ("a, b", "b, a", "f(a, b)"), ("f();", "", "f();")):  # fmt: skip
            self.assertFalse(is_whole(old, new, at), old)


class FunctionLength(unittest.TestCase):
    def setUp(self):
        self.functions = load("check-function-length").functions

    def lengths(self, text: str) -> dict[str, int]:
        return {name: lines for name, _, lines in self.functions(text)}

    def test_functions_and_methods(self):
        text = "namespace a {\nint A::f(int x) const {\n  if (x) {\n  }\n}\n"
        text += "struct B {\n  B() : x{1} {\n  }\n  int x = {0};\n};\n}\n"
        self.assertEqual(self.lengths(text), {"A::f": 4, "B": 2})

    def test_lambdas_belong_to_their_function(self):
        text = "void f() {\n  auto g = [](int x) {\n    return x;\n  };\n}\n"
        self.assertEqual(self.lengths(text), {"f": 5})

    def test_tables_comments_and_literals(self):
        text = "int t[] = {\n1,\n2\n};\n// f() {\nauto s = \"{\";\nenum E { A };\n"
        self.assertEqual(self.lengths(text), {})

    def test_operators_and_templates(self):
        text = "template <typename T>\nbool operator==(T a, T b) {\n  return a;\n}\n"
        self.assertEqual(self.lengths(text), {"operator==": 3})


class IncludeCircles(unittest.TestCase):
    def setUp(self):
        self.module = load("check-include-circles")

    def test_pairs_are_one(self):
        graph = {"include/attn/A/X.h": set(), "lib/A/X.cpp": {"include/attn/A/X.h", "lib/A/Y.h"}}
        graph["lib/A/Y.h"] = {"include/attn/A/X.h"}
        merged = self.module.merged(graph, self.module.unit)
        self.assertEqual(self.module.circles(graph), [])
        self.assertEqual(self.module.circles(merged), [["A/X", "A/Y"]])

    def test_folders(self):
        graph = {"lib/A/X.cpp": {"include/attn/B/Y.h"}, "lib/B/Z.cpp": {"lib/A/X.h"}}
        rooms = self.module.merged(graph, self.module.room)
        self.assertEqual(self.module.circles(rooms), [["lib/A", "lib/B"]])

    def test_imports(self):
        text = "from .. import a, b\ndef f():\n    from .c import d\nfrom ..p.e import x\n"
        text += "from ..p import (\n    g,\n)\n"
        known = {"attn/a.py", "attn/q/c.py", "attn/p/e.py", "attn/p/g.py", "attn/q/d.py"}
        found = self.module.find_imports("attn/q/here.py", text, known)
        self.assertEqual(found, known - {"attn/q/d.py"})

    def test_packages(self):
        up = {"python/attn/launch/x.py": {"python/attn/kernel.py", "python/attn/record.py"}}
        self.assertEqual(len(self.module.check_packages(up)), 1)
        down = {"python/attn/serving/x.py": {"python/attn/kernel.py", "python/attn/runtime.py"}}
        self.assertEqual(self.module.check_packages(down), [])
        self.assertEqual(len(self.module.check_packages({"python/attn/stray.py": set()})), 1)

    def test_packages_are_small(self):
        many = {f"python/attn/launch/x{n}.py": set() for n in range(41)}
        self.assertEqual(len(self.module.check_packages(many)), 1)


class SuitePlugin(unittest.TestCase):
    def test_fewer_names_than_items(self):
        """A sample of more names than there are ends."""
        if not all(importlib.util.find_spec(name) for name in ("pytest", "torch")):
            self.skipTest("needs pytest and torch")
        plugin = load("suite_plugin")
        options = {"--suite-sample": 3, "--suite-seed": 1}
        items = [types.SimpleNamespace(nodeid="test[1]") for _ in range(5)]
        plugin.pytest_collection_modifyitems(types.SimpleNamespace(getoption=options.get), items)
        self.assertEqual(len(items), 5)


class ServingPages(unittest.TestCase):
    """A new option of a problem is an option of all calls that do not lack it by name."""

    def setUp(self):
        self.module = load("serving_pages")
        row = {"name": "heat", "kind": "factor", "doc": "Factor of --q"}
        regions = [{"name": n, "kind": "region", "doc": "A region"} for n in ("score_mod", "mask_mod", "out_mod")]
        kinds = {"causal": "align", "out_scale": "factor", "scale": "factor", "layout": "order"}
        kinds |= {"out_type": "type", "window": "window", "softcap": "factor", "kv_splits": "count"}
        kinds |= {"run_keys": "count", "selected": "switch", "expected_keys": "numbers"}
        some = [{"name": name, "kind": kind, "doc": ""} for name, kind in kinds.items()]
        self.rows = [*some, row, *regions]

    def test_calls(self):
        text = self.module.make_serving_module(self.rows)
        compile(text, "serving_signatures.py", "exec")
        self.assertEqual(text.count("    heat: float | None = None,\n"), 5)
        self.assertEqual(text.count("heat: Factor of q."), 5)

    def test_settings(self):
        text = self.module.make_settings_module(self.rows)
        compile(text, "settings_table.py", "exec")
        self.assertIn('None if heat is None else readers.to_factor("heat", heat)', text)
        schema = self.module.write_schema("decode", self.module.CALLS["decode"], self.rows)
        self.assertTrue(schema.endswith(", float? heat=None"))


class OpNames(unittest.TestCase):
    def setUp(self):
        self.problems_of = load("check-op-names").problems_of

    def test_passes_ask(self):
        text = "if (isa<WgmmaOp>(op))\n  TmaWaitOp::create(b);"
        self.assertEqual(len(self.problems_of("lib/Analysis/X.cpp", text)), 2)

    def test_schedules_create(self):
        text = "TmaLoadOp::create(b);\nisa<TmaLoadOp>(op);"
        self.assertEqual(len(self.problems_of("lib/Schedule/X.cpp", text)), 1)

    def test_channel_users_are_created(self):
        text = "ChannelAcquireOp::create(b);\ncast<ChannelAcquireOp>(op);"
        self.assertEqual(len(self.problems_of("lib/Dialect/Attn/Transforms/X.cpp", text)), 1)

    def test_homes(self):
        for path in ("Dialect/Attn/IR/X.cpp", "Dialect/Attn/Transforms/LowerTiles/Wgmma.cpp"):
            self.assertEqual(self.problems_of(f"lib/{path}", "isa<WgmmaOp>(op)"), [])
        other = "lib/Dialect/Attn/Transforms/LowerTiles/Rows.cpp"
        self.assertEqual(len(self.problems_of(other, "isa<WgmmaOp>(op)")), 1)

    def test_other_names(self):
        text = "NVVM::MmaOp op; // a WgmmaOp\nMmaOperand x;"
        self.assertEqual(self.problems_of("lib/Target/X.cpp", text), [])


class Whitespace(unittest.TestCase):
    def test_all_kinds(self):
        problems = load("check-whitespace").problems_of("a", "x \n\ty\nz")
        self.assertEqual(len(problems), 3)


class Links(unittest.TestCase):
    def test_anchors(self):
        anchors = load("check-links").anchors_of("# A b\n```\n# no\n```\n## `x` (y)\n")
        self.assertEqual(anchors, {"a-b", "x-y"})


class BannedWords(unittest.TestCase):
    def test_patterns_fire_and_do_not_find_themselves(self):
        import re

        module = load("check-banned-words")
        samples = ["TO" + "DO: x", "cd /wor" + "k/a", "/ro" + "ot/x", "ses" + "sion", "shared/" + "snippets", "py" + "pi.org"]
        for (pattern, _), sample in zip(module.BANNED, samples):
            self.assertRegex(sample, pattern)
        own_text = (HERE / "check-banned-words.py").read_text(encoding="utf-8")
        for pattern, _ in module.BANNED:
            self.assertIsNone(re.search(pattern, own_text), pattern)


class Docs(unittest.TestCase):
    def test_examples(self):
        docs = load("doc_examples")
        example = docs.examples("# Op\n\n```mlir\nfunc.func @f()\n```\n")[0]
        self.assertEqual((example.title, example.code), ("Op", "func.func @f()\n"))

    def test_doctest(self):
        docs = load("doc_examples")
        text = "// RUN: attn-opt %s --attn-x | FileCheck %s\n\n// CHECK: func @f\nfunc.func @f()\n"
        page = docs.doctest_page(text, "f.mlir")
        self.assertIn("attn-opt f.mlir --attn-x", page)
        self.assertIn("func @f", page)
        self.assertNotIn("CHECK", page)


class PlanParameters(unittest.TestCase):
    def setUp(self):
        self.module = load("check-plan-parameters")

    def test_names(self):
        text = '\ndef Attn_XPlan : Attn_Plan<Attn_Dialect, "XPlan", "split_x"> {\n  I<"">:$block_n\n'
        self.assertEqual(self.module.find_parameters(text), ["split_x.block_n"])

    def test_who_takes(self):
        taken = self.module.is_taken
        self.assertTrue(taken("split_x.block_n", {"SplitX": "p.blockN = 64;"}, ""))
        self.assertTrue(taken("split_x.block_n", {"Choice": "p.blockN = 64;"}, ""))
        self.assertTrue(taken("split_x.block_n", {}, "#attn.split_x<block_n = 64>"))
        self.assertFalse(taken("split_x.block_n", {"SplitX": "p.blockN == 64"}, ""))
        self.assertFalse(taken("split_x.block_n", {"Other": "p.blockN = 64;"}, ""))


class Rationale(unittest.TestCase):
    PAGE = "# One\n\n## Problem\n\nA.\n\n## Choice\n\nB.\n\n## Rejected\n\nC.\n"

    def problems(self, page: str) -> list[str]:
        return load("check-rationale").problems_of("a.md", page)

    def test_essays(self):
        self.assertEqual(self.problems(self.PAGE), [])
        self.assertEqual(len(self.problems(self.PAGE + "word " * 800)), 1)

    def test_headings(self):
        self.assertEqual(len(self.problems(self.PAGE.replace("Choice", "Decision"))), 1)
        self.assertEqual(len(self.problems(self.PAGE + "## Evidence\n")), 1)
        self.assertEqual(len(self.problems(self.PAGE.replace("# One", "One", 1))), 1)


class Results(unittest.TestCase):
    def test_markdown_becomes_sections(self):
        results = load("results_util")
        page = "# One\n\nSaid of it:\n\n| a | b \\| c |\n|---|---|\n| 1 | 2 |\n\n## Two\n\n- an\n  item\n"
        first, second = results.parse_markdown(page)
        self.assertEqual((first["id"], first["notes"], second["notes"]), ("one", [], ["- an item"]))
        table = first["tables"][0]
        self.assertEqual(table, {"caption": "Said of it:", "columns": ["a", "b | c"], "rows": [["1", "2"]]})
        self.assertEqual(results.write_table(table), "| a | b \\| c |\n|---|---|\n| 1 | 2 |\n")
        file = {"title": "T", "sections": [first, second]}
        self.assertEqual(json.loads(results.to_text(file)), file)

    def test_blocks_of_pages(self):
        lint = load("gen-results")
        mark = "<!-- generated: begin (scripts/gen-results.py hardware against-float64 0 q, o,problems) -->\n"
        text = lint.with_blocks(f"a\n{mark}old\n<!-- generated: end -->\nb\n")
        self.assertIn("| q, o | problems |\n", text)
        self.assertNotIn("old", text)
        self.assertEqual(lint.with_blocks(text), text)
        with self.assertRaises(ValueError):
            lint.write_block("hardware against-float64 0 no such column")

    def test_digits(self):
        lint = load("gen-results")
        self.assertEqual(lint.count_digits("# 1\n\nOne word. It took 3 ms. `f16` is code.\n\n| 5 |\n"), (3, 1))


class Prose(unittest.TestCase):
    def setUp(self):
        self.lint = load("check-prose")

    def test_finds_long_prose(self):
        long = "word " * 30
        self.assertEqual(len(self.lint.problems("a.md", f"# {long}\n\n{long}\n")), 1)
        for page in (f"| {long} |", f"```\n{long}\n```", "[a](" + "x" * 120 + ")", "`" + long + "`"):
            self.assertEqual(self.lint.problems("a.md", page), [], page)

    def test_cells_are_short(self):
        cells = self.lint.long_cells
        self.assertEqual(cells("a.md", "| " + "word " * 20 + "| [a](b) |\n"), [])
        self.assertEqual(len(cells("a.md", "| a | " + "word " * 21 + "|\n")), 1)

    def test_wraps_paragraphs_and_items(self):
        long = "word " * 30
        fixed = self.lint.fix(f"- {long}\n  end\n- next\n\nshort\nlines\n")
        self.assertEqual(self.lint.problems("a.md", fixed), [])
        self.assertIn("\n  word", fixed)
        self.assertTrue(fixed.endswith("\n- next\n\nshort\nlines\n"))

    def test_wraps_without_making_lists_or_breaking_code(self):
        text = "a" * 89 + " - b " + "c" * 20 + " `d " + "e" * 60 + " f`"
        fixed = self.lint.fix(text)
        self.assertNotIn("\n- ", fixed)
        self.assertIn("`d " + "e" * 60 + " f`", fixed)


class IRExcerpts(unittest.TestCase):
    FILE = ["%k_3 = attn.x %arg4, %c1_i32 : <2>", "%7 = attn.y %k_3", "gpu.return"]

    def problems(self, *lines: str) -> list[str]:
        module = load("check-ir-excerpts")
        page = "\n".join(["```mlir", *lines, "```", ""])
        return module.check(page, [module.normalize(line) for line in self.FILE])[0]

    def test_names_and_starts(self):
        self.assertEqual(self.problems("%k = attn.x %map, %one ...", "  %s = attn.y %k"), [])
        self.assertEqual(self.problems("// why", "%k = attn.x %a, %b : <2>", "...", "gpu.return"), [])

    def test_what_is_not_there(self):
        for lines in (
            ["%v = attn.x %a, %b : <2>"],
            ["%k = attn.x %a, %b"],
            ["%k = attn.x %a, %b ...", "gpu.return"],
            ["gpu.return", "...", "%s = attn.y %k"],
        ):
            self.assertEqual(len(self.problems(*lines)), 1, lines)


class TestNames(unittest.TestCase):
    def setUp(self):
        self.lint = load("check-test-names")

    def test_families(self):
        families = {"tma", "warp-specialize"}
        for good in ("tma-ops", "tma-boxes-invalid", "warp-specialize-ops"):
            self.assertIsNone(self.lint.family_problem(good, families), good)
        self.assertIn("starts with a family", self.lint.family_problem("tmas-ops", families))
        self.assertIn("ends with", self.lint.family_problem("tma-boxes", families))
        self.assertIn("kebab", self.lint.family_problem("tma_boxes-ops", families))

    def test_passes(self):
        passes = {"plan", "lower-tiles"}
        for good in ("plan", "plan-invalid", "lower-tiles-hopper-invalid"):
            self.assertIsNone(self.lint.pass_problem(good, passes), good)
        self.assertIsNotNone(self.lint.pass_problem("attn-plan", passes))
        self.assertIsNotNone(self.lint.pass_problem("lower", passes))

    def test_ops_of_a_family(self):
        td = 'def A : Attn_Op<"x.y", [T]> {\nclass B<string m> : Attn_Op<"turn." # m,\ndef C : B<"go"> {'
        self.assertEqual(self.lint.op_names(td), ["x.y", "turn.go"])


class Excerpts(unittest.TestCase):
    def problems(self, fence: str) -> list[str]:
        module = load("check-doc-excerpts")
        page = f"From\n   [a file](../../scripts/common.sh):\n\n   ```\n{fence}\n   ```\n"
        matches = list(module.FENCE.finditer(page))
        self.assertEqual(len(matches), 1)
        return module.check("docs/HowTo/page.md", page, matches[0])

    def test_lines_in_order(self):
        self.assertEqual(self.problems("   die() {\n     printf 'error: %s\\n' \"$*\" >&2"), [])
        self.assertEqual(self.problems("   die() {\n   ...\n     exit 1"), [])

    def test_what_is_not_there(self):
        self.assertIn("does not hold 'live() {'", self.problems("   live() {")[0])
        self.assertEqual(len(self.problems("   die() {\n     exit 1")), 1)


class AwaitedProducts(unittest.TestCase):
    """A wgmma that moves behind the end of its group is in the next one."""

    def setUp(self):
        self.is_awaited_as_before = load("hold-ptx").is_awaited_as_before

    def awaited(self, *behind: str) -> bool:
        lines = ["wgmma.commit_group.sync.aligned;", "wgmma.mma_async.sync.aligned.m64n64k16;", *behind]
        return self.is_awaited_as_before(lines, 1)

    def test_a_wait_for_all_groups(self):
        self.assertTrue(self.awaited("wgmma.commit_group.sync.aligned;", "wgmma.wait_group.sync.aligned 0;"))

    def test_a_wait_that_leaves_the_next_group(self):
        first, second = "wgmma.wait_group.sync.aligned 1;", "wgmma.wait_group.sync.aligned 0;"
        self.assertFalse(self.awaited("wgmma.commit_group.sync.aligned;", first, second))

    def test_a_wait_for_neither_group_is_no_wait(self):
        one, last = "wgmma.wait_group.sync.aligned 2;", "wgmma.wait_group.sync.aligned 0;"
        self.assertTrue(self.awaited("wgmma.commit_group.sync.aligned;", one, last))

    def test_no_wait(self):
        self.assertFalse(self.awaited("wgmma.commit_group.sync.aligned;"))

    def test_a_wait_in_front_of_the_next_group(self):
        self.assertFalse(self.awaited("wgmma.wait_group.sync.aligned 0;", "wgmma.commit_group.sync.aligned;"))


if __name__ == "__main__":
    unittest.main()
