"""Your own screen: a script with cells. Run it, or its cells one by one, in an editor with ``# %%``."""

# %% [markdown]
# # Your own screen
#
# This example uses a model and a few new measurements to choose the next mutants to build. The measurements
# are simulated, so the script needs no data; yours come from a table.

# %%
import numpy as np
import pandas as pd

import wildtype as wt

SMALL = {
    "data__rows": 2000, "training__epochs": 2, "model__layers": 1, "model__width": 14, "model__heads": 7,
    "model__head__heads": 2, "model__trees__bags": 0, "model__evidence__equivalents": False,
    "run__replicates": 50, "run__progress": False,
}  # fmt: skip
run = wt.fit(dataset="ecoli-core-growth", split__name="random", seed=0, baselines=["mean"], **SMALL)
model = wt.load(run.path)

# %% [markdown]
# ## The first round, before any measurement
#
# The design contains all pairs of 40 candidates. Essential genes and pairs measured in training are excluded.
# No gene may occur in more than three rows; otherwise one gene could dominate the list.
#
# Epsilon is the fitness of a double mutant minus the product of the fitnesses of its single mutants. Its
# conformal interval is calibrated on the errors of validation rows.

# %%
candidates = list(model.genes.names[:40])
DESIGN = {
    "top": 10,
    "direction": "low",
    "exclude_essential": True,
    "unmeasured": True,
    "max_per_gene": 3,
    "interval": 0.9,
}
first = model.screen(2, candidates, **DESIGN)
print(first[["genes", "epsilon", "epsilon_low", "epsilon_high"]])

# %% [markdown]
# ## Build the mutants and add their measurements
#
# A table with a column of genes and a column of values is enough. The measurements become evidence: the model
# retrieves them as input, in the same way as its training measurements. It is not trained again.

# %%
draw = np.random.default_rng(0)
measured = pd.DataFrame(
    {"genes": first["genes"], "value": first["epsilon"] + draw.normal(0, 0.05, len(first))}
)
informed = model.with_evidence(measured)

# %% [markdown]
# ## The next round
#
# The second round uses the same design. It excludes the measured pairs, and the predictions for similar
# mutants change.

# %%
second = informed.screen(2, candidates, **DESIGN)
assert not set(second["genes"]) & set(first["genes"])
before = model.predict([genes.split(",") for genes in second["genes"]])["epsilon"]
print(second[["genes", "epsilon", "epsilon_low", "epsilon_high"]].assign(before=before.to_numpy()))

# %% [markdown]
# From the command line, `wildtype screen RUN --among candidates.txt --evidence measured.csv` does the same.
