"""One run from settings to folder: data, fit, comparison with every baseline, save."""
