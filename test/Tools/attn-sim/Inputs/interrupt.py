"""Starts a run of hours, waits until it says how far it is, and interrupts it.

It has ended on the way if it says no more than that, and has no result.
"""

import signal
import subprocess
import sys

# Whoever runs in the background of a shell ignores Ctrl-C, and so do its children.
signal.signal(signal.SIGINT, signal.SIG_DFL)
process = subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
for line in process.stderr:
    print(line, end="")
    if "warning" not in line:
        break
process.send_signal(signal.SIGINT)
out, rest = process.communicate()
print("interrupted" if process.returncode == -signal.SIGINT else f"status {process.returncode}")
print("on the way" if not rest else "late", rest, out)
