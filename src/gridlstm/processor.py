"""What the processor can do."""

import torch

__all__ = ["has_bfloat16"]


def has_bfloat16() -> bool:
    """Whether this processor multiplies bfloat16 matrices in hardware."""
    capabilities = torch.cpu.get_capabilities() if hasattr(torch.cpu, "get_capabilities") else {}
    return bool(capabilities.get("avx512_bf16") or capabilities.get("amx_bf16"))
