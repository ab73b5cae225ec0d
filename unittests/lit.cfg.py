"""lit configuration of the googletest binaries."""

import os
import sys

sys.path.append(os.path.join(os.path.dirname(__file__), "../scripts"))
import lit_cpu_time  # noqa: E402

config.name = "ATTN-Unit"
config.suffixes = []
config.test_exec_root = os.path.join(config.attn_obj_root, "unittests")
config.test_source_root = config.test_exec_root
config.test_format = lit_cpu_time.GoogleTest(".", "Tests")
