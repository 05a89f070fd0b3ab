"""What a trained cell transformer has learned: its heads, its latents, and what carries one prediction."""
