"""What instrumented kernels report, without a GPU."""

import contextlib
import ctypes
import json
import struct

import attn
import pytest
from attn import bundle, runtime
from attn.launch import cuda_driver, device_reports
from test_record import RECORD

SITES = [
    {
        "check": check,
        "op": "attn.mbarrier.wait",
        "location": location,
        "kernel": "attn_fwd",
        "partition": "consumer",
        "barrier": "k.producer",
        "buffer": "k",
        "slots": 3,
    }
    for check, location in [("hang", "a.mlir:7:3"), ("slip", "a.mlir:9:3"), ("slip", "")]
]


def make(records):
    words = [[0] * 8 for _ in range(1 + len(SITES))]
    for index, record in records.items():
        words[1 + index][: len(record)] = record
    return b"".join(struct.pack("<4I2i2I", *each) for each in words)


def test_nothing():
    assert device_reports.parse(make({}), SITES) == []


def test_as_mlir_prints():
    sites = device_reports.read_sites(json.dumps(SITES).encode() + b"\0\0")
    (report,) = device_reports.parse(make({1: [5, 2, 3, 1, 4, 6, 1]}), sites)
    assert (report.check, report.cta, report.warp, report.slot) == ("slip", 2, 3, 1)
    assert (report.expected, report.seen, report.count) == (4, 6, 5)
    assert str(report) == (
        "a.mlir:9:3: error: slip: warp 3 of CTA 2 sees phase 4 of 'k.producer'[1] when 6 phases "
        "are complete\n"
        "a.mlir:7:3: note: the last signal\n"
        "a.mlir:9:3: note: 5 times in all"
    )


def test_without_a_place():
    (report,) = device_reports.parse(make({2: [1, 0, 0, 0, -1, 1, 0]}), SITES)
    assert str(report) == (
        "attn.mbarrier.wait of partition 'consumer': error: slip: warp 0 of CTA 0 sees phase -1 "
        "of 'k.producer'[0] when 1 phases are complete"
    )


@pytest.mark.parametrize("check", device_reports._TEXTS)
def test_all_checks(check):
    sites = [dict(SITES[0], check=check)]
    (report,) = device_reports.parse(make({0: [1, 0, 4, 2, 5, 3, 0]}), sites)
    assert "warp 4 of CTA 0" in report.text
    assert "{" not in report.text


def test_take_reports(monkeypatch):
    """The runtime reads the variables, clears the records and keeps the seed."""
    sites = json.dumps(SITES[:1]).encode() + b"\0"
    filled = struct.pack("<8I", 9, *[0] * 7) + struct.pack("<4I2i2I", 2, 0, 1, 0, 3, 5, 0, 0)
    memory = {0x1000: bytearray(filled), 0x2000: bytearray(sites)}

    class Driver:
        @staticmethod
        def cuCtxSynchronize():
            return 0

        @staticmethod
        def cuMemcpyDtoH_v2(target, address, size):
            ctypes.memmove(target, bytes(memory[address]), size)
            return 0

        @staticmethod
        def cuMemcpyHtoD_v2(address, source, size):
            start = address - 0x1000
            memory[0x1000][start : start + size] = ctypes.string_at(source, size)
            return 0

    class Module:
        @staticmethod
        def find_variable(name):
            address = {"attn_reports": 0x1000, "attn_report_sites": 0x2000}[name]
            return address, len(memory[address])

    image = bundle.Image("cubin", "sm_80", b"with attn_reports inside")
    kernel = runtime.load(bundle.write(RECORD, (image,)))
    assert kernel.take_reports() == []
    monkeypatch.setattr(cuda_driver, "load", lambda: Driver)
    monkeypatch.setattr(cuda_driver, "get_device", lambda ordinal: contextlib.nullcontext())
    kernel._checked[0] = Module
    (report,) = kernel.take_reports()
    assert report.text == (
        "warp 1 of CTA 0 waits for phase 3 of 'k.producer'[0], which has 5 signals, and gives up"
    )
    assert kernel.take_reports() == []
    kernel.set_seed(11)
    assert memory[0x1000] == struct.pack("<16I", 11, *[0] * 15)


def test_capture(monkeypatch):
    """A launch that is captured does not wait; one behind it prints what both have found."""
    kernel = runtime.load(bundle.write(RECORD, (bundle.Image("cubin", "sm_80", b"attn_reports"),)))
    with pytest.raises(
        attn.ArgumentError,
        match="set_seed: expected an instrumented kernel that was launched on device 0",
    ):
        kernel.set_seed(1)
    launches, reads = [], []
    kernel._checked[0] = object()
    monkeypatch.setattr(cuda_driver, "is_capturing", lambda stream: stream == 5)
    monkeypatch.setattr(
        kernel, "prepare", lambda *_: lambda addresses, stream: launches.append(stream)
    )
    monkeypatch.setattr(kernel, "take_reports", lambda ordinal: reads.append(ordinal) or [])
    kernel(stream=5)
    assert launches == [5] and reads == []
    kernel(stream=6)
    assert launches == [5, 6] and reads == [0]
