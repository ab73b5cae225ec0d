"""What calls of servers have of the table of a problem's options: two modules of the Python
package, which gen-docs.py writes.

The options of a call are all rows of the table that do not follow from its tensors, but for
those that CALLS names as absent. Types, defaults, checks, sentences and the arguments of
torch's operators follow from a row's kind.
"""

from __future__ import annotations

import dataclasses
import textwrap

from option_pages import NOTICE, get_sentence


@dataclasses.dataclass(frozen=True)
class Served:
    """How a call of a server has an option."""

    #: Of the argument, of the setting that it becomes, and of torch's operator.
    type: str
    default: str
    stored: str
    schema: str
    #: How a setting is read from the argument.
    read: str
    #: The sentence of a docstring; empty for the table's.
    doc: str = ""
    #: What follows the table's sentence.
    values: str = ""


KINDS = {
    "align": Served(
        "bool", "True", "bool", "bool {name}=True", 'readers.to_bool("{name}", {name})',
        "Hides the keys after each query; the last query is at the last key",
    ),
    "window": Served(
        "Sequence[int | None] | None", "None", "tuple[int, int] | None", "int[]? {name}=None",
        "None if {name} is None else readers.to_bounds({name})",
        values="(left, right), None for unbounded",
    ),
    "factor": Served(
        "float | None", "None", "float | None", "float? {name}=None",
        'None if {name} is None else readers.to_factor("{name}", {name})',
    ),
    "count": Served(
        "int | None", "None", "int | None", "int? {name}=None",
        'None if {name} is None else readers.to_integer("{name}", {name}, 1, 2**31 - 1)',
    ),
    "numbers": Served(
        "Sequence[int] | None", "None", "tuple[int, ...] | None", "int[]? {name}=None",
        'None if {name} is None else readers.to_numbers("{name}", {name})',
        values="a list, of any length",
    ),
    "switch": Served(
        "bool", "False", "bool", "bool {name}=False", 'readers.to_bool("{name}", {name})',
    ),
    "order": Served(
        "str", '"nhd"', "str", 'str {name}="nhd"', "readers.to_pool_order({name})",
        'Order of a pool: "nhd" is page, key, head, dim, "hnd" page, head, key, dim',
    ),
    "type": Served("Any", "None", "str | None", "", "{name}"),
    "region": Served(
        "Modification | None", "None", "str", 'str {name}=""', "{name}", values="as in `attn.attention`",
    ),
}  # fmt: skip
#: Options with numbers that stand for none, or that have no upper bound.
SETTLED = {
    "softcap": 'readers.to_cap("{name}", {name})',
    "kv_splits": 'readers.to_splits("{name}", {name})',
    "run_keys": 'readers.to_run_keys("{name}", {name})',
}
#: Sentences beside which a call of a server says more than the table does.
VALUES = {
    "out_scale": "o has e4m3 elements unless `out` or `out_type` says otherwise",
    "kv_splits": "without it the planner does, from the shapes alone",
    "run_keys": "a multiple of 16; plans whose block does not divide it are not chosen",
    "selected": "`causal` must be False where there are several queries",
}
#: Options that the tensors of a call decide, or what a plan is made for.
FROM_TENSORS = (
    "q kv_heads kv_len dv kv_type out_type out_group out_scale_type out_scale_tiles amax varlen kv_lengths page_size "
    "page_indptr added_page_size added_lengths block_rows block_keys rope_dim rope_apart sinks init_state descales scale_group v_transposed row_state lse "
    "dynamic"
).split()
#: The settings that are not options of a problem.
OWN = {
    "value_dim": Served(
        "int", "", "int | None", "int {name}",
        'None if {name} is None else readers.to_integer("{name}", {name}, 1, 2**31 - 1)',
        "Columns of a key, from its first one on, that are its value",
    ),
    "max_seqlen_q": Served(
        "int", "", "int | None", "int {name}",
        'None if {name} is None else readers.to_integer("{name}", {name}, 1, 2**29)',
        "Bounds the queries of a sequence",
    ),
    "partials": Served(
        "str", '"auto"', "str", 'str {name}="auto"', "readers.to_partials({name})",
        "Type of what runs of keys write for the launch to merge: \"f32\"; \"f16\", with a scale "
        "for each row, which has 11 bits of each number; \"bf16\", which has 8. \"auto\" is \"f16\" "
        "for latent attention, else \"f32\"",
    ),
}  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Call:
    """A function of the package, or the operator of torch of its name."""

    #: Arguments by position, and tensors by name.
    positional: str
    tensors: str
    #: Settings without a default, those that are not of the table, and options that it lacks.
    required: str
    own: str
    absent: str
    #: Arguments of the operator in the order in which they came; new ones come after them.
    order: str
    doc: str
    #: Options that the operator lacks, since the function makes them of another operator.
    composed: str = ""


