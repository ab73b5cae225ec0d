"""Steps in front of a launch that read nothing but what `DecodePlan.plan` takes.

A kernel that deals runs of keys (attn.plan_work) reads lengths only: launched once a step of a
model, it serves the launches of all layers."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from .. import bundle, runtime


def count_planned(record: Mapping[str, Any], batch: Collection[str]) -> int:
    """How many steps at the front read no tensors but these, which are a batch's; the last step
    is none of them."""
    steps = record.get("steps", ())
    count = 0
    for step in steps[:-1]:
        named = {arg["tensor"] for arg in step["args"] if "tensor" in arg}
        if not named or not named <= set(batch):
            break
        count += 1
    return count


def _is_named(name: str, steps: Sequence[Mapping[str, Any]], texts: Sequence[str]) -> bool:
    args = [arg for step in steps for arg in step["args"]]
    return any(arg.get("tensor") == name for arg in args) or any(
        f"{name}." in text for text in texts
    )


def take_steps(
    record: Mapping[str, Any], first: int, last: int
) -> tuple[dict[str, Any], list[int]]:
    """A record of some of the steps, and which workspaces of the whole one they have. What steps
    in front of them write persists."""
    steps = [dict(step) for step in record["steps"][first:last]]
    used = sorted({a["index"] for s in steps for a in s["args"] if a["kind"] == "workspace"})
    before = {
        arg["index"]
        for step in record["steps"][:first]
        for arg in step["args"]
        if arg["kind"] == "workspace"
    }
    for step in steps:
        step["args"] = [
            dict(arg, index=used.index(arg["index"])) if arg["kind"] == "workspace" else arg
            for arg in step["args"]
        ]
    workspaces = [
        dict(record["workspaces"][index], **({"persistent": True} if index in before else {}))
        for index in used
    ]
    texts = [text for step in steps for text in step["grid"]]
    texts += [arg["value"] for s in steps for arg in s["args"] if arg["kind"] == "expression"]
    texts += [each["bytes"] for each in workspaces]
    tensors = [t for t in record["tensors"] if _is_named(t["name"], steps, texts)]
    taken = {"steps": steps, "workspaces": workspaces, "tensors": tensors}
    return {**record, **taken}, used


class Part:
    """Some steps of a launch, as a launch of their own."""

    def __init__(self, whole: runtime.LoadedKernel, first: int, last: int) -> None:
        record, self._workspaces = take_steps(whole.launch_record, first, last)
        self.kernel = runtime.LoadedKernel(bundle.Bundle(record, whole.bundle.images))

    def pick(self, addresses: Sequence[int]) -> list[int]:
        """Those of the whole launch's workspaces that these steps have."""
        return [addresses[index] for index in self._workspaces]


def split(whole: runtime.LoadedKernel, count: int) -> tuple[Part, Part]:
    """The first steps, and those behind them."""
    return Part(whole, 0, count), Part(whole, count, len(whole.binder.steps))
