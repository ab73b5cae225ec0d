"""Starts a long run, waits until it says how far it is, and interrupts it."""

import signal
import subprocess
import sys
import time

# Whoever runs in the background of a shell ignores Ctrl-C, and so do its children.
signal.signal(signal.SIGINT, signal.SIG_DFL)
process = subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
for line in process.stderr:
    print(line, end="")
    if "warning" not in line:
        break
start = time.monotonic()
process.send_signal(signal.SIGINT)
out, _ = process.communicate()
print("interrupted" if process.returncode == -signal.SIGINT else f"status {process.returncode}")
print("at once" if time.monotonic() - start < 2 else "late", out)
