"""IREE as a target: CPU, CUDA, Vulkan and ROCm through one compiler."""

from .target import CUDA_ARCHITECTURES, IreeOptions, IreeTarget

__all__ = ["CUDA_ARCHITECTURES", "IreeOptions", "IreeTarget"]
