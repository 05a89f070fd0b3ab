"""From measurements to a dataset in named, counted stages: raw → convert → deduplicate → aggregate."""
