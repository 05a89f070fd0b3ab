"""Gene graphs: who works with whom."""
