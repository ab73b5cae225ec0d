"""The parts of the GPU benchmark that need no GPU."""

import importlib.util
import json
import pathlib
import sys
import xml.dom.minidom

import pytest

BENCHMARKS = pathlib.Path(__file__).resolve().parents[3] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))

import gpu_cells  # noqa: E402


def load(name):
    spec = importlib.util.spec_from_file_location(name.replace("-", "_"), BENCHMARKS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("rows, window", [(40, 7), (5, 9), (16, 15)])
def test_window_flops_count_pairs(rows, window):
    cell = gpu_cells.Cell(2, 3, 3, rows, 8, "f16", window=window)
    pairs = sum(i - window <= j <= i for i in range(rows) for j in range(rows))
    assert cell.flops == 4 * 2 * 3 * 8 * pairs


def test_flops_of_squares():
    dense = gpu_cells.Cell(1, 2, 2, 100, 64, "f16")
    packed = gpu_cells.Cell(1, 2, 2, 100, 64, "f16", True, lengths=(60, 40))
    assert dense.flops == 4 * 2 * 64 * 100 * 100
    assert packed.flops == 4 * 2 * 64 * (60 * 60 + 40 * 40) / 2


@pytest.mark.parametrize("rows, keys", [(5, 9), (4, 4), (3, 100)])
def test_flops_of_rows_behind_cached_keys(rows, keys):
    cell = gpu_cells.Cell(2, 3, 3, rows, 8, "f16", causal=True, kv_rows=keys, dv=4)
    pairs = sum(j <= i + keys - rows for i in range(rows) for j in range(keys))
    assert cell.flops == 2 * 2 * 3 * (8 + 4) * pairs


def test_models_have_names_and_flags_of_their_own():
    cells = gpu_cells.make_models()
    assert len({cell.model for cell in cells}) == len({cell.name for cell in cells}) == len(cells)
    assert not any(cell.is_standard for cell in cells)
    for cell in cells:
        assert gpu_cells.from_json(json.loads(json.dumps(vars(cell)))) == cell
    flags = {cell.model: cell.get_compiler_input()[0] for cell in cells}
    assert "--causal=bottom-right" in flags["llama3-8b-chunk"]
    assert {"--kv-len=16384", "--kv-heads=8"} <= set(flags["llama3-8b-chunk"])
    assert {"--window=127,0", "--sinks"} <= set(flags["gpt-oss-local"])
    assert "--dv=128" in flags["deepseek-prefill"] and "--causal" in flags["deepseek-prefill"]


def test_cells_are_what_they_say():
    cells = gpu_cells.make_standard()
    assert len(cells) == 72 == len({cell.name for cell in cells})
    assert all(cell.is_standard for cell in cells)
    assert all(cell.batch * cell.heads == (64 if cell.d == 256 else 128) for cell in cells)
    assert not any(cell.is_standard for cell in gpu_cells.make_features())
    for cell in cells + gpu_cells.make_features():
        assert gpu_cells.from_json(json.loads(json.dumps(vars(cell)))) == cell


@pytest.fixture
def report():
    rows = []
    for cell in gpu_cells.make_standard()[:20] + gpu_cells.make_features():
        own = {"plan": "#attn.split_q<>", "predicted": {"us": 100.0, "limiter": "tensor"}}
        own |= {"ms": 0.2, "tflops": 300.0, "mhz": 1900.0, "watts": 600.0}
        peers = {"fa2": {"tflops": 200.0}, "cudnn": {"tflops": 600.0}, "flex": {"error": "none"}}
        rows.append(
            {"cell": vars(cell), "name": cell.name, "own": {"planned": own}, "peers": peers}
        )
    machine = {"gpu": "GPU", "driver": "1", "torch": "2", "cudnn": 3}
    return {"machine": machine, "chip": "sm_80", "cubin": "sm_90", "seconds": 0.1, "rows": rows}


def test_report_writes_tables(report, tmp_path, monkeypatch):
    module = load("gpu-report")
    page, speed, profile = (tmp_path / name for name in ("out.json", "speed.json", "profile.json"))
    old = [
        {"id": "first", "title": "First", "notes": ["old"], "tables": []},
        {"id": "kept", "notes": ["kept"]},
    ]
    page.write_text(json.dumps({"title": "Speed", "sections": old}))
    speed.write_text(json.dumps(report))
    counters = dict.fromkeys(("tensor%", "issue%", "shared%", "xu%", "fma%", "regs", "warps"), 50.0)
    stalls = {"wait": 0.5, "selected": 0.3, "barrier": 0.2}
    name = report["rows"][0]["name"]
    profile.write_text(json.dumps([{"name": f"{name} attn", "stalls": stalls, **counters}]))
    monkeypatch.setattr(
        sys, "argv", ["gpu-report", str(speed), str(profile), "--results", str(page)]
    )
    assert module.main() == 0
    text = page.read_text()
    sections = json.loads(text)["sections"]
    assert sections[0]["title"] == "First" and sections[0]["board"] == "GPU" and "old" not in text
    assert sections[1]["notes"] == ["kept"]
    assert '["D 64", "300 (1.50, 0.50)", "300 (1.50, 0.50)"' in text
    assert '["FlashAttention-2", "1.50", "1.50 (' in text
    assert f'["`{name}`", "0.100 ms", "0.200 ms", "1900 MHz, 600 W", "tensor"]' in text
    assert '"50", "50", "50", "50", "50", "50", "50", "wait 50%, barrier 20%"]' in text


def test_report_compares_models_with_their_best_peer(report, tmp_path, monkeypatch):
    module = load("gpu-report")
    page, speed = tmp_path / "out.json", tmp_path / "speed.json"
    cells = {cell.model: cell for cell in gpu_cells.make_models()}
    rows = []
    for model, fa4 in (("siglip-so400m", 250.0), ("gpt-oss-local", 400.0)):
        peers = {"fa4": {"tflops": fa4}, "fa2": {"tflops": 100.0}, "cudnn": {"error": "none"}}
        own = {"planned": {"tflops": 300.0}}
        rows.append(
            {"cell": vars(cells[model]), "name": cells[model].name, "own": own, "peers": peers}
        )
    speed.write_text(json.dumps(report | {"rows": rows}))
    monkeypatch.setattr(sys, "argv", ["gpu-report", str(speed), "--results", str(page)])
    assert module.main() == 0
    text = page.read_text()
    assert '"729", "72", "none", "300", "-", "100", "250", "1.20"]' in text
    assert '"64", "window of 128, sinks", "300", "-", "100", "400", "0.75"]' in text
    assert "geometric mean 0.949, least 0.750, 1 of 2 below 1." in text


def test_plot_is_svg(report):
    svg = load("gpu-plot").draw(report, "f16")
    document = xml.dom.minidom.parseString(svg)
    bars = [r for r in document.getElementsByTagName("rect") if r.getElementsByTagName("title")]
    assert len(bars) == 3 * 20
    assert not document.documentElement.getElementsByTagName("image")


def test_profile_reads_counters():
    module = load("gpu-profile")
    text = (
        '==PROF== Connected\nprofiled cell attn\n"ID","Kernel Name","a.sum","b"\n'
        '"","","ns","%"\n"0","attn_fwd","1,234","50.5"\n==PROF== Disconnected\n'
    )
    assert module.read_report(text) == [{"ID": 0.0, "a.sum": 1234.0, "b": 50.5}]


def test_results_of_other_columns_lie_as_queries_do():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    make_output = load("cudnn_fp8").make_output
    rows = torch.zeros(2, 5, 3, 8).transpose(1, 2)
    for q in (rows, rows.contiguous(), rows[:, :1]):
        for dv in (8, 4):
            o = make_output(q, dv, torch.float16)
            assert o.shape == (*q.shape[:3], dv) and o.dtype == torch.float16
    assert make_output(rows, 4, torch.float16).stride() == (60, 4, 12, 1)
    assert make_output(rows.contiguous(), 4, torch.float16).stride() == (60, 20, 4, 1)
