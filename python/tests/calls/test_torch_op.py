"""The torch operator without a GPU: shapes, tracing and errors; its kernel on the
CPU is a float64 reference, and the driver of the launch tests a stand-in."""

import types

import attn
import pytest
from attn.calls import attention_kernels, shared_kernels
from attn.launch import cuda_driver, device_tensors
from attn.options.problem_table import CALL_NAMES
from attn.tensors import block_lists
from conftest import count_calls
from test_runtime import FakeDevice, FakeFunction, FakeModule

torch = pytest.importorskip("torch", reason="torch is not installed")

from attn import torch_op  # noqa: E402


def compute(
    q, k, v, sinks=None, cu_seqlens_q=None, cu_seqlens_k=None, captures=None, *options, **_
):  # fmt: skip
    """What the operator computes, with the options that these tests use."""
    if cu_seqlens_q is not None:
        o = torch.zeros(*q.shape[:2], v.shape[2], dtype=q.dtype)
        log = torch.zeros(q.shape[1], q.shape[0])
        for n in range(len(cu_seqlens_q) - 1):
            rows = slice(int(cu_seqlens_q[n]), int(cu_seqlens_q[n + 1]))
            columns = slice(int(cu_seqlens_k[n]), int(cu_seqlens_k[n + 1]))
            parts = (q[None, rows], k[None, columns], v[None, columns])
            part, part_log = compute(*[each.transpose(1, 2) for each in parts])
            o[rows], log[:, rows] = part[0].transpose(0, 1), part_log[0]
        return o, log
    group = q.shape[1] // k.shape[1]
    keys, values = (each.double().repeat_interleave(group, 1) for each in (k, v))
    scores = q.double() @ keys.transpose(-1, -2) / q.shape[-1] ** 0.5
    if "top-left" in options:
        scores = scores.masked_fill(torch.ones_like(scores).triu(1).bool(), -torch.inf)
    for capture in captures or ():
        scores = scores + capture.double()[None, :, None, None]
    o = torch.softmax(scores, -1) @ values
    # Laid out as the operator promises.
    if attention_kernels.is_sequence_major(q.shape, q.stride()):
        o = o.transpose(1, 2).contiguous().transpose(1, 2)
    return o.to(q.dtype), torch.logsumexp(scores, -1).float()


def compute_out(*operands, o, lse=None, **named):
    result, log = compute(*operands, **named)
    o.copy_(result)
    if lse is not None:
        lse.copy_(log)


@pytest.fixture
def on_cpu():
    """The operator computes the reference on the CPU."""
    with torch.library._scoped_library("attn", "IMPL") as library:
        library.impl("attention", lambda *given, **named: compute(*given, **named)[0], "CPU")
        library.impl("attention_lse", compute, "CPU")
        library.impl("attention_out", compute_out, "CPU")
        yield


def make(*shape, dtype=torch.float16):
    return torch.randn(*shape, dtype=torch.float32).to(dtype)


#: Arguments that saved graphs and callers give by position, in the order that they had when the
#: operators were published. None may move; new ones are given by name.
PUBLISHED = [
    "q",
    "k",
    "v",
    "sinks",
    "cu_seqlens_q",
    "cu_seqlens_k",
    "captures",
    "max_seqlen_q",
    "causal",
    "window",
    "softcap",
    "scale",
    "score_mod",
    "mask_mod",
]


@pytest.mark.parametrize("name", ["attention", "attention_lse", "attention_out"])
def test_published_arguments_keep_their_places(name):
    arguments = getattr(torch.ops.attn, name).default._schema.arguments
    assert [each.name for each in arguments if not each.kwarg_only] == PUBLISHED


def test_arguments_by_position_and_by_name():
    """Every argument reaches the option of its name."""
    q = make(1, 2, 16, 32)
    values = {
        "causal": "top-left",
        "window": "3,-1",
        "softcap": 2.0,
        "scale": 0.5,
        "out_scale": 3.0,
    }
    texts = {"score_mod": "a", "mask_mod": "b", "out_mod": "c"}
    given = torch_op._Arguments(
        *[q] * 3,
        *[None] * 4,
        9,
        *list(values.values())[:4],
        "a",
        "b",
        out_scale=3.0,
        out_mod="c",
        block_size=[4, 8],
    )
    options = attention_kernels.Options(*torch_op._make_options(given, True))
    assert dict(zip(CALL_NAMES, options.call, strict=True)) == values
    assert {name: getattr(options, name) for name in texts} == texts
    assert (options.lse, options.max_seqlen_q, options.block_size) == (True, 9, (4, 8))


