"""Where the time goes: records of phases, comparisons, traces, scaling, estimates; benches below."""
