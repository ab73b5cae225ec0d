"""Compiled kernels in memory and on disk.

A file is written under another name and renamed, so that a reader never sees a
part of it, whichever processes write at once. Each file begins with the hash of
its key and contents: what is damaged, has another's name, or was written by
another version counts as absent and is written anew. A folder that cannot be written costs speed
only.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import pathlib
import stat
import threading

#: Goes into every key; grows when the contents of files change.
VERSION = 2
_HASH_BYTES = 32

_lock = threading.Lock()
_memory: dict[str, object] = {}


def get_folder() -> pathlib.Path | None:
    """$ATTN_CACHE_DIR (none when it is empty), else `attn` in the user's cache."""
    named = os.environ.get("ATTN_CACHE_DIR")
    if named is not None:
        return pathlib.Path(named) if named else None
    base = os.environ.get("XDG_CACHE_HOME")
    return (pathlib.Path(base) if base else pathlib.Path.home() / ".cache") / "attn"


def make_key(*parts: str) -> str:
    """A file name for what was made from `parts`."""
    digest = hashlib.sha256(f"{VERSION}".encode())
    for part in parts:
        raw = part.encode()
        digest.update(len(raw).to_bytes(8, "little") + raw)
    return digest.hexdigest()


def _seal(key: str, contents: bytes) -> bytes:
    """What a file begins with. Two files that changed places are wrong both."""
    return hashlib.sha256(f"{VERSION} {len(key)} {key} ".encode() + contents).digest()


def _read_file(path: pathlib.Path) -> bytes | None:
    """A file's bytes; None where there is none, and of what is no file: opening a pipe would
    wait for its other end, and a device has none."""
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    except (OSError, ValueError):
        return None
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            return None
        with os.fdopen(handle, "rb", closefd=False) as file:
            return file.read()
    except OSError:
        return None
    finally:
        os.close(handle)


def read(key: str) -> bytes | None:
    """The contents of a file, or None."""
    folder = get_folder()
    if folder is None:
        return None
    raw = _read_file(folder / key)
    if raw is None:
        return None
    contents = raw[_HASH_BYTES:]
    return contents if _seal(key, contents) == raw[:_HASH_BYTES] else None


def write(key: str, contents: bytes) -> None:
    """Writes a file as a whole or not at all."""
    folder = get_folder()
    if folder is None:
        return
    # Not with the package: it takes longer than most of that.
    import tempfile

    temporary = None
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=folder, prefix=".")
        with os.fdopen(handle, "wb") as file:
            file.write(_seal(key, contents) + contents)
        os.replace(temporary, folder / key)
    except (OSError, ValueError):
        if temporary is not None:
            with contextlib.suppress(OSError):
                os.unlink(temporary)


def get_object(key: str) -> object | None:
    """An object of this process."""
    with _lock:
        return _memory.get(key)


def put_object(key: str, value: object) -> object:
    """Keeps `value`, unless another thread was first; returns what is kept."""
    with _lock:
        return _memory.setdefault(key, value)


def clear_memory() -> None:
    """Forgets the objects of this process; files stay."""
    with _lock:
        _memory.clear()
