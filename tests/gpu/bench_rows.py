# SPDX-License-Identifier: Apache-2.0
"""Bench rows -- what scripts/gpu-bench measures, and what is asked of it"""

from dataclasses import dataclass

BARE, SHIM = "bare", "shim"


@dataclass(frozen=True)
class Row:
    name: str
    family: str
    warm: int  # steps after which nothing is done for the first time
    rehearsal: int  # steps that tell how many a turn may have
    checked: int  # steps that go into the checksum
    host_bound: bool = False

    @property
    def speed_goal(self):
        """Of the best of the others."""
        return 1.05 if self.host_bound else 1.0


ROWS = (
    Row("mlp", "torch", 20, 80, 40, host_bound=True),
    Row("resnet50", "torch", 3, 6, 4),
    Row("gpt2", "torch", 2, 2, 2),
    Row("generate", "torch", 1, 1, 1),
    Row("rcnn", "torch", 2, 2, 2, host_bound=True),
    Row("gnn", "torch", 10, 40, 4, host_bound=True),
    Row("streams", "torch", 50, 200, 80, host_bound=True),
    Row("cupy", "cupy", 50, 300, 150, host_bound=True),
    Row("jax", "jax", 20, 80, 40),
    Row("driver", "driver", 20, 50, 50),
)
NAMES = tuple(row.name for row in ROWS)
USUAL = NAMES[:-1]  # the last is for testing the script where there is no framework

NO_CACHE = {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}
ASYNC = {"PYTORCH_CUDA_ALLOC_CONF": "backend:cudaMallocAsync"}
EXPANDABLE = {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}
PLATFORM = {"XLA_PYTHON_CLIENT_ALLOCATOR": "platform"}


@dataclass(frozen=True)
class Column:
    name: str
    settings: dict
    shim: bool = False
    naive: bool = False  # asks the bare driver for everything: the memory that is needed


COLUMNS = {
    "torch": (
        Column("default", {}),
        Column("no cache", NO_CACHE, naive=True),
        Column("cudaMallocAsync", ASYNC),
        Column("expandable", EXPANDABLE),
        Column("no cache + shim", NO_CACHE, shim=True),
        Column("async + shim", ASYNC, shim=True),
    ),
    "cupy": (
        Column("default", {}),
        Column("no cache", {"CUPY_POOL": "none"}, naive=True),
        Column("cudaMallocAsync", {"CUPY_POOL": "async"}),
        Column("no cache + shim", {"CUPY_POOL": "none"}, shim=True),
        Column("async + shim", {"CUPY_POOL": "async"}, shim=True),
    ),
    "jax": (
        Column("default", {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}),
        Column("no cache", PLATFORM, naive=True),
        Column("no cache + shim", PLATFORM, shim=True),
    ),
    "driver": (
        Column("no cache", {}, naive=True),
        Column("no cache + shim", {}, shim=True),
    ),
}  # fmt: skip

# What finding mistakes costs, in programs that ask the driver for everything.
WATCHED = ("mlp", "gnn", "streams")
WATCHING = (
    Column("bare", {}, naive=True),
    Column("unchecked", {"STREAMPOOL_CHECK": "off"}, shim=True),
    Column("shim", {}, shim=True),
    Column("native stacks", {"STREAMPOOL_STACK": "native"}, shim=True),
    Column("Python stacks", {"STREAMPOOL_STACK": "python"}, shim=True),
    Column("everything", {"STREAMPOOL_STACK": "both", "STREAMPOOL_CHECK": "uses,arguments,order"}, shim=True),
    Column("observe, Python", {"STREAMPOOL_MODE": "observe", "STREAMPOOL_STACK": "python"}, shim=True),
)  # fmt: skip
WATCHING_GOALS = {"shim": 1.05, "Python stacks": 1.15}  # times as long as bare
SANITIZERS = ("memcheck --leak-check full", "initcheck")

# Of every workload: nothing is fetched, and nothing is chosen by chance or by the clock.
SETTINGS = {
    "HF_HUB_OFFLINE": "1",
    "PYTHONHASHSEED": "0",
    "CUBLAS_WORKSPACE_CONFIG": ":4096:8",
    "TOKENIZERS_PARALLELISM": "false",
    "XLA_FLAGS": "--xla_gpu_autotune_level=0 --xla_gpu_deterministic_ops=true",
}

MEMORY_GOAL = 1.0  # of the naive column
MEMORY_EXCUSABLE = 1.03  # with the reason written beside it


@dataclass(frozen=True)
class Figure:
    key: str  # as tests/gpu/micro.c prints it
    title: str
    unit: str
    goal: str = ""  # "<= 60": of the shim's figure; ">= 98 % of bare": of the ratio
    more_is_better: bool = False


