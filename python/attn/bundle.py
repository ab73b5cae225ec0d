"""Bundles: a compiled kernel in one file (docs/Bundles.md).

Reading checks everything before anything is used: magic, version, lengths and
hashes. Needs the standard library only.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import pathlib
import re
import struct
from collections.abc import Mapping, Sequence
from typing import Any

from . import record
from .errors import BundleError

MAGIC = b"ATTNBNDL"
VERSION = 1
_PREFIX = struct.Struct("<8sII32s")
_ALIGNMENT = 16
_CHIP = re.compile(r"sm_(\d+)(\d)([af]?)")


@dataclasses.dataclass(frozen=True)
class Image:
    """Code for some chip."""

    #: "cubin" or "ptx".
    kind: str
    #: What ptxas was told, or the PTX's target.
    chip: str
    data: bytes = dataclasses.field(repr=False)

    def runs_on(self, major: int, minor: int) -> bool:
        """Whether a device of this compute capability can load the image. A
        cubin runs on its major version from its minor version on, PTX on
        everything that is not older; an a-target on its own chip only, an
        f-target within its major version."""
        match = _CHIP.fullmatch(self.chip)
        if not match:
            return False
        own = int(match[1]), int(match[2])
        if match[3] == "a":
            return (major, minor) == own
        if self.kind == "ptx" and not match[3]:
            return (major, minor) >= own
        return major == own[0] and minor >= own[1]

    def _rank(self) -> tuple[bool, int]:
        match = _CHIP.fullmatch(self.chip)
        assert match
        return self.kind == "cubin", int(match[1] + match[2])


@dataclasses.dataclass(frozen=True)
class Bundle:
    """One kernel with its images."""

    #: The launch record.
    launch: dict[str, Any]
    images: tuple[Image, ...]

    @property
    def proofs(self) -> dict[str, record.Proof | None]:
        """What was shown of each kernel's synchronisation when it was compiled."""
        return record.read_proofs(self.launch)

    def __repr__(self) -> str:
        names = ", ".join(self.proofs)
        images = ", ".join(f"{image.kind} for {image.chip}" for image in self.images)
        return f"<attn.Bundle {names}: {images}; {record.describe_proofs(self.launch)}>"

    def pick(self, major: int, minor: int) -> Image:
        """The best image for a device: the newest cubin that runs there, else
        PTX. BundleError when there is none."""
        return self.rank(major, minor)[0]

    def rank(self, major: int, minor: int) -> list[Image]:
        """The images that run on a device, the best one first. BundleError when
        there is none."""
        fitting = [image for image in self.images if image.runs_on(major, minor)]
        if not fitting:
            there = ", ".join(f"{image.kind} for {image.chip}" for image in self.images)
            raise BundleError(
                f"kernel {self.launch.get('kernel')}: nothing in the bundle runs on compute "
                f"capability {major}.{minor}; it has {there}"
            )
        return sorted(fitting, key=Image._rank, reverse=True)


def _align(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT


def write(launch: Mapping[str, Any], images: Sequence[Image]) -> bytes:
    """The bytes of a bundle's file."""
    payload = bytearray()
    entries = []
    for image in images:
        payload += bytes(_align(len(payload)) - len(payload))
        entries.append(
            {
                "kind": image.kind,
                "chip": image.chip,
                "offset": len(payload),
                "bytes": len(image.data),
                "sha256": hashlib.sha256(image.data).hexdigest(),
            }
        )
        payload += image.data
    header = json.dumps({"launch": launch, "images": entries}).encode()
    prefix = _PREFIX.pack(MAGIC, VERSION, len(header), hashlib.sha256(header).digest())
    start = prefix + header
    return start + bytes(_align(len(start)) - len(start)) + payload


def _read_image(entry: Any, payload: memoryview, fail: Any) -> Image:
    try:
        kind, chip, offset, size = (entry[key] for key in ("kind", "chip", "offset", "bytes"))
        digest = entry["sha256"]
    except (KeyError, TypeError):
        raise fail(f"an image without kind, chip, offset, bytes or sha256: {entry!r}") from None
    if kind not in ("cubin", "ptx") or not isinstance(chip, str) or not _CHIP.fullmatch(chip):
        raise fail(f"an unknown image: {kind!r} for {chip!r}")
    if type(offset) is not int or type(size) is not int or offset < 0 or size < 0:
        raise fail(f"an image at {offset!r} of {size!r} bytes")
    if offset + size > len(payload):
        raise fail(
            f"truncated: the {kind} for {chip} ends at byte {offset + size} of the images, "
            f"which have {len(payload)}"
        )
    data = bytes(payload[offset : offset + size])
    if hashlib.sha256(data).hexdigest() != digest:
        raise fail(f"damaged: the {kind} for {chip} does not have the hash that the header states")
    return Image(kind, chip, data)


def parse(data: bytes, name: str = "<bundle>") -> Bundle:
    """Reads a bundle's bytes. BundleError names what is wrong."""

    def fail(message: str) -> BundleError:
        return BundleError(f"{name}: {message}")

    if len(data) < _PREFIX.size:
        if MAGIC.startswith(data[: len(MAGIC)]) or data.startswith(MAGIC):
            raise fail(f"truncated: expected at least {_PREFIX.size} bytes, got {len(data)}")
        raise fail("this is no bundle")
    magic, version, header_bytes, digest = _PREFIX.unpack_from(data)
    if magic != MAGIC:
        raise fail("this is no bundle")
    if version != VERSION:
        newer = "; a newer attn or attn-runtime reads it" if version > VERSION else ""
        raise fail(f"expected bundle version {VERSION}, got {version}{newer}")
    header = data[_PREFIX.size : _PREFIX.size + header_bytes]
    if len(header) != header_bytes:
        raise fail(f"truncated: expected a header of {header_bytes} bytes, got {len(header)}")
    if hashlib.sha256(header).digest() != digest:
        raise fail("damaged: the header does not have the hash that the file states")
    try:
        contents = json.loads(header)
        launch, entries = contents["launch"], contents["images"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise fail("a header without launch record and images") from None
    if not isinstance(launch, dict) or not isinstance(entries, list):
        raise fail("a header without launch record and images")
    payload = memoryview(data)[_align(_PREFIX.size + header_bytes) :]
    return Bundle(launch, tuple(_read_image(entry, payload, fail) for entry in entries))


def read(path: str | os.PathLike[str]) -> Bundle:
    """Reads a file; BundleError also when it cannot be read."""
    try:
        data = pathlib.Path(path).read_bytes()
    except OSError as error:
        raise BundleError(f"{os.fspath(path)}: {error.strerror}") from None
    except ValueError as error:
        raise BundleError(f"{os.fspath(path)!r}: {error}") from None
    return parse(data, str(os.fspath(path)))