SAMPLES = {
    "dense": lambda: ((make(2, 4, 16, 32), make(2, 2, 24, 32), make(2, 2, 24, 64)), {}),
    "lse": lambda: ((make(1, 2, 16, 32),) * 3, {"causal": "top-left"}),
    "bnhd": lambda: ((make(2, 16, 4, 32).transpose(1, 2),) * 3, {}),
    "bf16": lambda: ((make(1, 2, 16, 32, dtype=torch.bfloat16),) * 3, {"scale": 0.5}),
    "captures": lambda: (
        (*[make(1, 2, 16, 32)] * 3, *[None] * 3, [torch.randn(2)]),
        {"score_mod": "text"},
    ),
    "packed": lambda: (
        (*[make(20, 2, 32)] * 3, None, *[torch.tensor([0, 5, 20], dtype=torch.int32)] * 2),
        {"max_seqlen_q": 15},
    ),
}


@pytest.mark.parametrize("name", SAMPLES)
def test_opcheck(on_cpu, name):
    arguments, options = SAMPLES[name]()
    for operator in (torch.ops.attn.attention, torch.ops.attn.attention_lse):
        torch.library.opcheck(operator.default, arguments, options)


def test_opcheck_out(on_cpu):
    arguments, _ = SAMPLES["dense"]()
    o, lse = make(2, 4, 16, 64), torch.empty(2, 4, 16)
    torch.library.opcheck(torch.ops.attn.attention_out.default, arguments, {"o": o, "lse": lse})


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_compile(on_cpu, backend):
    slopes = torch.tensor([1.0, -1.0])
    bias = attn.score_mod(lambda score, b, h, q_idx, kv_idx: score + slopes[h])

    def layer(x, weight):
        q, k, v = (x @ weight).unflatten(-1, (3, 2, 32)).permute(2, 0, 3, 1, 4)
        o, lse = attn.attention(q * 2, k, v, causal=True, lse=True)
        return attn.attention(q, k, o, score_mod=bias).flatten(2), lse

    compiled = torch.compile(layer, fullgraph=True, backend=backend)
    for rows in (16, 40, 56):
        x, weight = make(2, rows, 8, dtype=torch.float32), make(8, 192, dtype=torch.float32)
        x, weight = x.half(), weight.half()
        for got, wanted in zip(compiled(x, weight), layer(x, weight), strict=True):
            torch.testing.assert_close(got, wanted)


def test_numbers_that_torch_does_not_know(on_cpu):
    """Of numbers that differ from call to call torch traces symbols."""

    def attend(q, ends, most, scale):
        options = {"cu_seqlens_q": ends, "cu_seqlens_k": ends, "max_seqlen_q": most}
        return attn.attention(q, q, q, scale=scale, **options)

    torch._dynamo.reset()
    compiled = torch.compile(attend, fullgraph=True, dynamic=True, backend="eager")
    for rows in (20, 21, 33):
        ends = torch.tensor([0, 5, rows], dtype=torch.int32)
        given = make(rows, 2, 32), ends, rows - 5, 1 / rows
        torch.testing.assert_close(compiled(*given), attend(*given))


def test_lines_of_a_graph(on_cpu):
    """Each call is one line, which torch 2.11 writes into a comment of the code that it compiles."""
    bias = attn.score_mod(lambda score, b, h, q_idx, kv_idx: score * 2 + q_idx)
    lines = []

    def compile_graph(module, inputs):
        lines.extend(str(node.format_node()) for node in module.graph.nodes)
        return module

    q = make(1, 1, 16, 32)
    torch.compile(lambda: attn.attention(q, q, q, score_mod=bias), backend=compile_graph)()
    assert any("arith.mulf" in each for each in lines) and "\n" not in "".join(lines)


def test_compile_with_outputs(on_cpu):
    def layer(q, o, lse):
        attn.attention(q, q, q, out=o, lse=lse)
        return o + 1

    q, o, lse = make(1, 2, 16, 32), make(1, 2, 16, 32), torch.empty(1, 2, 16)
    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
    result = compiled(q, o, lse)
    torch.testing.assert_close(result, o + 1)
    torch.testing.assert_close(o, compute(q, q, q)[0])
    torch.testing.assert_close(lse, compute(q, q, q)[1])