_STATE = "init_o init_lse"
#: Keys beside those of the table, and the calls that take them.
_ADDED = "added_k added_v added_table added_lengths"
_TAKES_ADDED = ("decode", "mla_decode")
#: Functions of a caller, in the order in which their tensors come.
MODS = ("score_mod", "mask_mod", "out_mod")
_MODS = "captures score_mod mask_mod"
_DECODE = """Attention of a batch of sequences to keys in pages.

q is (batch, heads, dim), one query a sequence, or (batch, heads, queries, dim), the last ones of
each sequence. The pools k_cache and v_cache are (pages, keys, key heads, dim) with `layout="nhd"`,
(pages, key heads, keys, dim) with "hnd", of any strides; two halves of one tensor will do.
`page_table`, i32 (batch, pages), names the pages of each sequence, and `kv_lengths`, i32 (batch),
says how many keys it has: 0 gives zeros and an LSE of -inf. What lies after a length is not read,
ids that the pool does not have stand for zeros.

Pools may have 8-bit elements (e4m3, e5m2; sm_89 and later) beside a 16-bit q, and `k_scale` and
`v_scale` say what one unit of them stands for: f32 tensors of one element, of one for each key
head, or (batch, key heads). `k_scales` and `v_scales` say so of each row and, where a row has
several, of as many equal parts of its columns: f32 tensors in the order of the pools, with the
numbers of a row in the place of its columns. q becomes f16 then: beyond 65504 it is infinite.
`sinks` has one f32 logit a head.

`init=(o, lse)` is a state to go on from, results of other keys that the queries have seen: o like
the result, also in f32, and lse like that one, f32. The results are those of both sets of keys, as
`attn.merge_states` would give them, without its launch. Rows whose LSE is -inf have no state,
whatever their o is. `sinks` count beside it: they belong to one of the parts.

With `selected` pages of one key, which any dense pool is a view of, make `page_table` a list of
the keys that a sequence's queries see (sparse attention by an indexer). `score_mod` and `mask_mod`
count a sequence's queries and keys from 0.

`added=(k, v, table, lengths)` are more keys, which all queries of a sequence see, in one softmax
with those that `causal` and `window` leave of the table's. k and v are pools in the order of
`layout`, with the elements, key heads and columns of k_cache and v_cache, and pages of a size of
their own; the table is i32 (batch, pages), the lengths i32 (batch). Their table is a list of keys
where pages have one: ids that the pool does not have, such as -1, hide their keys. So a window
over the last keys of a sequence stands beside keys that were selected or compressed. `added` does
not stand beside `selected`, `run_keys`, `expected_keys`, `score_mod`, `mask_mod`, `k_scales`,
`v_scales` or `pad`. The options:

{options}

With `pad` q and pools whose head dimension, strides or addresses no kernel takes are copied at each
call, with zeros after their columns; an `attn.CopyRemark` says which.

`out_type` is the type of an o that is made. One of 8 bits is multiplied by `out_scale`, or has a
scale for each `out_group` columns of a row, which is a result too, behind o and its LSE, in the
order of o with groups in the place of columns: f32, the largest magnitude of the columns by that of
the type. "f4E2M1FN" with `out_group=16` is nvfp4: bytes (uint8) of two results each, that of the
even column in the lower half, and scales of e4m3; `attn.unpack_nvfp4` reads both.
`out_scale_type="float8_e8m0fnu"` makes other scales powers of two; `out_scale_tiles` makes those
of 8 bits a matrix of tokens by heads' groups in tiles of 128 x 4. Those of an `out` go to
`out_scales`.

`amax`, one f32, is where the largest size of all results goes, before `out_scale` and the
rounding: it joins the number that is there, so write 0 first.

Returns o like q, or (o, lse) with `lse`. numpy arrays run on the GPU if there is one, else on the
simulator; bf16 is uint16 and e4m3 uint8 there. Torch tensors go through the operator
torch.ops.attn.decode, on the current stream; other libraries' need `out`, and a tensor as `lse` to
have one. Raises ArgumentError for tensors that do not fit each other."""
_LATENT = """Latent attention in its absorbed form (MLA) of a batch of sequences.

A key is one row of `kv_cache`, (pages, keys, dim) or (pages, keys, 1, dim), whose first `value_dim`
columns are its value; the others are the rotated ones. All heads read the same keys. q is (batch,
heads, dim) or (batch, heads, queries, dim), its first `value_dim` columns multiplied by the matrix
that made the keys. `scale` is the model's, not that of `dim` columns.

With `k_rope`, of q's type, in the order of `kv_cache` and of any strides, the rotated columns are a
tensor of their own, and `kv_cache` has the first `value_dim` columns alone. With `q_rope`, like q,
those of the queries are apart, too. So it is for a cache of 8-bit elements, with `k_scales`, f32, a
number for each 128 columns of a row. Rows of 512 e4m3, 4 f32 and 64 bf16 are three views of one
tensor of bytes. A cache whose rotated columns have 8 bits too is one tensor of all columns, with
`k_scale` as in `attn.decode`. The options:

{options}

`added` is (kv, table, lengths) here, kv a pool like `kv_cache`, of pages of a size of its own;
`k_rope` does not stand beside it either. The other arguments, `pad` and the results are those of
`attn.decode`; o has `value_dim` columns."""
_PREFILL = """Attention of new queries of a batch of sequences, as many of each as it has, to
keys in pages: chunked prefill and append.

q is (queries, heads, dim), the queries of one sequence after those of the one before.
`cu_seqlens_q`, i32 (batch + 1), says where each begins, the first one with 0, and the last one
ends, all within q; numpy's are compared with `max_seqlen_q`, those of a device with
ATTN_DEBUG_CHECKS=1. The last query of a sequence is at its last key: `kv_lengths` counts the new
keys, which are in the cache already (`attn.append_kv`). The options:

{options}

Pools, also those of 8 bits with their scales, table, lengths and the other arguments are those of
`attn.decode`. Returns o like q, or (o, lse) with `lse` f32 (queries, heads). Rows of q that no
sequence has, or that are beyond its bound, stay as they were in `out` and are NaN in a new o and
LSE. With `run_keys` queries are copied to a batch in which each sequence has as many, the next power of two
from `max_seqlen_q` on, so that they have the bits of `attn.decode`, over one chunk, many, or query by
query; functions are refused beside it. Of a sequence beyond its bound, rows within it may then be left
like the others, too. Raises ArgumentError for tensors that do not fit each other."""
_CASCADE = """Attention of a batch whose sequences begin with keys that others have, too.

The keys of a sequence are those of its group in each level, the first level's first; the last level
has what is its own, and the sequence's last query is at its last key. Each level is one pass, which
reads a group's keys once for all of its sequences, and `attn.merge_states` merges the passes: with
L levels L + 1 launches, or 2 L + 1 where the keys of each are cut into runs.

q is (batch, heads, dim) or (batch, heads, queries, dim), best with the heads of a query side by
side in memory, else it is copied. The other tensors are those of `attn.decode`; the last level's
pass goes on from `init`. A prefix pays where reading it for each sequence takes longer than a
launch and the merging, which python/tests/gpu_cascade.py measures. The options:

{options}

Returns o like q, or (o, lse) with `lse`, f32. Takes torch tensors, which a CUDA graph may capture,
and numpy's. Raises ArgumentError for tensors that do not fit each other."""
_PLAN = """Decode of batches of up to `batch` sequences of up to `max_pages` pages.

The kernel, its workspaces and room for lengths and a table are made once. `plan` copies a batch's
lengths and table there, and has a kernel deal runs of keys by them where the planner wants that;
`run` launches on them: neither allocates, and both can be captured in a CUDA graph, whose replays
then serve whatever `plan` copied last.

    plan = attn.DecodePlan(batch=64, heads=32, kv_heads=8, dim=128, page_size=16,
                           max_pages=2048, dtype="bfloat16")
    plan.plan(kv_lengths, page_table)      # once a step
    plan.run(q, k_cache, v_cache, out=o)   # once a layer

Pools are dense in the order of `layout`, pages `page_stride` elements apart where more lies between
them, as keys and values in one tensor have it. `queries` are the last ones of each sequence. With
`latent` the pool is that of `attn.mla_decode`: `dim` columns of a key, whose first `value_dim` ones
are the values. `kv_dtype` is the element type of pools of 8 bits; with `scales` each `run` takes
k_scale and v_scale, f32 tensors: "tensor" of one element, "head" of one for each key head, "batch"
(batch, key heads), or "rows": k_scales and v_scales with a number for each row, dense in the order
of the pools. A latent plan of 8-bit pools has scales of rows, one for each 128 columns, and `run`
takes k_scales and k_rope; `row_bytes` is the distance of rows where the three lie in one row, 656
in one of 512 e4m3, 4 f32 and 64 16-bit columns. With `rope_apart` the rotated columns of q and of a
latent pool of 16 bits are tensors of their own: `run` takes q_rope, and k_rope, a pool with dense
pages, or with `row_bytes` with rows as far apart as those of the other one. `out_type` is that of
o. One of 8 bits is multiplied by `out_scale`, or has a scale for each `out_group` columns of a row,
which `run` gives too, f32 (batch, heads, groups) or with queries after heads: the largest magnitude
of the columns by that of the type. An `out_type` of "f4E2M1FN" with `out_group=16` is nvfp4: o has
bytes (uint8) of two results each, that of the even column in the lower half, and scales have e4m3
elements; `attn.unpack_nvfp4` reads both. `out_scale_type` and `out_scale_tiles` are as in
`attn.decode`. With `amax` each `run` takes one. `init` is the element type of the o of a state to go on from,
which each `run` takes then; `sinks` and `lse` say that each `run` has these. The options:

{options}

What `score_mod`, `mask_mod` and `out_mod` read are tensors of the plan, whose contents may change between
launches. With `pad` the head dimensions may be such that no kernel takes them: each `run` copies
its operands with zeros after their columns, which allocates. `device` is a GPU; without one, or
with "host", arrays of numpy run on the simulator."""
_POOLS = "q k_cache v_cache page_table kv_lengths"
CALLS = {
    "decode": Call(
        _POOLS, "sinks k_scale v_scale k_scales v_scales", "", "partials", "",
        f"sinks layout causal window softcap scale kv_splits k_scale v_scale {_MODS} run_keys "
        f"selected {_STATE} k_scales v_scales out_scale partials out_mod expected_keys {_ADDED}",
        _DECODE,
    ),
    "mla_decode": Call(
        "q kv_cache page_table kv_lengths", "sinks k_scale k_scales k_rope q_rope",
        "value_dim scale", "value_dim partials", "layout",
        f"value_dim scale sinks causal softcap kv_splits {_MODS} run_keys selected {_STATE} "
        "k_scales k_rope q_rope out_scale partials k_scale v_scale out_mod expected_keys window "
        "added_k added_table added_lengths",
        _LATENT,
    ),
    "prefill": Call(
        f"{_POOLS} cu_seqlens_q", "sinks k_scale v_scale k_scales v_scales", "max_seqlen_q",
        "max_seqlen_q", "kv_splits selected",
        f"max_seqlen_q sinks layout causal window softcap scale {_MODS} {_STATE} out_scale "
        "k_scale v_scale k_scales v_scales out_mod expected_keys",
        _PREFILL, "run_keys",
    ),
    "cascade": Call(
        "q k_cache v_cache levels", "sinks", "", "",
        "causal window out_scale kv_splits run_keys selected score_mod mask_mod out_mod expected_keys", "",
        _CASCADE,
    ),
    "DecodePlan": Call("", "", "", "partials", "", "", _PLAN),
}  # fmt: skip
#: Calls that are operators of torch.
OPERATORS = ("decode", "mla_decode", "prefill")
#: What a plan is made for, beside the options; `kv_dtype` is the table's kv_type, `init` the
#: element type of its init_state.
PLAN_SIZES = "batch heads dim page_size max_pages".split()
PLAN_FORM = {
    "kv_heads": "int | None = None",
    "value_dim": "int | None = None",
    "queries": "int = 1",
    "dtype": 'Any = "bfloat16"',
    "kv_dtype": "Any = None",
    "scales": "str | None = None",
    "row_bytes": "int | None = None",
    "page_stride": "int | None = None",
    "out_type": "Any = None",
    "out_group": "int | None = None",
    "out_scale_type": "Any = None",
    "out_scale_tiles": "bool = False",
    "amax": "bool = False",
    "init": "Any = None",
    "sinks": "bool = False",
    "lse": "bool = False",
    "latent": "bool = False",
    "rope_apart": "bool = False",
    "pad": "bool = False",
    "device": "Any = None",
}


