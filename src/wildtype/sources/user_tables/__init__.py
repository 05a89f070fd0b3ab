"""A user's own measurements: a table is read, checked as a whole, summed up, stored and made a dataset."""
