"""How good predictions are: metrics, noise guide, intervals and paired comparisons."""

from wildtype.evaluation.bootstrap import Estimate
from wildtype.evaluation.compare import Comparison, Score, evaluate_predictions

__all__ = ["Comparison", "Estimate", "Score", "evaluate_predictions"]
