"""Random calls of the stand-in driver: handles that are valid, null, stale or of another kind,
addresses of the device that are valid, freed or made up, buffers of the host that have the
stated sizes. None may crash.

usage: random_driver_calls.py [--sequences=1000] [--seed=0] [--jobs=1]
  --jobs  processes, each of which runs its part with a seed of its own

Prints how many calls came back with which status, and how much memory the processes had after a
tenth of their sequences and at the end. The exit status is 1 where a process ended by a crash, a
sanitizer had something to say, or memory that the driver had taken was lost: the seed and what was
said are printed. What Python itself loses does not count.

With the sanitizers, from a build of the preset `sanitize` in build-sanitize, on any machine that
has Python and these two libraries:

  ninja -C build-sanitize AttnCudaDriver
  LD_PRELOAD=$(clang-22 -print-file-name=libclang_rt.asan.so) PYTHONMALLOC=malloc \\
    ASAN_OPTIONS=detect_leaks=1:quarantine_size_mb=16 LSAN_OPTIONS=exitcode=0 \\
    LD_LIBRARY_PATH=build-sanitize/lib/driver ATTN_SIM_CHIPS=sm_90a ATTN_SIM_QUIET=1 \\
    ATTN_SIM_JOBS=1 python3 random_driver_calls.py --sequences=1000000 --jobs=32
"""

import argparse
import collections
import ctypes
import pathlib
import random
import re
import subprocess
import sys

PTX = b"""
.version 8.0
.target sm_80
.address_size 64
.global .align 4 .u32 counter;
.visible .entry increment(.param .u64 p, .param .u32 n)
{
.reg .b32 %r<4>;
.reg .b64 %d<3>;
ld.param.u64 %d0, [p];
mov.u32 %r0, %tid.x;
mul.wide.u32 %d1, %r0, 4;
add.u64 %d1, %d0, %d1;
ld.global.u32 %r1, [%d1];
ld.param.u32 %r2, [n];
add.u32 %r1, %r1, %r2;
st.global.u32 [%d1], %r1;
ret;
}
"""
SIZE = 4096
KINDS = ("context", "module", "function", "stream", "event", "graph", "link")


