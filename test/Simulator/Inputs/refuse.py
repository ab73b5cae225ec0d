#!/usr/bin/env python3
"""An attn-sim that finds every run clean, and that every kernel does something else than is proved."""

import json
import sys

refuses = any(flag.startswith("--skeleton") for flag in sys.argv)
print(json.dumps({"skeleton": {"text": "thread 0 does not do what is proved"}} if refuses else {}))
sys.exit(3 if refuses else 0)
