"""Models of transformers on attn's kernels, on the simulator: logits beside those of eager
attention in float32. A model in float16 rounds in all of its layers; what attention has of that
is measured in a model in float32 whose attention alone is attn's, in float16."""

import logging
import types

import attn
import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
transformers = pytest.importorskip("transformers", reason="transformers is not installed")

import attn.hf  # noqa: E402
import attn.torch  # noqa: E402
from attn.compiler import simulation  # noqa: E402
from attn.doors import host_masks, model_masks  # noqa: E402
from transformers import masking_utils  # noqa: E402

transformers.logging.set_verbosity_error()

TINY = {
    "vocab_size": 96, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 1100,
    "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
}  # fmt: skip
#: A window that is shorter than the prompts, in one layer of two.
MIXED = {
    "head_dim": 32,
    "sliding_window": 12,
    "layer_types": ["sliding_attention", "full_attention"],
}
#: Models with the arguments of their configurations. Experts are all taken, since their choice
#: jumps with the last bit.
MODELS = {
    "Llama": {},
    "Qwen3": {"head_dim": 32},
    "Mistral": {"sliding_window": 12},
    "Phi": {},
    "Gemma2": MIXED,
    "Gemma3": MIXED,
    "GptOss": {**MIXED, "num_local_experts": 2, "num_experts_per_tok": 2},
}
#: Accepted of the logits, by their norm.
TOLERANCE = 1e-3
#: By how much one rounded model may lie farther from the exact one than another rounded one.
SAME_ROUNDING = 1.1
#: Scores of generated tokens, of the largest one: they follow from what was generated before.
STEP_TOLERANCE = 2e-3


def attend_narrow(module, query, key, value, attention_mask, **options):
    """attn's attention, in float16, of a layer in float32."""
    forward = transformers.AttentionInterface()["attn"]
    operands = (each.half() for each in (query, key, value))
    o, weights = forward(module, *operands, attention_mask, **options)
    return o.float(), weights


@pytest.fixture(autouse=True)
def registered():
    attn.hf.register()
    transformers.AttentionInterface.register("attn_narrow", attend_narrow)
    transformers.AttentionMaskInterface.register("attn_narrow", model_masks.make_mask)


def make_model(name):
    torch.manual_seed(0)
    config = getattr(transformers, {"Gemma3": "Gemma3TextConfig"}.get(name, f"{name}Config"))
    model = getattr(transformers, f"{name}ForCausalLM")(config(**TINY, **MODELS[name])).eval()
    for parameter in model.parameters():
        if parameter.dim() > 1:
            torch.nn.init.normal_(parameter, std=0.05)
    return model.half()


def run(model, implementation, **inputs):
    model.set_attn_implementation(implementation)
    return model(**inputs).logits.float()


def measure(got, want):
    """The largest difference, of the largest logit."""
    return ((got - want).abs().max() / want.abs().max()).item()


def find_distance(got, want):
    """The norm of the difference, of that of what is wanted."""
    return ((got - want).norm() / want.norm()).item()


def check_logits(model, seen=None, **inputs):
    """Where tokens are `seen`, logits with attn's kernels in float16 are as near those of eager
    attention in float32 as TOLERANCE says, or as those of eager attention in float16. Those of a
    model that has float16 in its attention alone are."""
    seen = slice(None) if seen is None else seen
    floats = {
        name: each.float() if torch.is_floating_point(each) else each
        for name, each in inputs.items()
    }
    with torch.no_grad():
        got, rounded = (run(model, each, **inputs)[seen] for each in ("attn", "eager"))
        model.float()
        want, alone = (run(model, each, **floats)[seen] for each in ("eager", "attn_narrow"))
        model.half()
    assert find_distance(got, want) < max(TOLERANCE, SAME_ROUNDING * find_distance(rounded, want))
    assert find_distance(alone, want) < TOLERANCE


def make_prompts():
    ids = torch.randint(3, 96, (2, 37))
    left, right = torch.ones_like(ids), torch.ones_like(ids)
    left[0, :9] = 0
    right[1, -7:] = 0
    return ids, left, right


@pytest.mark.parametrize("name", MODELS)
def test_logits(name):
    """Plain, padded on either side, and packed by positions."""
    model = make_model(name)
    ids, left, right = make_prompts()
    for mask in ({}, {"attention_mask": left}, {"attention_mask": right}):
        seen = mask["attention_mask"].bool() if mask else None
        check_logits(model, seen, input_ids=ids, **mask)
    positions = torch.cat([torch.arange(20), torch.arange(17)])[None]
    check_logits(model, input_ids=ids[:1], position_ids=positions)


