"""Your own screen: a script with cells, to run as it is, or one by one in an editor that knows ``# %%``."""

# %% [markdown]
# # Your own screen
#
# A model, a few measurements of your own, and the question which mutants to build next. The measurements are
# made up here, so that the script needs no data; yours come from a table.

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
# ## Which pairs, before anything was measured?
#
# All pairs of some candidates; essential genes, and pairs that were measured in training, are left out. No
# gene may stand in more than three rows, or the list would be about one gene.

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
# ## Build them, and hand the measurements over
#
# A table with a column of genes and one of values is enough. The model is not trained again: it looks the
# measurements up, as it looks up those it was trained on.

# %%
draw = np.random.default_rng(0)
measured = pd.DataFrame(
    {"genes": first["genes"], "value": first["epsilon"] + draw.normal(0, 0.05, len(first))}
)
informed = model.with_evidence(measured)

# %% [markdown]
# ## The next round
#
# The same design again. What was measured is left out now, and everything near it has moved.

# %%
second = informed.screen(2, candidates, **DESIGN)
assert not set(second["genes"]) & set(first["genes"])
before = model.predict([genes.split(",") for genes in second["genes"]])["epsilon"]
print(second[["genes", "epsilon", "epsilon_low", "epsilon_high"]].assign(before=before.to_numpy()))

# %% [markdown]
# From the command line, `wildtype screen RUN --among candidates.txt --evidence measured.csv` does the same.
