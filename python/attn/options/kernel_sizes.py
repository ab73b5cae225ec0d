"""Sizes that no kernel takes, by the names of the arguments that have them."""

from __future__ import annotations

from ..arrays import CARRIERS
from ..errors import ArgumentError

#: What rows of operands are a multiple of, in bytes.
_ROW_BYTES = 16
#: What the columns of values and the rotated ones of latent rows are a multiple of here.
_LATENT_COLUMNS = 16
#: The most keys of a page, as docs/attn-compile.md has it.
_MOST_KEYS = 65536


def pad(dim: int, dtype: str) -> int:
    """The least head dimension from `dim` on whose rows are whole pieces of 16 bytes."""
    unit = _ROW_BYTES // CARRIERS[dtype][1]
    return max(-(-dim // unit), 1) * unit


def pad_latent(columns: int) -> int:
    """The least number from `columns` on of values', or of rotated, columns of latent rows: whole
    pieces of 16 bytes in each type."""
    return -(-columns // _LATENT_COLUMNS) * _LATENT_COLUMNS


def check_page_size(name: str, keys: int) -> None:
    """Raises ArgumentError for pages of so many keys that no kernel takes."""
    if not 1 <= keys <= _MOST_KEYS:
        raise ArgumentError(f"{name}: expected pages of 1 to {_MOST_KEYS} keys, got {keys}")


def check_pool(name: str, pages: int, keys: int, sequences: int) -> None:
    """Raises ArgumentError for a pool without pages, of which so many sequences have keys, or
    whose pages have no keys."""
    if pages < 1 and sequences > 0:
        raise ArgumentError(f"{name}: expected at least 1 page, got 0")
    check_page_size(name, keys)


def check_dim(name: str, dim: int, dtype: str) -> None:
    """Raises ArgumentError for rows that are not whole pieces of 16 bytes."""
    padded = pad(dim, dtype)
    if dim != padded:
        raise ArgumentError(
            f"{name}: expected a head dimension that is a multiple of {pad(1, dtype)}, got {dim}; "
            f"pad to {padded} with zeros"
        )