def test_functions_are_traced_before_compilation(on_cpu):
    def layer(q):
        return attn.attention(q, q, q, score_mod=lambda s, b, h, i, j: s)

    with pytest.raises(
        Exception, match=r"expected what attn.score_mod\(function\) gives|ArgumentError"
    ):
        torch.compile(layer, fullgraph=True, backend="eager")(make(1, 2, 16, 32))


def test_gradients_are_refused(driver):
    q = make(1, 2, 16, 32).requires_grad_()
    with pytest.raises(attn.ArgumentError, match="attention has no backward pass: expected"):
        attn.attention(q, q, q)
    detached, weight = q.detach(), torch.ones(2, requires_grad=True)
    for options in (
        {"sinks": weight},
        {"score_mod": lambda score, b, h, i, j: score + weight[h]},
        {"mask_mod": attn.mask_mod(lambda b, h, i, j: weight[h] > 0)},
    ):
        with pytest.raises(attn.ArgumentError, match="attention has no backward pass"):
            attn.attention(detached, detached, detached, **options)
    with pytest.raises(attn.ArgumentError, match="attention has no backward pass"):
        torch_op._run(q, q, q)
    with torch.no_grad():
        assert not attn.attention(q, q, q).requires_grad
    assert attn.attention(*[q.detach()] * 3).shape == q.shape


def test_gradients_are_refused_in_compiled_code(on_cpu):
    q = make(1, 2, 16, 32).requires_grad_()
    with pytest.raises(Exception, match="no backward pass|ArgumentError"):
        torch.compile(lambda q: attn.attention(q, q, q), fullgraph=True, backend="eager")(q)


def test_wrong_tensors():
    q = make(1, 2, 16, 32)
    with pytest.raises(attn.ArgumentError, match='"k": expected a torch tensor as q, got int'):
        attn.attention(q, 3, q)
    with pytest.raises(attn.ArgumentError, match="stream: expected none, since torch tensors"):
        attn.attention(q, q, q, stream=3)
    for options in ({"out": q, "lse": True}, {"lse": torch.empty(1, 2, 16)}):
        with pytest.raises(attn.ArgumentError, match="expected a tensor to write to, as the other"):
            attn.attention(q, q, q, **options)
    with pytest.raises(attn.ArgumentError, match="of rank 4, got 3 and 3"):
        attn.attention(*[torch.empty(2, 16, 32, device="meta")] * 3)


class Ampere(FakeDevice):
    """Its kernels take addresses alone, no tensor maps."""

    major = 8


@pytest.fixture
def driver(monkeypatch):
    """Tensors of the CPU pass for the GPU's, on a stand-in driver."""

    def view(name, tensor, device):
        dtype = device_tensors._TORCH_DTYPES[str(tensor.dtype)]
        address = tensor.data_ptr()
        return attn.record.TensorView(dtype, tuple(tensor.shape), tensor.stride(), address, 0)

    monkeypatch.setattr(device_tensors, "view", view)
    monkeypatch.setattr(torch_op, "_is_on_host", lambda tensor: False)
    monkeypatch.setattr(cuda_driver, "get_device", lambda ordinal: Ampere())
    monkeypatch.setattr(cuda_driver, "Function", FakeFunction)
    monkeypatch.setattr(cuda_driver, "Module", FakeModule)
    monkeypatch.setattr(torch_op, "_get_stream", lambda ordinal: 55)
    attention_kernels.clear()
    yield
    # No other test may find calls for tensors of the CPU.
    attention_kernels.clear()


def get_launch():
    import struct

    (kernel,) = shared_kernels._loaded.values()
    launch = kernel._functions[0][0].launches[-1]
    return launch[4], [struct.unpack("<Q", raw)[0] for raw in launch[5]], kernel.names


