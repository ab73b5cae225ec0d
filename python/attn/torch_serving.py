"""The operators torch.ops.attn.decode, decode_lse, decode_out, merge_states, and those
of `attn.mla_decode` and `attn.prefill`.

Importing this module defines them; the first call of `attn.decode`, `attn.prefill` or
`attn.merge_states` on torch tensors does so.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

from .calls import attention_outputs
from .errors import ArgumentError, LibraryError
from .launch import device_tensors
from .options import readers
from .options.argument_names import LATENT_POOLS, OUTPUTS
from .serving import decode_launch, merging
from .serving.decode_problem import PAIRED, count_output_columns
from .serving.query_rows import find_outputs
from .serving.settings import Settings
from .serving.settings_table import OPTIONAL_TENSORS, SCHEMAS, TENSORS
from .tensors import host_tensors, tensor_views
from .tensors.argument_checks import check_beside, check_device, check_lse, check_out

try:
    import torch

    from .tensors import derivatives
except ImportError as error:
    raise LibraryError(f"the torch operators need torch: {error}") from error

if TYPE_CHECKING:
    from torch import Tensor

    from .calls.attention_outputs import Asked
    from .serving.decode_problem import DecodeProblem

_STATES = "Tensor partial_o, Tensor partial_lse"
#: The names of the settings of a call.
_FIELDS = Settings._fields
_TYPES = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32}
_TYPES |= {"f8E4M3FN": torch.float8_e4m3fn, "f8E5M2": torch.float8_e5m2, PAIRED: torch.uint8}
if hasattr(torch, "float8_e8m0fnu"):
    _TYPES["f8E8M0FNU"] = torch.float8_e8m0fnu
_is_on_host = operator.attrgetter("is_cpu")
_STRIDES = getattr(torch.Tag, "needs_exact_strides", torch.Tag.needs_fixed_stride_order)
_library: Any = torch.library.Library("attn", "FRAGMENT")  # type: ignore[no-untyped-call]


def _define(schema: str) -> None:
    _library.define(schema, tags=(torch.Tag.pt2_compliant_tag, _STRIDES))


def _implement(name: str, function: Any, fake: Any) -> None:
    _library.impl(name, function, "CompositeExplicitAutograd")
    torch.library.register_fake(f"attn::{name}", fake, lib=_library)


def make_outputs(
    q: Tensor, problem: DecodeProblem, lse: bool
) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """New outputs of a plan, in q's rank: o, its LSE and its scales."""
    middle = () if q.dim() == 3 else (problem.queries,)
    rows = (problem.batch, problem.heads, *middle)
    columns = count_output_columns(problem.out_type, problem.value_dim)
    o = torch.empty((*rows, columns), dtype=_TYPES[problem.out_type], device=q.device)
    log = torch.empty(rows, dtype=torch.float32, device=q.device) if lse else None
    if problem.out_group is None:
        return o, log, None
    linear = (*rows, problem.value_dim // problem.out_group)
    kind = _get_scale_type(problem.scales_type)
    return o, log, torch.empty(problem.scale_tiles or linear, dtype=kind, device=q.device)


def _get_scale_type(kind: str) -> torch.dtype:
    if kind not in _TYPES:
        raise ArgumentError(f"out_scale_type: this torch has no {kind}")
    return _TYPES[kind]


def _make_output(q: Tensor, dv: int) -> Tensor:
    """An o of `dv` columns whose rows lie as q's do."""
    if q.dim() == 3:
        return q.new_empty((*q.shape[:2], dv))
    batch, heads, queries, _dim = q.shape
    if heads > 1 and queries > 1 and q.stride(1) < q.stride(2):
        return q.new_empty((batch, queries, heads, dv)).transpose(1, 2)
    return q.new_empty((batch, heads, queries, dv))


def _make_packed(q: Tensor, dv: int) -> Tensor:
    return q.new_empty((*q.shape[:2], dv))


def _make_lse(q: Tensor) -> Tensor:
    return q.new_empty(q.shape[:-1], dtype=torch.float32)


def _ask_like(
    arrays: dict[str, Any],
    settings: Settings,
    outputs: dict[str, Tensor | None],
    group: int | None,
) -> Asked:
    """Returns the caller's outputs as what a call would ask for. Raises ArgumentError for outputs
    in host memory that a launch on a GPU would not take."""
    given = {
        name: device_tensors.describe(OUTPUTS.get(name, name), each)
        for name, each in outputs.items()
        if each is not None
    }
    views = decode_launch.read_views({"q": arrays["q"]} | given, settings)
    values = arrays["v_cache"].shape[-1] if settings.value_dim is None else settings.value_dim
    rows, o, lse = views["q"].shape[:3], views["o"], views.get("lse")
    found = find_outputs(views, o.dtype, settings, values, group)
    check_out(o, [*rows, count_output_columns(o.dtype, values)])
    for name, each in given.items():
        check_device(OUTPUTS.get(name, name), each, tensor_views.HOST)
    if lse is not None:
        check_lse(lse, rows)
    kind, tiles = found.get("scales_type"), "scale_tiles" in found
    return attention_outputs.Asked(o.dtype, found["out_group"], kind, tiles)


class _Form:
    """One of the operators `name`, `name_lse` and `name_out`, which launch the same
    kernels: o in new memory, o and its LSE in new memory, both in the caller's."""

    def __init__(self, name: str, ranks: tuple[int, ...], make_o: Any) -> None:
        self._ranks, self._make_o = ranks, make_o
        arguments = SCHEMAS[name]
        for schema in (
            f"{name}({arguments}) -> Tensor",
            f"{name}_lse({arguments}) -> (Tensor o, Tensor lse)",
            f"{name}_out({arguments}, *, Tensor(a!) o, Tensor(b!)? lse=None, "
            "Tensor(c!)? o_scales=None, Tensor(d!)? amax=None, int? out_group=None) -> ()",
        ):
            _define(schema)
        names = (name, f"{name}_lse", f"{name}_out")
        self._operators = [getattr(torch.ops.attn, each) for each in names]
        given = self._operators[0].default._schema.arguments
        #: Arguments by name and what they are where the dispatcher leaves them out.
        self._defaults = {each.name: each.default_value for each in given}
        _implement(name, self.run, self.make)
        _implement(f"{name}_lse", self.run_lse, self.make_lse)
        _implement(f"{name}_out", self.launch, _fake_out)

    def _read(self, operands: tuple[Any, ...]) -> dict[str, Any]:
        return self._defaults | dict(zip(self._defaults, operands, strict=False))

    def launch(
        self,
        *operands: Any,
        o: Tensor,
        lse: Tensor | None = None,
        o_scales: Tensor | None = None,
        amax: Tensor | None = None,
        out_group: int | None = None,
    ) -> None:
        """What is not a tensor is a setting."""
        given = self._read(operands)
        tensors = {
            LATENT_POOLS.get(name, name): given.pop(name) for name in TENSORS if name in given
        }
        tensors.setdefault("v_cache", None)
        tensors |= decode_launch.name_captures(given.pop("captures") or ())
        settings = Settings.read(**given)
        if _is_on_host(tensors["q"]):
            arrays = host_tensors.to_arrays(tensors)
            arrays["amax"] = None if amax is None else host_tensors.to_array("amax", amax)
            self._launch_host(arrays, settings, (o, lse, o_scales), out_group)
            return
        outputs = {"o": o, "lse": lse, "o_scales": o_scales, "amax": amax}
        decode_launch.launch_decode(tensors | outputs, settings, None, out_group)

    def _launch_host(
        self,
        arrays: dict[str, Any],
        settings: Settings,
        outputs: tuple[Tensor, Tensor | None, Tensor | None],
        group: int | None,
    ) -> None:
        named = dict(zip(("o", "lse", "o_scales"), outputs, strict=True))
        asked = _ask_like(arrays, settings, named, group)
        settings = settings._replace(out_type=asked.out_type)
        result = decode_launch.decode_numpy(arrays, settings, outputs[1] is not None, asked)
        is_packed = settings.max_seqlen_q is not None
        rows = int(arrays["cu_seqlens_q"][-1]) if is_packed else None
        given = {name: each for name, each in named.items() if each is not None}
        made = result if isinstance(result, tuple) else (result,)
        for (name, target), each in zip(given.items(), made, strict=True):
            is_tiled = name == "o_scales" and asked.tiles
            kept = attention_outputs.find_written_tiles(outputs[0], rows, group) if is_tiled else slice(rows)
            host_tensors.write(target, each, kept)

    def make(self, *operands: Any) -> Tensor:
        """The output without its contents."""
        given = self._read(operands)
        q, v_cache = given["q"], given.get("v_cache")
        ranks = " or ".join(map(str, self._ranks))
        if v_cache is None and q.dim() not in self._ranks:
            raise ArgumentError(f"expected q of rank {ranks}, got {q.dim()}")
        if v_cache is not None and (q.dim() not in self._ranks or v_cache.dim() != 4):
            raise ArgumentError(
                f"expected q of rank {ranks} and pools of rank 4, got {q.dim()} and {v_cache.dim()}"
            )
        result: Tensor = self._make_o(
            q, given["value_dim"] if v_cache is None else v_cache.shape[-1]
        )
        if given["out_scale"] is None:
            return result
        return torch.empty_like(result, dtype=torch.float8_e4m3fn)

    def make_lse(self, *operands: Any) -> tuple[Tensor, Tensor]:
        """Both outputs without their contents."""
        return self.make(*operands), _make_lse(operands[0])

    def run(self, *operands: Any) -> Tensor:
        o = self._erase(self.make(*operands))
        self.launch(*operands, o=o)
        return o

    def run_lse(self, *operands: Any) -> tuple[Tensor, Tensor]:
        o, lse = map(self._erase, self.make_lse(*operands))
        self.launch(*operands, o=o, lse=lse)
        return o, lse

    def _erase(self, output: Tensor) -> Tensor:
        """Packed queries may be beyond their bounds, which only the device knows: their rows,
        which no kernel writes, are NaN instead of what was in memory."""
        if self._make_o is _make_packed:
            output.view(torch.uint8).fill_(0xFF)
        return output

    def _make_scaled(
        self, operands: list[Any], lse: Any, asked: Asked
    ) -> tuple[Tensor, Any, Tensor | None]:
        """Outputs of an element type of their own, in the order of q's rows, with scales of groups
        of columns; an LSE where it is wanted and not given."""
        given = self._read(tuple(operands))
        q, v_cache = given["q"], given.get("v_cache")
        value_dim = given["value_dim"] if v_cache is None else v_cache.shape[-1]
        kind = asked.out_type or "f8E4M3FN"
        columns = count_output_columns(kind, value_dim)
        o = torch.empty_like(self._make_o(q, columns), dtype=_TYPES[kind])
        made = [o]
        scales = None
        if asked.group is not None:
            groups = attention_outputs.count_groups(value_dim, asked.group)
            dtype = _get_scale_type(attention_outputs.get_scale_type(asked))
            scales = self._make_o(q, groups)
            if asked.tiles:
                tokens = q.numel() // max(q.shape[1] * q.shape[-1], 1)
                scales = q.new_empty(attention_outputs.get_tiles(tokens, q.shape[1] * groups))
            scales = torch.empty_like(scales, dtype=dtype)
            made.append(scales)
        if lse is True:
            lse = _make_lse(q)
            made.append(lse)
        for each in made:
            self._erase(each)
        return o, lse, scales

    def call(self, given: dict[str, Any], lse: Any, out: Any, asked: Asked) -> Any:
        """The operator that writes what the caller wants; `given` has tensors and
        settings by name, what it lacks is as the operator has it."""
        operands = [
            given.get(LATENT_POOLS.get(name, name), each) for name, each in self._defaults.items()
        ]
        scales, amax = asked.scales, asked.amax
        is_plain = asked.out_type is None or (
            asked.group is None and asked.out_type == "f8E4M3FN" and given["out_scale"] is not None
        )
        if out is None and not is_plain:
            if not isinstance(lse, bool):
                raise tensor_views.make_output_error(out, lse)
            out, lse, scales = self._make_scaled(operands, lse, asked)
        if out is None and amax is not None:
            if not isinstance(lse, bool):
                raise tensor_views.make_output_error(out, lse)
            out = self._erase(self.make(*operands))
            lse = self._erase(_make_lse(operands[0])) if lse else False
        if out is None and lse is False:
            return self._operators[0](*operands)
        if out is None and lse is True:
            return self._operators[1](*operands)
        if out is None or lse is True:
            raise tensor_views.make_output_error(out, lse)
        log = None if lse is False else lse
        written = {"o_scales": scales, "amax": amax, "out_group": asked.group}
        self._operators[2](*operands, o=out, lse=log, **written)
        return decode_launch.join_results(out, log, scales)


def _fake_out(*_: Any, **__: Any) -> None:
    pass


def _merge_new(partial_o: Tensor, partial_lse: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    o, lse = _fake_merge(partial_o, partial_lse, dtype)
    if _is_on_host(partial_o):
        _merge_out(partial_o, partial_lse, o=o, lse=lse)
        return o, lse
    merging.launch_merge(partial_o, partial_lse, o, lse, None)
    return o, lse


def _fake_merge(
    partial_o: Tensor, partial_lse: Tensor, dtype: torch.dtype
) -> tuple[Tensor, Tensor]:
    o = partial_o.new_empty(partial_o.shape[1:], dtype=dtype)
    return o, partial_lse.new_empty(partial_lse.shape[1:])


def _merge_out(partial_o: Tensor, partial_lse: Tensor, *, o: Tensor, lse: Tensor) -> None:
    if _is_on_host(partial_o):
        taken = host_tensors.to_arrays({"partial_o": partial_o, "partial_lse": partial_lse})
        result = merging.merge_numpy(**taken, dtype=o.dtype)
        host_tensors.give(host_tensors.to_tensors(result), o, lse)
        return
    merging.launch_merge(partial_o, partial_lse, o, lse, None)


_DECODE = _Form("decode", (3, 4), _make_output)
_LATENT_DECODE = _Form("mla_decode", (3, 4), _make_output)
_PREFILL = _Form("prefill", (3,), _make_packed)
_define(f"merge_states({_STATES}, ScalarType dtype) -> (Tensor o, Tensor lse)")
_define(f"merge_states_out({_STATES}, *, Tensor(a!) o, Tensor(b!) lse) -> ()")
_implement("merge_states", _merge_new, _fake_merge)
_implement("merge_states_out", _merge_out, _fake_out)


def decode(
    tensors: dict[str, Any],
    captures: list[Any],
    settings: Settings,
    lse: Any,
    out: Any,
    asked: Asked,
) -> Any:
    """attn.decode, attn.mla_decode and attn.prefill for torch tensors."""
    form = _DECODE if settings.value_dim is None else _LATENT_DECODE
    if settings.max_seqlen_q is not None:
        form = _PREFILL
    for name, tensor in tensors.items():
        may_lack = name in OPTIONAL_TENSORS
        may_lack |= settings.value_dim is not None and name == "v_cache"
        if not (tensor is None and may_lack):
            named = decode_launch.name_arguments(settings).get(name, name)
            check_beside(named, tensor, tensors["q"])
    for number, tensor in enumerate(captures):
        check_beside(f"capture{number}", tensor, tensors["q"])
    for name, each in (("out", out), ("out_scales", asked.scales), ("amax", asked.amax)):
        if each is not None:
            check_beside(name, each, tensors["q"])
    if isinstance(lse, torch.Tensor) and lse.dim():
        check_beside("lse", lse, tensors["q"])
    if not isinstance(lse, (bool, torch.Tensor)):
        lse = readers.to_bool("lse", lse)
    derivatives.refuse((*tensors.values(), *captures))
    # Not its _asdict, which torch 2.8 does not compile.
    fields = dict(zip(_FIELDS, settings, strict=True))
    given = fields | tensors | {"captures": captures or None}
    if settings.window is not None:
        given["window"] = list(settings.window)
    return form.call(given, lse, out, asked)


def merge(partial_o: Tensor, partial_lse: Tensor, out: Any, lse: Any, dtype: Any) -> Any:
    """attn.merge_states for torch tensors."""
    check_beside("partial_lse", partial_lse, partial_o, "partial_o")
    for name, each in (("out", out), ("lse", lse)):
        if each is not None:
            check_beside(name, each, partial_o, "partial_o")
    derivatives.refuse((partial_o, partial_lse))
    if out is None and lse is None:
        kind = dtype if isinstance(dtype, torch.dtype) else _TYPES[merging.read_type(dtype)]
        return torch.ops.attn.merge_states(partial_o, partial_lse, kind)
    merging.check_given(out, lse)
    torch.ops.attn.merge_states_out(partial_o, partial_lse, o=out, lse=lse)
    return out, lse
