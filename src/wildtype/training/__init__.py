"""Fitting a model: objective, schedule, and a loop that resumes where it was killed."""