def generate_twice(model, ids, options):
    """Returns what a model generates with attn, and what it does eagerly in float32."""
    model.set_attn_implementation("attn")
    got = model.generate(ids, **options)
    model.set_attn_implementation("eager")
    return got, model.float().generate(ids, **options)


@pytest.mark.parametrize("kind", ["dynamic", "static"])
@pytest.mark.parametrize("name", MODELS)
def test_generation(name, kind):
    """The same tokens, with scores as near."""
    model = make_model(name)
    torch.manual_seed(1)
    ids, left, _ = make_prompts()
    options = {
        "max_new_tokens": 40, "do_sample": False, "output_scores": True,
        "return_dict_in_generate": True, "eos_token_id": None, "attention_mask": left,
        "cache_implementation": kind,
    }  # fmt: skip
    got, want = generate_twice(model, ids, options)
    length = ids.shape[1]
    rows = torch.ones(len(ids)).bool()
    for step, (some, others) in enumerate(zip(got.scores, want.scores, strict=True)):
        assert measure(some[rows], others[rows]) < STEP_TOLERANCE
        ours, theirs = (each.sequences[:, length + step] for each in (got, want))
        # Tokens differ between equals only; what follows is another text.
        gap = others.gather(1, theirs[:, None]) - others.gather(1, ours[:, None])
        assert (gap[rows] <= 2 * STEP_TOLERANCE * others.abs().max()).all()
        rows &= ours == theirs
        if not rows.any():
            break
    assert not ids.is_cpu or rows.all()


@pytest.mark.parametrize("given", ["nothing", "positions", "padding"])
def test_packed_sequences(given):
    """Sequences that `cu_seq_lens_q` divides, beside eager attention with their mask."""
    model = make_model("Gemma2")
    ids, _, right = make_prompts()
    ids, right = ids[1:], right[1:]
    places = torch.cat([torch.arange(20), torch.arange(17)])[None]
    options = {
        "nothing": {}, "positions": {"position_ids": places}, "padding": {"attention_mask": right}
    }[given]  # fmt: skip
    starts = torch.tensor([0, 20, 37], dtype=torch.int32)
    numbers = torch.arange(37) // 20
    seen = (numbers[:, None] == numbers) & torch.ones(37, 37).tril().bool()
    rows = right[0].bool() if given == "padding" else slice(None)
    with torch.no_grad():
        got = run(
            model, "attn", input_ids=ids, cu_seq_lens_q=starts, cu_seq_lens_k=starts,
            max_length_q=20, max_length_k=20, **options,
        )  # fmt: skip
        model.float()
        masks = {
            kind: torch.zeros(1, 1, 37, 37).masked_fill(~each, torch.finfo(torch.float32).min)
            for kind, each in (
                ("full_attention", seen),
                ("sliding_attention", seen & ~torch.ones(37, 37).tril(-12).bool()),
            )
        }
        options["attention_mask"] = masks
        want = run(model, "eager", input_ids=ids, **options)
    assert find_distance(got[:, rows], want[:, rows]) < STEP_TOLERANCE


@pytest.mark.parametrize("kind", ["dynamic", "static"])
def test_generation_of_an_encoder_and_decoder(kind):
    """40 tokens of T5, whose biases grow with the cache."""
    torch.manual_seed(0)
    model = make_t5(spread=0.2)
    ids, _, right = make_prompts()
    options = {
        "max_new_tokens": 40, "do_sample": False, "eos_token_id": None, "attention_mask": right,
        "cache_implementation": kind,
    }  # fmt: skip
    got, want = generate_twice(model, ids, options)
    assert torch.equal(got, want) and got.shape == (2, 41) and len(got.unique()) > 3


@pytest.fixture
def no_launches(monkeypatch):
    """Kernels are compiled, and give zeros."""

    def simulate(name, ptx, launch, reference, inputs, settings):
        q, v = inputs["q"], inputs["v"]
        o = np.zeros((*q.shape[:3], v.shape[3]), q.dtype)
        return types.SimpleNamespace(passed=True, text="", outputs={"o": o})

    monkeypatch.setattr(simulation, "simulate", simulate)


