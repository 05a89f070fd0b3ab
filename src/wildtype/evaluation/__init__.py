"""How good predictions are: metrics, noise guide, intervals and paired comparisons."""

from wildtype.evaluation.compare import Comparison, Estimate, Score, evaluate_predictions

__all__ = ["Comparison", "Estimate", "Score", "evaluate_predictions"]