def get_served(row: dict) -> Served:
    served = KINDS[row["kind"]]
    read = SETTLED.get(row["name"], served.read).format(name=row["name"])
    doc = served.doc
    if not doc:
        # The suffix is this table's: those of `attn.compile` are about its own values.
        doc = get_sentence(row, VALUES.get(row["name"], served.values))
    return dataclasses.replace(served, read=read, doc=doc)


def list_options(rows: list[dict], call: Call) -> dict[str, Served]:
    """The options of a call by their names."""
    absent = call.absent.split()
    found = {
        row["name"]: get_served(row)
        for row in rows
        if row["name"] not in FROM_TENSORS and row["name"] not in absent
    }
    return {name: OWN[name] for name in call.own.split() if not OWN[name].default} | found | {
        name: OWN[name] for name in call.own.split() if OWN[name].default
    }


def write_doc(text: str, options: dict[str, Served], indent: str) -> str:
    """A docstring with the options of a call."""
    lines: list[str] = []
    for name, served in options.items():
        lines += textwrap.wrap(
            f"{name}: {served.doc}.", width=88 - len(indent), initial_indent="    ",
            subsequent_indent="        ", break_on_hyphens=False,
        )  # fmt: skip
    paragraphs = [
        each if each.startswith((" ", "{")) else textwrap.fill(each, 96 - len(indent), break_on_hyphens=False)
        for each in text.split("\n\n")
    ]
    text = "\n\n".join(paragraphs).replace("{options}", "\n".join(lines))
    return textwrap.indent(f'"""{text}\n"""', indent)


