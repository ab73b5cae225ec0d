"""What check.py says about results that differ from the GPU's: by one bit, by
more than the bound of a sum, by an infinity."""

import check
import numpy as np

one = np.zeros(4, np.int32)
other = one.copy()
other[3] = 1
print("WRONG" if check.hash_of(one) != check.hash_of(other) else "missed")
sums = np.array([1.0, -8.0, 3.0], np.float32)
near = sums + np.float32(2.0**-20)
far = sums + np.float32(2.0**-16)
assert check.compare(("sum", 4, "float32"), near, sums) <= 1
print("WRONG" if check.compare(("sum", 4, "float32"), far, sums) > 1 else "missed")
far[0] = np.inf
print("WRONG" if check.compare(("sum", 4, "float32"), far, sums) > 1 else "missed")
