"""Organisms of users: one YAML and the files that it names, of which every row is counted."""