def write_arguments(call: Call, options: dict[str, Served]) -> str:
    required = call.required.split()
    lines = [f"{name}: Any" for name in call.positional.split()] + ["*"]
    for name in required:
        kind = options[name].type.removesuffix(" | None")
        lines.append(f"{name}: {kind}")
    lines += [f"{name}: Any = None" for name in call.tensors.split()]
    lines += [
        f"{name}: {served.type} = {served.default}"
        for name, served in options.items()
        if name not in required
    ]
    return "".join(f"    {line},\n" for line in lines)


def write_function(name: str, call: Call, rows: list[dict]) -> str:
    options = list_options(rows, call)
    mods = [each for each in MODS if each in options]
    tensors = [*call.positional.split(), *call.tensors.split()]
    given = {"tensors": tensors, "options": [each for each in options if each not in mods]}
    lines = ""
    for what, names in given.items():
        lines += f"    {what} = {{\n" + "".join(f'        "{n}": {n},\n' for n in names) + "    }\n"
    if name == "cascade":
        more = "    init: tuple[Any, Any] | None = None,\n    lse: bool = False,\n"
        call_line = "    return cascading.attend_levels(tensors, options, init, lse)\n"
    else:
        more = "    init: tuple[Any, Any] | None = None,\n    lse: Any = False,\n    out: Any = None,\n"
        if name in _TAKES_ADDED:
            more = f"    added: tuple[Any, ...] | None = None,\n{more}"
            lines += f"    tensors |= added_keys.name_added(added, {name == 'mla_decode'})\n"
        more += "    out_type: Any = None,\n    out_group: int | None = None,\n"
        more += "    out_scale_type: Any = None,\n    out_scale_tiles: bool = False,\n"
        more += "    out_scales: Any = None,\n    amax: Any = None,\n"
        more += "    pad: bool = False,\n    stream: int | None = None,\n"
        required = "".join(f'"{each}", ' for each in call.required.split())
        lines += f"    decode_calls.check_given(options, ({required.rstrip()}))\n" if required else ""
        call_line = (
            "    more = (out_type, out_group, out_scale_type, out_scale_tiles, out_scales, amax)\n"
            "    outputs = decode_calls.Outputs(lse, out, stream, *more)\n"
        )
        call_line += (
            f"    return decode_calls.call(tensors, options, ({', '.join(mods)}), init, outputs, pad)\n"
        )
    doc = write_doc(call.doc, options, "    ")
    arguments = write_arguments(call, options) + more + "    **others: Any,\n"
    lines = f"    if others:\n        host_names.refuse({name}, others)\n{lines}"
    return f"def {name}(\n{arguments}) -> Any:\n{doc}\n{lines}{call_line}"


