"""Explanation of trained models: attention heads, latents, and contributions to single predictions."""
