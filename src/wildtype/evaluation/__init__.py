"""How good predictions are: metrics, noise guide, intervals and paired comparisons."""

from wildtype.evaluation.bootstrap import IntervalEstimate
from wildtype.evaluation.compare import Comparison, Score, evaluate_predictions

__all__ = ["Comparison", "IntervalEstimate", "Score", "evaluate_predictions"]
