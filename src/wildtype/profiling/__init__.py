"""Where the time goes: benches that compare a fast formulation with its plain definition in one run."""