@pytest.mark.parametrize("layout", ["bhnd", "bnhd", "padded", "packed"])
def test_launch(driver, layout):
    shape = {"bhnd": (2, 4, 64, 64), "bnhd": (2, 64, 4, 64), "padded": (2, 4, 64, 80)}
    q = make(*shape.get(layout, (100, 4, 64)))
    options = {}
    if layout == "bnhd":
        q = q.transpose(1, 2)
    if layout == "padded":
        q = q[..., :64]
    if layout == "packed":
        lengths = torch.tensor([0, 30, 100], dtype=torch.int32)
        options = {"cu_seqlens_q": lengths, "cu_seqlens_k": lengths, "max_seqlen_q": 70}
    sinks, slopes = torch.zeros(4), torch.ones(4)
    options["score_mod"] = lambda s, b, h, i, j: s + slopes[h]
    o, lse = attn.attention(q, q, q, sinks=sinks, lse=True, **options)
    stream, addresses, names = get_launch()
    assert stream == 55
    tensors = {"q": q, "k": q, "v": q, "o": o, "lse": lse, "sinks": sinks, "capture0": slopes}
    tensors |= {name: options.get(name) for name in ("cu_seqlens_q", "cu_seqlens_k")}
    for name, address in zip(names, addresses, strict=False):
        assert tensors[name].data_ptr() == address, name
    # The fake kernel and the real one agree.
    fake_o, fake_lse = torch.ops.attn.attention_lse(
        *[q.to("meta")] * 3,
        None,
        *[torch.empty(3, device="meta") if layout == "packed" else None] * 2,
    )
    for fake, real in ((fake_o, o), (fake_lse, lse)):
        assert (fake.shape, fake.stride(), fake.dtype) == (real.shape, real.stride(), real.dtype)
    if layout != "padded":
        assert o.stride() == q.stride()
    kept = len(attention_kernels._calls)
    again = torch.empty_like(o)
    attn.attention(q, q, q, sinks=sinks, out=again, lse=lse, **options)
    stream, addresses, names = get_launch()
    assert dict(zip(names, addresses, strict=False))["o"] == again.data_ptr()
    attn.attention(q, q, q, sinks=sinks, out=again, lse=lse, **options)
    assert len(attention_kernels._calls) == kept + 1


def test_addresses_are_in_the_order_of_the_call(driver, monkeypatch):
    """A kernel may read what a mask captured before all else: its tensors have another order."""

    class Kernel:
        names = ("capture0", "q", "k", "v", "o", "lse", "sinks")

        scratch_bytes = 64

        def prepare(self, views):
            self.views = list(views)
            return self

        def __call__(self, addresses, stream, scratch):
            self.addresses, self.scratch = list(addresses), scratch

    kernel = Kernel()
    monkeypatch.setattr(shared_kernels, "load_shared", lambda *_: kernel)
    q, ids, sinks = make(1, 2, 32, 64), torch.zeros(32, dtype=torch.int64), torch.zeros(2)
    mask = lambda b, h, i, j: ids[i] == ids[j]  # noqa: E731
    o, lse = attn.attention(q, q, q, mask_mod=mask, sinks=sinks, lse=True)
    tensors = {"q": q, "k": q, "v": q, "o": o, "lse": lse, "sinks": sinks, "capture0": ids}
    addresses = dict(zip(kernel.views, kernel.addresses, strict=True))
    assert addresses == {name: each.data_ptr() for name, each in tensors.items()}
    # Its workspaces are torch's memory, in one piece.
    assert kernel.scratch not in (0, *kernel.addresses)


def test_captured_types(driver):
    q = make(1, 2, 32, 64)
    kept = torch.ones(32, dtype=torch.bool)
    ids = torch.zeros(32, dtype=torch.int64)
    weight = torch.tensor(0.5, dtype=torch.bfloat16)
    attn.attention(
        q,
        q,
        q,
        mask_mod=lambda b, h, i, j: kept[j] & torch.eq(ids[i], ids[j]),
        score_mod=lambda s, b, h, i, j: torch.where(
            i > j, torch.tanh(s) * weight, s.clamp(-3, max=3)
        ),
    )
    (kernel,) = shared_kernels._loaded.values()
    dtypes = [(t["name"], t["dtype"]) for t in kernel.launch_record["tensors"][4:]]
    assert dtypes == [("capture0", "bf16"), ("capture1", "i8"), ("capture2", "i64")]


def test_compiled_kernels_read_tensors_of_torch():
    bias = torch.randn(2, 32, dtype=torch.bfloat16)
    kernel = attn.compile(q="1x2x32x64xf16", score_mod=lambda s, b, h, i, j: s + bias[h, j])
    assert kernel.simulate().passed


