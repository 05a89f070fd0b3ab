"""What ``wildtype explain`` writes, small and made up."""

from __future__ import annotations

from typing import Any


def over(mean: float, sd: float | None = None) -> dict[str, Any]:
    return {"mean": mean, "sd": sd, "each": [mean]}


def explanation(name: str = "physical") -> dict[str, Any]:
    """A record in which every text is ``name``."""
    measure = {"found": over(0.7, 0.1), "random_mean": 0.1, "random_sd": 0.01}
    return {
        "format": 1,
        "agreement": name,
        "models": ["1", "2"],
        "heads": [
            {
                "layer": 0,
                "head": 1,
                "relation": name,
                "average_precision": measure,
                "recall_at_degree": measure,
                "mass": measure,
            }
        ],
        "free": [],
        "layers": [
            {
                "layer": 0,
                "kind": name,
                "name": name,
                "fold": over(12.5),
                "untrained": None,
                "found_in": 2,
                "models": 2,
            }
        ],
        "latents": {
            "drawn": name,
            "genes": [["G001"], ["G002"], ["G003"]],
            "x": [0.0, 1.0, 2.0],
            "y": [0.0, 1.0, 0.5],
            "cluster": [1, 2, 2],
            "explained": [0.7, 0.2],
            "clusters": [
                {
                    "number": 1,
                    "mutants": 3,
                    "genes": [{"gene": name}],
                    "sets": [{"name": name}],
                    "phenotypes": [{"phenotype": name, "median": 0.5}],
                }
            ],
        },
        "mutants": [
            {
                "genes": ["G001", name],
                "phenotype": name,
                "measured": None,
                "predicted": over(0.4),
                "parts": [{"name": name, "integrated": over(0.3)}],
                "cell": [{"gene": name, "weight": over(0.2), "integrated": over(0.01)}],
                "tokens": [{"edit": name, "value": 0.1, "weight": over(0.3)}],
            }
        ],
        "remarks": {"general": [], "free": [name]},
    }
