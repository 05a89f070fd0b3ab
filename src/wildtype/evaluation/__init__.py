"""How good predictions are: metrics, noise guide, intervals and paired comparisons."""

from wildtype.evaluation.bootstrap import IntervalEstimate
from wildtype.evaluation.compare import evaluate_predictions
from wildtype.evaluation.comparison import Comparison, Score

__all__ = ["Comparison", "IntervalEstimate", "Score", "evaluate_predictions"]
