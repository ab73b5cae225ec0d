"""lit configuration of the googletest binaries."""

import os

import lit.formats

config.name = "ATTN-Unit"
config.suffixes = []
config.test_exec_root = os.path.join(config.attn_obj_root, "unittests")
config.test_source_root = config.test_exec_root
config.test_format = lit.formats.GoogleTest(".", "Tests")
