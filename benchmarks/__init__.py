"""Fast formulations against their plain definitions, in one run, as ratios; and planted slow-downs."""
