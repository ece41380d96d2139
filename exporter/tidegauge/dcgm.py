"""Names of the GPU series that NVIDIA's DCGM exporter exposes, one per GPU.

The profiling ones go from 0 to 1 and need a data-centre GPU; utilisation goes from 0 to 100 and says only that some
kernel ran.
"""

from typing import Final

SM_ACTIVE: Final = "DCGM_FI_PROF_SM_ACTIVE"
DRAM_ACTIVE: Final = "DCGM_FI_PROF_DRAM_ACTIVE"
GPU_UTIL: Final = "DCGM_FI_DEV_GPU_UTIL"

NAMES: Final = (SM_ACTIVE, DRAM_ACTIVE, GPU_UTIL)
GPU: Final = "gpu"