def write_plan(call: Call, rows: list[dict]) -> str:
    options = list_options(rows, call)
    arguments = [f"{name}: int" for name in PLAN_SIZES]
    arguments += [f"{name}: {kind}" for name, kind in PLAN_FORM.items()]
    arguments += [f"{name}: {served.type} = {served.default}" for name, served in options.items()]
    lines = "".join(f"        {line},\n" for line in ("self", "*", *arguments))
    names = {
        "sizes": [*PLAN_SIZES, "kv_heads", "value_dim", "queries"],
        "options": [name for name in options if name not in MODS],
        "form": [n for n in PLAN_FORM if n not in ("kv_heads", "value_dim", "queries", "device")],
    }
    body = ""
    for what, each in names.items():
        entries = "".join(f'            "{n}": {n},\n' for n in each)
        body += f"        {what} = {{\n{entries}        }}\n"
    return (
        f"class DecodePlan(decode_plan.PlannedDecode):\n{write_doc(call.doc, options, '    ')}\n\n"
        f"    def __init__(\n{lines}    ) -> None:\n{body}"
        f"        super().__init__(sizes, options, ({', '.join(MODS)}), form, device)\n"
    )


def write_schema(name: str, call: Call, rows: list[dict]) -> str:
    """The arguments of an operator."""
    options = list_options(rows, call)
    required = call.required.split()
    known = {each: f"Tensor? {each}=None" for each in call.tensors.split()}
    known |= {each: f"Tensor? {each}=None" for each in _STATE.split()}
    known["captures"] = "Tensor[]? captures=None"
    known |= {each: f"Tensor? {each}=None" for each in _ADDED.split() if each in call.order.split()}
    if name == "mla_decode":
        known["v_scale"] = "Tensor? v_scale=None"
    for each, served in options.items():
        if each in call.composed.split():
            continue
        text = served.schema.format(name=each)
        known[each] = text.partition("=")[0].replace("?", "") if each in required else text
    order = [*call.order.split(), *(each for each in known if each not in call.order.split())]
    tensors = [f"Tensor {each}" for each in call.positional.split()]
    return ", ".join([*tensors, *(known[each] for each in order)])