#: Caches, windows and kinds of layers. A prompt of 37 tokens is shorter than the longer window, and
#: what is generated is not.
@pytest.mark.parametrize(
    "kind, window, kinds",
    [
        ("dynamic", 12, ["full", "sliding"]),
        ("static", 12, ["full", "sliding"]),
        ("dynamic", 48, ["sliding", "sliding"]),
        ("static", 48, ["sliding", "sliding"]),
    ],
)
def test_few_kernels(count_kernels, no_launches, monkeypatch, kind, window, kinds):
    """Each kind of layer has one kernel for the prompt and one for all steps, whether hidden keys
    are still in the cache or behind its window."""
    monkeypatch.setitem(MIXED, "sliding_window", window)
    monkeypatch.setitem(MIXED, "layer_types", [f"{each}_attention" for each in kinds])
    model = make_model("Gemma2")
    model.set_attn_implementation("attn")
    ids, left, _ = make_prompts()
    model.generate(
        ids, attention_mask=left, max_new_tokens=1000, do_sample=False,
        eos_token_id=None, cache_implementation=kind,
    )  # fmt: skip
    assert count_kernels() == 2 * len(set(kinds))


@pytest.mark.parametrize("kind", ["dynamic", "static"])
def test_few_kernels_of_sdpa(count_kernels, no_launches, kind):
    """A model of torch's attention: one for the prompt and one for the steps."""
    model = make_model("Llama")
    model.set_attn_implementation("sdpa")
    ids, left, _ = make_prompts()
    with torch.no_grad(), attn.torch.sdpa():
        model.generate(
            ids, attention_mask=left, max_new_tokens=1000, do_sample=False, eos_token_id=None,
            cache_implementation=kind,
        )  # fmt: skip
    assert count_kernels() == 2


def test_no_token_looks_ahead():
    """A later token changes no earlier logit."""
    model = make_model("Gemma3")
    model.set_attn_implementation("attn")
    ids, _, _ = make_prompts()
    other = ids.clone()
    other[:, 30] = (other[:, 30] + 1) % 90 + 3
    with torch.no_grad():
        first, second = model(ids).logits, model(other).logits
    assert torch.equal(first[:, :30], second[:, :30]) and not torch.equal(
        first[:, 30], second[:, 30]
    )


def make_t5(spread=None):
    config = transformers.T5Config(
        vocab_size=96, d_model=64, d_kv=32, d_ff=96, num_layers=2, num_heads=2,
        pad_token_id=0, eos_token_id=1, decoder_start_token_id=0, tie_word_embeddings=False,
    )  # fmt: skip
    model = transformers.T5ForConditionalGeneration(config).eval()
    for parameter in model.parameters():
        if parameter.dim() > 1 and spread is not None:
            torch.nn.init.normal_(parameter, std=spread)
    return model.half()


def test_encoder_and_decoder():
    """T5: a bias of positions, cross attention, no scale."""
    torch.manual_seed(0)
    model = make_t5()
    ids, _, right = make_prompts()
    decoder_ids = torch.randint(3, 96, (2, 11))
    check_logits(model, input_ids=ids, attention_mask=right, decoder_input_ids=decoder_ids)


def test_images():
    """A vision model, whose layers see everything and have no mask."""
    torch.manual_seed(0)
    config = transformers.ViTConfig(
        hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=2, image_size=48, patch_size=8,
        num_labels=96,
    )  # fmt: skip
    model = transformers.ViTForImageClassification(config).eval().half()
    check_logits(model, pixel_values=torch.randn(1, 3, 48, 48).half())


def test_mask_tensors():
    """A mask that the user has made, of bools and of numbers."""
    model = make_model("Llama")
    ids, _, _ = make_prompts()
    seen = torch.ones(37, 37).tril().bool()[None, None] & (torch.rand(2, 1, 37, 37) > 0.2)
    seen |= torch.eye(37).bool()
    added = torch.zeros(seen.shape, dtype=torch.float16).masked_fill(
        ~seen, torch.finfo(torch.float16).min
    )
    # Eager attention takes numbers only.
    check_logits(model, input_ids=ids, attention_mask=added)
    with torch.no_grad():
        same, got = (
            run(model, "attn", input_ids=ids, attention_mask=each) for each in (added, seen)
        )
    assert measure(same, got) < TOLERANCE


