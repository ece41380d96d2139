"""What holds a backend back, and the GPU figures behind it where DCGM's exporter is scraped."""

from tidegauge.catalogue import labels as lb
from tidegauge.catalogue.series import recorded

GPU_BUSY = recorded(
    "gpu_busy",
    "backend:gpu_sm_active:avg5m",
    "ratio",
    "Share of time the SMs of the backend's working GPUs were active, over 5 minutes; needs DCGM's profiling figures.",
    lb.BACKEND,
)
GPU_SPREAD = recorded(
    "gpu_spread",
    "backend:gpu_sm_active:spread5m",
    "ratio",
    "Busiest less idlest working GPU of the backend by SM activity, over 5 minutes; absent where several backends "
    "share its GPUs' place.",
    lb.BACKEND,
)
GPU_DRAM = recorded(
    "gpu_dram",
    "backend:gpu_dram_active:avg5m",
    "ratio",
    "Share of time the memory interface of the backend's working GPUs was busy, over 5 minutes.",
    lb.BACKEND,
)
BOTTLENECK = recorded(
    "bottleneck",
    "backend:bottleneck:level",
    "bool",
    "1 for the one level the backend is at; `unknown` says that the evidence does not suffice.",
    lb.BACKEND,
    lb.LEVEL,
    lb.GPU,
)
