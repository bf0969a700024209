"""The ML-GPU scheduler: objectives over jobs that run at different rates on different GPUs."""

from schedulers.ml_gpu.scheduler import MlGpuScheduler

__all__ = ["MlGpuScheduler"]
