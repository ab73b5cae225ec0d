"""What `sim-grid.py --whole` has seen, in a file that only grows."""

import hashlib
import json
import pathlib
import re
import subprocess
import tempfile
import threading

from tool_util import open_lines

#: The flag of attn-compile that refuses what is not proved.
PROVED = "--require-proof"


def digest(*parts):
    return hashlib.sha256(b"".join(parts)).hexdigest()[:16]


class GridState:
    """Results by case. One that passed is taken over as long as both programs are the
    same, and under another compiler where its kernel and launch are."""

    def __init__(self, path, compiler, simulator, again, timeout):
        self.programs = str(compiler), str(simulator)
        marks = [digest(pathlib.Path(program).read_bytes()) for program in self.programs]
        self.marks = dict(zip(("compiler", "simulator"), marks))
        self.timeout = timeout
        self.lock = threading.Lock()
        lines, self.file = open_lines(path, again)
        self.known = {line["name"]: line for line in lines}

    def find(self, case, **marks):
        """What is known of a case that passed under these marks."""
        known = self.known.get(case.name, {"reasons": ["unknown"]})
        fits = all(known.get(key) == value for key, value in marks.items())
        return known if fits and not known["reasons"] else None

    def compile(self, command):
        """Why a case cannot be compiled; empty if it can."""
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=self.timeout, check=False
            )
        except subprocess.TimeoutExpired:
            return f"not compiled after {self.timeout} s"
        if not done.returncode:
            return ""
        lines = [line for line in done.stderr.splitlines() if "error" in line]
        return (lines or [f"attn-compile ends with status {done.returncode}"])[0]

    def get(self, case, run):
        """The result of a case: the known one, or that of `run`, called with a command
        whose output is the simulator's report."""
        if known := self.find(case, **self.marks):
            return known
        kernel, unproved = "", {}
        with tempfile.TemporaryDirectory() as folder:
            compile_it, run_it = case.stages(*self.programs, folder)
            result = {"name": case.name, "dtype": case.dtype, "seconds": 0}
            reason = self.compile(compile_it)
            if "the synchronisation of" in reason and PROVED in compile_it:
                # What is not proved is simulated all the same.
                unproved = {"unproved": re.sub(r"^.*?error: ", "", reason)}
                reason = self.compile([flag for flag in compile_it if flag != PROVED])
            if reason and case.is_refusal(reason):
                result |= {"reasons": [], "refused": re.sub(r"^.*?error: ", "", reason)}
            elif reason:
                result["reasons"] = [reason]
            else:
                files = sorted(pathlib.Path(folder).iterdir())
                kernel = digest(*(file.read_bytes() for file in files))
                marks = {"kernel": kernel, "simulator": self.marks["simulator"]}
                result = self.find(case, **marks) or run(run_it)
        result = result | unproved | self.marks | {"kernel": kernel, "command": case.show("/tmp")}
        with self.lock:
            self.known[case.name] = result
            self.file.write(json.dumps(result) + "\n")
            self.file.flush()
        return result
