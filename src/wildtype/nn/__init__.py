"""Tensor layers, no biology: they know rows, keys, edges and ragged sets, and import torch only.

Each layer states the plain definition it equals, and its tests hold it to that definition in float64.
"""
