"""Wrong arguments, drawn at random, of the package's calls on tensors of torch: each is refused by
this package in one short sentence, or taken."""

import random

import attn
import pytest
from conftest import draws

torch = pytest.importorskip("torch", reason="torch is not installed")

HALF, INT = torch.float16, torch.int32


def make(*shape, dtype=HALF):
    return torch.randn(*shape).to(dtype)


def make_int(*numbers):
    return torch.tensor(numbers, dtype=INT)


def make_pages():
    return {"page_table": make_int(0, 1, 2, 3, 4, 5).reshape(2, 3), "kv_lengths": make_int(40, 20)}


def make_pools():
    return {"k_cache": make(6, 16, 2, 64), "v_cache": make(6, 16, 2, 64)}


#: Functions and right arguments of theirs.
CALLS = {
    "attention": lambda: dict(q=make(2, 4, 20, 64), k=make(2, 2, 33, 64), v=make(2, 2, 33, 64)),
    "packed": lambda: dict(
        q=make(20, 4, 64), k=make(33, 2, 64), v=make(33, 2, 64), max_seqlen_q=12,
        cu_seqlens_q=make_int(0, 8, 20), cu_seqlens_k=make_int(0, 13, 33),
    ),
    "decode": lambda: {"q": make(2, 4, 64), **make_pools(), **make_pages()},
    "mla_decode": lambda: {
        "q": make(2, 16, 96), "kv_cache": make(6, 16, 96), **make_pages(), "value_dim": 64, "scale": 0.1
    },
    "prefill": lambda: {
        "q": make(20, 4, 64), **make_pools(), **make_pages(), "cu_seqlens_q": make_int(0, 8, 20),
        "max_seqlen_q": 12,
    },
    "flex_attention": lambda: {n: make(2, 4, 20, 64) for n in ("query", "key", "value")},
}  # fmt: skip
#: Arguments that a call may have beside these.
OTHERS = {
    name: "sinks causal window softcap scale out_scale lse out out_type out_group pad".split()
    for name in CALLS
}
OTHERS["flex_attention"] = "scale enable_gqa return_lse kernel_options block_mask".split()
for _name in ("attention", "packed"):
    OTHERS[_name] += "max_seqlen_q cu_seqlens_q block_counts block_size amax".split()
for _name in ("decode", "mla_decode", "prefill"):
    OTHERS[_name] += "selected kv_splits run_keys expected_keys partials added init amax".split()
VALUES = [
    0, 1, -1, 3, 30, 2**33, 0.5, float("nan"), float("inf"), True, "abc", [1], (), (3, 4), [0, 8, 20],
    object(), {}, torch.tensor(3), make(2, 3), make(4, dtype=torch.float32), make_int(0, 20, 8),
    make(2, 4, 64), make(20, 4, 64).transpose(0, -1), torch.ones(20, 33, dtype=torch.bool),
]  # fmt: skip


def change(rng, tensor):
    """Another tensor, or something else in its place."""
    axis = rng.randrange(tensor.dim())
    return rng.choice(
        [
            lambda: tensor.to(rng.choice([torch.float64, torch.int64, torch.int8, torch.bool])),
            lambda: tensor[0],
            lambda: tensor[None],
            lambda: tensor.narrow(axis, 0, tensor.shape[axis] - 1),
            lambda: tensor.narrow(axis, 0, 0),
            lambda: torch.cat([tensor, tensor.narrow(axis, 0, 1)], axis),
            lambda: torch.stack([tensor, tensor], -1)[..., 0],
            lambda: tensor.transpose(0, -1),
            lambda: tensor.to("meta"),
            lambda: tensor.flip(0),
            lambda: tensor.tolist(),
            lambda: tuple(tensor.tolist()),
            lambda: rng.choice([None, 3, 0.5, "abc", object()]),
        ]
    )()


@pytest.mark.parametrize("name", CALLS)
def test_errors(name, monkeypatch):
    """Nothing is compiled or run: what is taken ends there."""

    class Taken(Exception):
        pass

    def take(*_, **__):
        raise Taken

    monkeypatch.setattr("attn.calls.shared_kernels._compile", take)
    monkeypatch.setattr("attn.serving.decode_launch.Runner", take)
    rng = random.Random(draws.draw_seed())
    call = getattr(attn, "attention" if name == "packed" else name)
    taken = 0
    for number in range(150):
        given = CALLS[name]()
        if rng.random() < 0.5:
            changed = rng.choice([each for each, one in given.items() if isinstance(one, torch.Tensor)])
            given[changed] = change(rng, given[changed])
        else:
            changed = rng.choice(OTHERS[name])
            given[changed] = rng.choice(VALUES)
        where = f"draw {number}: {changed}={given[changed]!r:.200}"
        try:
            call(**given)
        except Taken:
            taken += 1
        except attn.ArgumentError as error:
            text = str(error)
            assert len(text) < 250 and "\n" not in text, f"{where}: {text}"
        except Exception as error:
            raise AssertionError(where) from error
    assert 0 < taken < 100