def make_serving_module(rows: list[dict]) -> str:
    """python/attn/serving/serving_signatures.py."""
    parts = [write_function(n, call, rows) for n, call in CALLS.items() if n != "DecodePlan"]
    parts.append(write_plan(CALLS["DecodePlan"], rows))
    code = "\n\n".join(parts)
    return f'''"""Calls of servers, whose options are those of a problem.

{NOTICE}"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..calls.call_arguments import Modification
from ..options import host_names
from . import added_keys, cascading, decode_calls, decode_plan

{chr(10)}{code}'''


def make_settings_module(rows: list[dict]) -> str:
    """python/attn/serving/settings_table.py."""
    found = {row["name"]: row for row in rows}
    served = {n: get_served(row) for n, row in found.items() if n not in FROM_TENSORS}
    served["out_type"] = get_served(found["out_type"])
    served |= OWN
    fields = read = values = ""
    for name, each in served.items():
        is_region = each.stored == "str" and each.read == name
        default = '""' if is_region else each.default or "None"
        fields += f"    {name}: {each.stored} = {default}\n"
        read += f"    {name}: Any = {default},\n"
        values += f"        {each.read.format(name=name)},\n"
    schemas = ""
    for name in OPERATORS:
        text = write_schema(name, CALLS[name], rows)
        pieces = textwrap.wrap(text, width=88, break_on_hyphens=False, drop_whitespace=False)
        schemas += f'    "{name}": (\n' + "".join(f"        {each!r}\n" for each in pieces) + "    ),\n"
    tensors = dict.fromkeys(
        each for name in OPERATORS for each in f"{CALLS[name].positional} {CALLS[name].tensors}".split()
    )
    optional = dict.fromkeys(
        each for name in OPERATORS for each in f"{CALLS[name].tensors} {_STATE} {_ADDED}".split()
    )
    factors = [n for n in served if n in found and found[n]["kind"] == "factor"]

    def write_tuple(names: list[str]) -> str:
        return "(\n" + "".join(f'    "{name}",\n' for name in names) + ")"

    return f'''"""What callers of servers say beside the tensors, and the arguments of torch's operators.

{NOTICE}"""

from __future__ import annotations

from typing import Any, NamedTuple

from ..options import readers


class Fields(NamedTuple):
    """What a caller says beside the tensors, checked. Regions are texts."""

{fields}

def read_fields(
    *,
{read}) -> Fields:
    """Raises ArgumentError for what no option is."""
    return Fields(
{values}    )


#: Factors of a problem: attributes of the op by these names.
FACTORS = ({", ".join(f'"{name}"' for name in factors)})
#: Arguments of calls that are tensors, and which of them may be None.
TENSORS = {write_tuple(list(tensors | optional))}
OPTIONAL_TENSORS = {write_tuple(list(optional))}
#: The arguments of torch's operators, by their names.
SCHEMAS = {{
{schemas}}}
'''
