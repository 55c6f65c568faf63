"""The chips to compile for, and the environment that libtpu needs."""

import dataclasses
from typing import Any


@dataclasses.dataclass(frozen=True)
class Chip:
    """A device as PJRT counts devices, with the numbers of its data sheet.

    Attributes:
        topology: The name of one host in PJRT.
        flops: Peak of bfloat16 matrix products, in FLOP/s.
        bandwidth: Memory bandwidth, in bytes/s.
        memory: Bytes of memory.
    """

    name: str
    topology: str
    flops: float
    bandwidth: float
    memory: float

    @property
    def is_gpu(self) -> bool:
        """Whether XLA's GPU compiler compiles for it."""
        return self.name == "h100"

    @property
    def platform(self) -> str:
        """TensorFlow's name of the platform to lower the step for."""
        return "GPU" if self.is_gpu else "TPU"

    @property
    def topology_options(self) -> dict[str, Any]:
        """The description of the GPU, which PJRT needs without one."""
        if not self.is_gpu:
            return {}
        return {"target_config": _H100, "topology": "1x1x1"}


# An H100 SXM as XLA describes GPUs: NVIDIA's numbers for compute capability 9.0
# and this card, and the versions of libraries to compile for.
_H100 = """
gpu_device_info {
  threads_per_block_limit: 1024
  threads_per_warp: 32
  threads_per_core_limit: 2048
  thread_dim_limit_x: 1024
  thread_dim_limit_y: 1024
  thread_dim_limit_z: 64
  block_dim_limit_x: 2147483647
  block_dim_limit_y: 65535
  block_dim_limit_z: 65535
  registers_per_core_limit: 65536
  registers_per_block_limit: 65536
  shared_memory_per_block: 49152
  shared_memory_per_block_optin: 232448
  shared_memory_per_core: 233472
  core_count: 132
  fpus_per_core: 128
  clock_rate_ghz: 1.98
  l2_cache_size: 52428800
  memory_bandwidth: 3352320000000
  device_memory_size: 84942979072
  cuda_compute_capability { major: 9 feature_extension: ACCELERATED_FEATURES }
  device_interconnect_info { active_links: 18 }
  name: "NVIDIA H100 80GB HBM3"
  driver_version: "13.0.0"
  runtime_version: "12.8.0"
  compile_time_toolkit_version: "12.8.0"
  dnn_version: "9.10.0"
}
platform_name: "CUDA"
dnn_version_info { major: 9 minor: 10 }
device_description_str: "NVIDIA H100 80GB HBM3"
"""
# A TPU host asks Google's servers for its description. Without these variables,
# libtpu waits for minutes on other machines.
TPU_ENVIRONMENT = {
    "TPU_SKIP_MDS_QUERY": "1",
    "TPU_WORKER_HOSTNAMES": "localhost",
    "TPU_WORKER_ID": "0",
    "TPU_ACCELERATOR_TYPE": "v5litepod-4",
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
}
# The two cores of a TPU v4 are two devices to PJRT; those of a v5p are one.
CHIPS = {
    chip.name: chip
    for chip in (
        Chip("h100", "h100", 989e12, 3350e9, 80e9),
        Chip("v4", "v4:2x2x1", 137.5e12, 614e9, 16e9),
        Chip("v5e", "v5e:2x2", 197e12, 819e9, 16e9),
        Chip("v5p", "v5p:2x2x1", 459e12, 2765e9, 95e9),
        Chip("v6e", "v6e:2x2", 918e12, 1640e9, 32e9),
    )
}