class Caller:
    """Calls functions at random, and keeps what they make."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.library = ctypes.CDLL("libcuda.so.1")
        self.statuses: collections.Counter = collections.Counter()
        self.made: dict = {kind: [] for kind in KINDS}
        self.addresses: list = []
        self.host = ctypes.create_string_buffer(SIZE)
        self.place = ctypes.c_uint64()
        self.image = ctypes.c_void_p()

    def handle(self, kind: str):
        """A handle: of the kind, of another, null, one of the default streams, or made up."""
        pick = self.random.random()
        if pick < 0.75 and self.made[kind]:
            return ctypes.c_void_p(self.random.choice(self.made[kind]))
        others = [each for kinds in self.made.values() for each in kinds]
        made_up = [0, 1, 2, 0x5A0300000010, self.random.getrandbits(64)]
        return ctypes.c_void_p(self.random.choice(others + made_up))

    def address(self):
        """An address of the device, valid or not."""
        if self.addresses and self.random.random() < 0.85:
            return ctypes.c_uint64(
                self.random.choice(self.addresses) + self.random.choice((0, 0, 0, 4, 64))
            )
        return ctypes.c_uint64(self.random.choice((0, 64, 2**47, self.random.getrandbits(64))))

    def bytes(self):
        """A size that the host's buffer has."""
        return ctypes.c_size_t(self.random.choice((0, 1, 4, 64, SIZE)))

    def call(self, name: str, *arguments, made: str = "") -> int:
        """Calls a function; what it leaves in the place is kept as a handle of a kind."""
        self.place.value = 0
        status = getattr(self.library, name)(*arguments)
        self.statuses[status] += 1
        if made == "address" and not status:
            self.addresses.append(self.place.value)
        elif made and not status and self.place.value:
            self.made[made].append(self.place.value)
        return status

    def launch(self) -> int:
        """A launch with sizes and parameters that may be wrong."""
        pointer, count = self.address(), ctypes.c_uint(self.random.getrandbits(16))
        given = [ctypes.addressof(pointer), ctypes.addressof(count)]
        if self.random.random() < 0.05:
            given[self.random.randrange(2)] = None
        parameters = (ctypes.c_void_p * 2)(*given)
        sizes = [ctypes.c_uint(self.random.choice((1, 1, 1, 2, 0))) for _ in range(5)]
        threads = ctypes.c_uint(self.random.choice((32, 1, 64, 0, 2000)))
        shared = ctypes.c_uint(self.random.choice((0, 0, 1024, 2**20)))
        return self.call(
            "cuLaunchKernel", self.handle("function"), *sizes[:3], threads, *sizes[3:], shared,
            self.handle("stream"), self.random.choice((parameters, parameters, None)), None,
        )  # fmt: skip

    def launch_with_attributes(self) -> int:
        """A launch with attributes of any kind: cooperative, programmatic, of clusters."""
        pointer, count = self.address(), ctypes.c_uint(1)
        parameters = (ctypes.c_void_p * 2)(ctypes.addressof(pointer), ctypes.addressof(count))
        attributes = (ctypes.c_uint * 36)(self.random.randrange(12), 0, 1, 1, 1)
        attributes[18:20] = [6, 0]
        attributes[20] = self.random.choice((0, 1))
        config = (ctypes.c_uint64 * 7)(1 | 1 << 32, 1 | 32 << 32, 1 | 1 << 32, 0)
        config[4] = self.handle("stream").value or 0
        config[5] = ctypes.addressof(attributes)
        config[6] = self.random.choice((0, 1, 2))
        return self.call("cuLaunchKernelEx", config, self.handle("function"), parameters, None)

    def step(self) -> None:
        """One call."""
        place = ctypes.byref(self.place)
        value = ctypes.c_uint(self.random.getrandbits(32))
        flags = ctypes.c_uint(self.random.choice((0, 1)))
        handle, address, host = self.handle, self.address, self.host
        calls = [
            lambda: self.call("cuDevicePrimaryCtxRetain", place, self.random.choice((0, 0, 0, 7)), made="context"),
            lambda: self.call("cuCtxSetCurrent", handle("context")),
            lambda: self.call("cuCtxPushCurrent_v2", handle("context")),
            lambda: self.call("cuCtxPopCurrent_v2", None),
            lambda: self.call("cuCtxSynchronize"),
            lambda: self.call("cuModuleLoadData", place, self.random.choice((PTX, b"none", None)), made="module"),
            lambda: self.call("cuModuleUnload", handle("module")),
            lambda: self.call("cuModuleGetFunction", place, handle("module"), self.random.choice((b"increment", b"x")), made="function"),
            lambda: self.call("cuModuleGetGlobal_v2", place, None, handle("module"), b"counter", made="address"),
            lambda: self.call("cuFuncGetAttribute", place, self.random.randrange(-1, 18), handle("function")),
            lambda: self.call("cuFuncSetAttribute", handle("function"), self.random.randrange(-1, 18), self.random.choice((0, 1, 99999, -1))),
            lambda: self.call("cuMemAlloc_v2", place, ctypes.c_size_t(self.random.choice((0, 1, SIZE, 2**60))), made="address"),
            lambda: self.call("cuMemAllocAsync", place, self.bytes(), handle("stream"), made="address"),
            lambda: self.call("cuMemFree_v2", address()),
            lambda: self.call("cuMemFreeAsync", address(), handle("stream")),
            lambda: self.call("cuMemcpyHtoD_v2", address(), host, self.bytes()),
            lambda: self.call("cuMemcpyDtoHAsync_v2", host, address(), self.bytes(), handle("stream")),
            lambda: self.call("cuMemsetD32Async", address(), value, ctypes.c_size_t(self.random.choice((0, 8, 1024))), handle("stream")),
            lambda: self.call("cuMemHostRegister_v2", host, self.bytes(), 0),
            lambda: self.call("cuMemHostUnregister", host),
            lambda: self.call("cuPointerGetAttribute", place, self.random.randrange(20), address()),
            lambda: self.call("cuStreamCreate", place, flags, made="stream"),
            lambda: self.call("cuStreamDestroy_v2", handle("stream")),
            lambda: self.call("cuStreamSynchronize", handle("stream")),
            lambda: self.call("cuStreamWaitEvent", handle("stream"), handle("event"), 0),
            lambda: self.call("cuStreamBeginCapture_v2", handle("stream"), 0),
            lambda: self.call("cuStreamEndCapture", handle("stream"), place, made="graph"),
            lambda: self.call("cuGraphInstantiateWithFlags", place, handle("graph"), 0, made="graph"),
            lambda: self.call("cuGraphLaunch", handle("graph"), handle("stream")),
            lambda: self.call("cuGraphDestroy", handle("graph")),
            lambda: self.call("cuEventCreate", place, 0, made="event"),
            lambda: self.call("cuEventRecord", handle("event"), handle("stream")),
            lambda: self.call("cuEventSynchronize", handle("event")),
            lambda: self.call("cuEventElapsedTime", place, handle("event"), handle("event")),
            lambda: self.call("cuEventDestroy_v2", handle("event")),
            lambda: self.call("cuLinkCreate_v2", 0, None, None, place, made="link"),
            lambda: self.call("cuLinkAddData_v2", handle("link"), self.random.randrange(-1, 5), self.random.choice((PTX, b"none", None)), ctypes.c_size_t(len(PTX) if self.random.random() < 0.5 else 4), None, 0, None, None),
            lambda: self.call("cuLinkComplete", handle("link"), self.random.choice((ctypes.byref(self.image), None)), place),
            lambda: self.call("cuLinkDestroy", handle("link")),
            lambda: self.call("_cudaGetDevice", place),
            lambda: self.call("_cudaSetDevice", self.random.choice((0, 0, 7, -1))),
            lambda: self.call("_cudaMalloc", place, self.bytes(), made="address"),
            lambda: self.call("_cudaMemsetAsync", address(), 3, self.bytes(), handle("stream")),
            lambda: self.call("_cudaLibraryLoadData", place, self.random.choice((PTX, b"none", None)), None, None, 0, None, None, 0, made="module"),
            lambda: self.call("_cudaLibraryGetKernel", place, handle("module"), b"increment", made="function"),
            lambda: self.call("_cudaFuncSetAttribute", handle("function"), self.random.randrange(-1, 18), 1),
            self.launch, self.launch, self.launch_with_attributes,
        ]  # fmt: skip
        self.random.choice(calls)()

    def run(self, length: int) -> None:
        """A sequence: what most programs begin with, then anything."""
        place = ctypes.byref(self.place)
        self.call("cuInit", 0)
        self.call("cuDevicePrimaryCtxRetain", place, 0, made="context")
        self.call("cuCtxSetCurrent", ctypes.c_void_p(self.made["context"][-1]))
        self.call("cuModuleLoadData", place, PTX, made="module")
        module = ctypes.c_void_p(self.made["module"][-1])
        self.call("cuModuleGetFunction", place, module, b"increment", made="function")
        self.call("cuMemAlloc_v2", place, ctypes.c_size_t(SIZE), made="address")
        for _ in range(length):
            self.step()
        for kinds in self.made.values():
            del kinds[:-20]
        del self.addresses[:-20]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sequences", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    if options.jobs > 1:
        return run_jobs(options.sequences, options.seed, options.jobs)
    caller, memory = Caller(options.seed), []
    for number in range(options.sequences):
        caller.run(30)
        if number in (options.sequences // 10, options.sequences - 1):
            memory.append(measure_memory())
    print(" ".join(f"{status}:{count}" for status, count in sorted(caller.statuses.items())))
    print("memory", *memory)
    return 0


def measure_memory() -> int:
    """The process's memory in KiB."""
    status = pathlib.Path("/proc/self/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0])


def find_leaks(text: str) -> list[str]:
    """What LeakSanitizer says of memory that the driver has taken."""
    blocks = re.split(r"\n\s*\n", text)
    return [each for each in blocks if " leak of " in each and "libcuda.so" in each]


def run_jobs(sequences: int, seed: int, jobs: int) -> int:
    """Divides the sequences among processes."""
    running = []
    for number in range(jobs):
        own = sequences // jobs + (number < sequences % jobs)
        command = [sys.executable, __file__, f"--sequences={own}", f"--seed={seed + number}"]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        running.append((seed + number, subprocess.Popen(command, **pipes)))
    statuses: collections.Counter = collections.Counter()
    wrong, memory = 0, collections.Counter()
    for own_seed, process in running:
        out, err = process.communicate()
        counts, _, kib = out.partition("memory")
        for pair in counts.split():
            status, count = pair.split(":")
            statuses[int(status)] += int(count)
        memory.update(dict(enumerate(map(int, kib.split()))))
        leaks = find_leaks(err)
        said = "runtime error" in err or "ERROR: AddressSanitizer" in err or bool(leaks)
        if process.returncode or said:
            wrong += 1
            words = "\n\n".join(leaks[:3]) if leaks else err[-3000:]
            print(f"seed {own_seed} ended with {process.returncode}:\n{words}")
    print(" ".join(f"{status}:{count}" for status, count in sorted(statuses.items())))
    print(f"memory {memory[0] // 1024} -> {memory[1] // 1024} MiB, {wrong} of {jobs} processes wrong")
    return int(wrong != 0)


if __name__ == "__main__":
    sys.exit(main())