def test_prepare(monkeypatch):
    q = torch.empty(2, 100, 4, 64, dtype=torch.bfloat16, device="meta").transpose(1, 2)
    attn.prepare(q, q, q, chip="sm_90a", causal=True, lse=True)
    kernels = (k for k in attn.compiler.kernel_cache._memory.values() if isinstance(k, attn.Kernel))
    # Of these lengths, and of any.
    kernel, other = kernels
    assert other.launch["tensors"][0]["shape"] == [-1, 4, -1, 64]
    assert kernel.chip == "sm_90a"
    assert kernel.launch["tensors"][0]["strides"] == [25600, 64, 256, 1]


class Mode(torch.utils._python_dispatch.TorchDispatchMode):
    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        return function(*args, **(kwargs or {}))


class Marked(torch.Tensor):
    pass


def test_dispatcher_is_left_out_where_nobody_looks(driver, monkeypatch):
    """What sees operators' calls still does: modes, transforms, profilers, classes of tensors."""
    monkeypatch.setattr(torch_op, "_is_on_gpu", lambda tensor: True)
    seen = []
    for name in ("_attention", "_attention_lse"):
        operator = getattr(torch_op, name)
        monkeypatch.setattr(
            torch_op,
            name,
            lambda *given, op=operator, **named: seen.append(op) or op(*given, **named),
        )
    q = make(1, 4, 64, 64)
    for lse in (False, True):
        attn.attention(q, q, q, lse=lse)
        assert not seen
        with Mode():
            attn.attention(q, q, q, lse=lse)
        assert len(seen) == 1
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]):
            attn.attention(q, q, q, lse=lse)
        assert len(seen) == 2
        attn.attention(q.as_subclass(Marked), q, q, lse=lse)
        attn.attention(q, q, q, sinks=torch.zeros(4).as_subclass(Marked), lse=lse)
        assert len(seen) == 4
        slopes = torch.ones(4)
        attn.attention(q, q, q, lse=lse, score_mod=lambda s, b, h, i, j: s + slopes[h])
        assert len(seen) == 4
        seen.clear()
    torch.vmap(lambda each: attn.attention(each, each, each))(make(2, 1, 4, 64, 64))
    assert seen


def test_what_torch_lacks_is_taken_to_look(monkeypatch):
    monkeypatch.delattr(torch._C, "_get_tracing_state")
    assert [each() for each in torch_op._find_observers()] == [True]


@pytest.mark.parametrize("device", [Ampere, FakeDevice])
def test_overhead_of_a_call(driver, monkeypatch, device):
    monkeypatch.setattr(cuda_driver, "get_device", lambda ordinal: device())
    monkeypatch.setattr(cuda_driver, "encode_tensor_map", lambda *_: None)
    q = make(1, 4, 64, 64)
    call = lambda: attn.attention(q, q, q, causal=True)
    call()
    assert count_calls(call) < 500


@pytest.mark.parametrize(
    ("size", "message"),
    [([64], "expected .queries, keys. of a block"), ([0, 64], "expected an integer from 1 ")],
)
def test_operator_checks_sizes_of_blocks(size, message):
    q = torch.randn(1, 2, 64, 16, dtype=torch.float16)
    lists = (torch.zeros(1, 2, 1, 2, dtype=torch.int32), torch.zeros(1, 2, 1, 1, dtype=torch.int32))
    with pytest.raises(attn.ArgumentError, match=f"block_size: {message}"):
        named = dict(zip(block_lists.NAMES, lists, strict=True))
        torch.ops.attn.attention(q, q, q, **named, block_size=size)


def test_no_memory_for_a_workspace(monkeypatch):
    """torch's error is the package's own, which what falls back catches."""

    def refuse(*_, **__):
        raise torch.cuda.OutOfMemoryError("out of memory")

    q = torch.zeros(1, 2, 8, 32)
    call = types.SimpleNamespace(device=0, launch=lambda addresses, stream, allocate: allocate(64))
    monkeypatch.setattr(torch_op, "_get_stream", lambda device: 0)
    monkeypatch.setattr(torch, "empty", refuse)
    message = "expected 64 bytes of cpu for a workspace, got: out of"
    with pytest.raises(attn.DriverError, match=message):
        torch_op._launch(call, (q, q, q, q), (), None)
