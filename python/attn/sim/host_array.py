"""numpy arrays as arguments of Triton's kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class HostArray:
    """A numpy array where a kernel of Triton takes a pointer: `add[grid](HostArray(x), ...)`.
    The kernel works on the array's own memory."""

    def __init__(self, array: NDArray[np.generic]) -> None:
        self.array = array
        self.dtype = array.dtype
        self.shape = array.shape

    def data_ptr(self) -> int:
        """The address of the first element."""
        return int(self.array.ctypes.data)

    def find_memory(self) -> tuple[int, int]:
        """Address and bytes of all the memory that the array is part of."""
        import numpy as np

        whole = self.array
        while isinstance(whole.base, np.ndarray):
            whole = whole.base
        return int(whole.ctypes.data), whole.nbytes