MICRO = (
    Figure("pair.sync", "hot pair, cuMemAlloc and cuMemFree, 4 KiB", "ns", "<= 60"),
    Figure("pair.async", "hot pair, cuMemAllocAsync and cuMemFreeAsync, 64 KiB", "ns", "<= 60"),
    Figure("pair.legacy", "the same on the legacy stream", "ns", "<= 60"),
    Figure("pair.pinned", "hot pair, cuMemHostAlloc and cuMemFreeHost, 8 bytes", "ns"),
    Figure("churn.sync", "churn, 4096 live, cuMemAlloc", "ns", "<= 120"),
    Figure("churn.async", "churn, 4096 live, cuMemAllocAsync", "ns", "<= 120"),
    Figure("threads.1", "1 thread", "Mpairs/s", "", True),
    Figure("threads.2", "2 threads, each on a stream of its own", "Mpairs/s", "", True),
    Figure("threads.4", "4 threads", "Mpairs/s", "", True),
    Figure("threads.8", "8 threads", "Mpairs/s", "", True),
    Figure("threads.16", "16 threads", "Mpairs/s", ">= 100", True),
    Figure("busy.p50", "cuMemFree behind a kernel of 50 ms, median", "ns"),
    Figure("busy.p99", "cuMemFree behind a kernel of 50 ms, p99", "ns", "<= 200"),
    Figure("handover.reuse", "hand-over along an event: same address", "%", ">= 100", True),
    Figure("handover.ns", "hand-over along an event: with its four calls", "ns"),
    Figure("mixed.sync.p50", "mixed with kernels, cuMemAlloc or cuMemFree, median", "ns"),
    Figure("mixed.sync.p99", "mixed with kernels, cuMemAlloc or cuMemFree, p99", "ns"),
    Figure("mixed.sync.p99.9", "mixed with kernels, cuMemAlloc or cuMemFree, p99.9", "ns", "<= 1000"),
    Figure("mixed.async.p50", "mixed with kernels, async, median", "ns"),
    Figure("mixed.async.p99", "mixed with kernels, async, p99", "ns"),
    Figure("mixed.async.p99.9", "mixed with kernels, async, p99.9", "ns", "<= 1000"),
    Figure("launch.1", "launch of an empty kernel, one stream", "ns", "<= bare + 5"),
    Figure("launch.16", "launch of an empty kernel, 16 streams in turn", "ns", "<= bare + 5"),
    Figure("launch.refused", "launch of no blocks, which the driver refuses at once", "ns", "<= bare + 5"),
    Figure("event.record", "cuEventRecord", "ns"),
    Figure("event.wait", "cuStreamWaitEvent", "ns"),
    Figure("event.query", "cuEventQuery", "ns"),
    Figure("copy.1M", "copy of 1 MiB from block to block", "GB/s", ">= 95 % of bare", True),
    Figure("copy.16M", "copy of 16 MiB", "GB/s", ">= 95 % of bare", True),
    Figure("copy.256M", "copy of 256 MiB", "GB/s", ">= 98 % of bare", True),
    Figure("copy.2G", "copy of 2 GiB", "GB/s", ">= 98 % of bare", True),
    Figure("fail.us", "cuMemAlloc of more than there is", "us", "<= 200"),
    Figure("fill.percent", "share of the free memory that can be had", "%", ">= 99.5", True),
    Figure("grow.async.2M.grow", "100 GiB in 2 MiB, cuMemAllocAsync", "ms", "<= 130"),
    Figure("grow.async.2M.trim", "... freed and trimmed", "ms", "<= 120"),
    Figure("grow.async.64M.grow", "100 GiB in 64 MiB, cuMemAllocAsync", "ms"),
    Figure("grow.async.64M.trim", "... freed and trimmed", "ms", "<= 120"),
    Figure("grow.async.1G.grow", "100 GiB in 1 GiB, cuMemAllocAsync", "ms", "<= 13"),
    Figure("grow.async.1G.trim", "... freed and trimmed", "ms", "<= 120"),
    Figure("grow.sync.2M.grow", "100 GiB in 2 MiB, cuMemAlloc", "ms", "<= 130"),
    Figure("grow.sync.2M.trim", "... freed", "ms", "<= 120"),
    Figure("grow.sync.64M.grow", "100 GiB in 64 MiB, cuMemAlloc", "ms"),
    Figure("grow.sync.64M.trim", "... freed", "ms", "<= 120"),
    Figure("grow.sync.1G.grow", "100 GiB in 1 GiB, cuMemAlloc", "ms", "<= 13"),
    Figure("grow.sync.1G.trim", "... freed", "ms", "<= 120"),
)

# Parts of micro.c, one process for each line; the second are long, and repeated less often.
# The hand-over comes first: where there is more idle memory, another block fits as well.
QUICK_PARTS = (
    ("handover", "pair", "churn", "mixed", "busy", "threads", "launch", "event", "copy", "fail", "fill"),
)
LONG_PARTS = (("grow.async",), ("grow.sync.2M",), ("grow.sync.64M",), ("grow.sync.1G",))


@dataclass(frozen=True)
class Phase:
    """What tests/gpu/calls.c does again and again; @goal is calls for 10^6 pairs."""

    name: str
    title: str
    goal: float


# One call for each 32 frees: what an event for a batch may cost.
SIXTEEN_STREAMS = 1e6 / 32

PHASES = (
    Phase("pair.async", "hot pair, async", 0),
    Phase("churn.async", "churn of 256, async", 0),
    Phase("streams.async", "hot pair, async, on 16 streams in turn", 0),
    Phase("pair.sync", "hot pair, cuMemAlloc, one busy stream", 0),
    Phase("churn.sync", "churn of 256, cuMemAlloc, one busy stream", 0),
    Phase("streams.sync", "churn of 256, cuMemAlloc, 16 busy streams", SIXTEEN_STREAMS),
)

# Of what calls.c prints: who counted.
SOURCES = {"cupti": "CUPTI", "simulated": "the simulated driver"}

# The program launches one kernel for each pair: that one is not the allocator's.
LAUNCH = "cuLaunchKernel"