#: Sequences of 20 tokens, one after the other, and each token's place in its own.
SEQUENCES = torch.arange(60)[None].repeat(2, 1) // 20
PLACES = torch.arange(60)[None].repeat(2, 1) % 20
#: All functions of masking_utils that are masks, or make them.
KINDS = {
    "causal": masking_utils.causal_mask_function,
    "bidirectional": masking_utils.bidirectional_mask_function,
    "window": masking_utils.sliding_window_causal_mask_function(12),
    "window overlay": masking_utils.sliding_window_overlay(12),
    "bidirectional window": masking_utils.sliding_window_bidirectional_mask_function(12),
    "bidirectional window overlay": masking_utils.sliding_window_bidirectional_overlay(12),
    "chunks": masking_utils.chunked_causal_mask_function(16, torch.tensor([3, 0])),
    "chunk overlay": masking_utils.chunked_overlay(16, torch.tensor([3, 0])),
    "padding": masking_utils.padding_mask_function(
        torch.arange(60)[None] % torch.tensor([[7], [5]]) != 2
    ),
    "packed": masking_utils.packed_sequence_mask_function(SEQUENCES),
    "offsets": masking_utils.add_offsets_to_mask_function(masking_utils.causal_mask_function, 3, 1),
}
# These came with later versions of transformers.
if hasattr(masking_utils, "blockwise_overlay"):
    KINDS["images"] = masking_utils.or_masks(
        masking_utils.causal_mask_function,
        masking_utils.blockwise_overlay(torch.arange(60)[None].repeat(2, 1) // 9),
    )
if hasattr(masking_utils, "remap_positions_for_packed_sequence"):
    KINDS["remapped"] = masking_utils.remap_positions_for_packed_sequence(
        masking_utils.causal_mask_function, PLACES
    )
    KINDS["packed and remapped"] = masking_utils.packed_sequence_compatibility_function(
        masking_utils.sliding_window_causal_mask_function(12), PLACES, SEQUENCES
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "place", [(40, 40, 0, 0), (1, 40, 39, 0), (7, 40, 33, 0), (5, 50, 20, 0), (1, 30, 40, 11)]
)
def test_masks(kind, place):
    """Each kind of mask at each place of queries and keys, beside torch's own tensor of it."""
    queries, keys, q_offset, kv_offset = place
    padding = torch.ones(2, q_offset + queries).bool()
    padding[0, :4] = False
    for given in (None, padding):
        for offset in (q_offset, torch.tensor(q_offset)):
            mask = model_masks.make_mask(
                2, queries, keys, offset, kv_offset, KINDS[kind], given, device=padding.device
            )
            q, k = torch.randn(2, 2, queries, 32).half(), torch.randn(2, 2, keys, 32).half()
            o = attn.attention(
                q, k, k, causal=mask.aligned.causal, window=mask.aligned.window, mask_mod=mask.mod
            )  # fmt: skip
            seen = mask.make_tensor()
            want = torch.nn.functional.scaled_dot_product_attention(
                q.double(), k.double(), k.double(), seen
            )
            rows = seen.expand(2, 2, queries, keys).any(-1)
            assert (o - want)[rows].abs().max() < 4e-3


def test_short_padding():
    """A mask that ends before the keys hides those behind it, but from queries before them."""
    short = torch.ones(1, 7, dtype=torch.bool)

    def make(function, kv_length, q_length=9, **options):
        return model_masks.make_mask(1, q_length, kv_length, 0, 0, function, short, **options)

    both = masking_utils.bidirectional_mask_function
    assert make(both, 7).mod is None
    for function in (both, masking_utils.causal_mask_function):
        mask = make(function, 9)
        assert mask.mod is not None
        answers = []
        for each in (mask, mask.make_tensor()):
            torch.manual_seed(0)
            answers.append(call_layer(attention_mask=each)[0])
        o, want = answers
        assert (o - want).abs().max() < 4e-3
    assert make(masking_utils.causal_mask_function, 9, q_length=7).mod is None


def test_places_of_keys():
    """Sequences whose keys lie elsewhere than their queries are refused beside a function; layers
    of a step share what is made of the others."""
    mask = model_masks.make_mask(1, 9, 9, mask_function=lambda b, h, q, k: k <= q)
    starts, same, other = (
        torch.tensor(each, dtype=torch.int32) for each in ([0, 4, 9], [0, 4, 9], [0, 5, 9])
    )
    with pytest.raises(attn.ArgumentError, match="cu_seq_lens_k: expected the same as"):
        call_layer(attention_mask=mask, cu_seq_lens_q=starts, cu_seq_lens_k=other)
    assert mask.within(starts, same) is mask.within(starts, same)
    with pytest.raises(attn.AttnError, match="cu_seq_lens_k: expected the same as"):
        mask.within(starts, other)
    call_layer(attention_mask=mask, cu_seq_lens_q=starts, cu_seq_lens_k=same)
    bias = torch.zeros(1, 1, 9, 9)
    for options in ({"attention_mask": mask.make_tensor()}, {"position_bias": bias}):
        with pytest.raises(attn.ArgumentError, match="cu_seq_lens_q is given beside .*; "):
            call_layer(cu_seq_lens_q=starts, cu_seq_lens_k=starts, **options)


def test_known_masks_are_options():
    """Causal masks and windows cost no function."""
    parts = host_masks.split(KINDS["window"])
    assert parts == host_masks.Parts(True, 12)
    assert host_masks.align(parts, 40, 40, 0) == (False, (11, 0, "bottom-right"))
    assert host_masks.align(host_masks.Parts(True), 7, 40, 33) == ("bottom-right", None)
    assert host_masks.align(host_masks.Parts(True), 1, 40, 39) == (False, None)
    assert host_masks.align(host_masks.Parts(True), 5, 50, 20) is None


def call_layer(**options):
    q = torch.randn(1, 2, 9, 32, dtype=options.pop("dtype", torch.float16))
    layer = torch.nn.Module().eval()
    forward = transformers.AttentionInterface()["attn"]
    return forward(layer, q, q, q, options.pop("attention_mask", None), **options)


def test_refusals(caplog):
    """What is not understood is an error, or SDPA's where that was asked for."""
    for options, message in (
        ({"dtype": torch.float32}, "elements are torch.float32; kernels take float16 or bfloat16"),
        ({"head_mask": torch.ones(2)}, "the model says head_mask, which attn.hf does not know"),
        ({"attention_mask": "causal"}, "expected a mask of attn.hf or a tensor, got str"),
        ({"cache": object()}, "the model says cache, which attn.hf does not know"),
        (
            {"attention_mask": torch.ones(1, 9)},
            r"got \[1, 9\]; a model that makes no masks under this name needs attn.hf.register",
        ),
        (
            {"attention_mask": torch.ones(1, 1, 9, 4).bool()},
            "expected a place for each of the 9 keys, got 4",
        ),
    ):
        with pytest.raises(attn.ArgumentError, match=message):
            call_layer(**options)
    attn.hf.register(fallback="sdpa")
    with caplog.at_level(logging.DEBUG, "attn"):
        o, _ = call_layer(dtype=torch.float32)
    assert o.dtype == torch.float32 and "is SDPA's, since elements are torch.float32" in caplog.text
    with pytest.raises(attn.ArgumentError, match="elements are torch.float32"):
        call_layer(dtype=torch.float32, s_aux=torch.zeros(2))
    with pytest.raises(
        attn.ArgumentError, match="fallback: expected one of error, sdpa, got 'eager'"
    ):
        attn.hf.register(fallback="eager")


def test_strange_caches():
    """Keys that are no tensors, or of another type than queries."""
    forward = transformers.AttentionInterface()["attn"]
    q = torch.zeros(1, 2, 9, 32, dtype=torch.float16)
    for key, message in (
        ((q, q), "since the cache gives a tuple as key; dynamic and static caches give tensors"),
        (q.float(), 'since tensor "k": expected one of f16, .* alike, got f32'),
        (q[:, :, :4], r'since tensor "v": expected heads and keys \[2, 4\] as k, got \[2, 9\]'),
    ):
        with pytest.raises(attn.ArgumentError, match=message):
            forward(torch.nn.Identity(), q, key, q, None)


def test_missing_mask_function():
    """A name that has attn's attention alone: transformers hands its layers no mask."""
    model = make_model("Llama")
    ids, left, _ = make_prompts()
    message = r"the registry of masks has no attn_alone; attn.hf.register\('attn_alone'\) gives both"
    for fallback in ("error", "sdpa"):
        attn.hf.register(fallback=fallback)
        forward = transformers.AttentionInterface()["attn"]
        transformers.AttentionInterface.register("attn_alone", forward)
        with pytest.raises(attn.ArgumentError, match=message), torch.no_grad():
            run(model, "attn_alone", input_ids=ids, attention_mask=left)


def test_training_is_refused():
    model = make_model("Llama")
    model.set_attn_implementation("attn")
    with pytest.raises(attn.ArgumentError, match=r"no backward pass; torch.no_grad\(\) says"):
        model(torch.ones(1, 9, dtype=torch.long))
