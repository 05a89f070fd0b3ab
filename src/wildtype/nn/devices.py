"""Devices that tensors can be on: one by its name, and how to wait for it."""

from __future__ import annotations

from collections.abc import Callable

import torch

from wildtype.errors import ConfigError


def device_named(name: str) -> torch.device:
    """Return the device of this machine that is called ``cpu``, ``cuda`` or ``cuda:1``.

    Raises
    ------
    ConfigError
        If there is none.
    """
    try:
        device = torch.device(name)
    except RuntimeError:
        raise ConfigError(f"device={name!r} is no device: give cpu or cuda") from None
    count = torch.cuda.device_count()
    if device.type not in ("cpu", "cuda") or (device.type == "cuda" and (device.index or 0) >= count):
        raise ConfigError(f"device={name!r}: torch sees {count} CUDA devices: give cpu, or one of these")
    return device


def waits_for(device: torch.device) -> Callable[[], object]:
    """Return a call that waits until a device has done all that it was given."""
    # A GPU runs kernels behind the program's back: without this a clock would time their launches alone.
    return (lambda: torch.cuda.synchronize(device)) if device.type == "cuda" else (lambda: None)
