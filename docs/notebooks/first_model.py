"""A first model: a script with cells, to run as it is, or one by one in an editor that knows ``# %%``."""

# %% [markdown]
# # A first model
#
# The whole way, from a dataset to predictions, on simulated *E. coli* core metabolism: nothing to download.

# %%
import wildtype as wt

dataset = wt.load_dataset("ecoli-core-growth")
names = ", ".join(phenotype.name for phenotype in dataset.phenotypes)
print(f"{len(dataset):,} measurements of {len(dataset.organism.genes)} genes: {names}")

# %% [markdown]
# Epsilon, the genetic interaction of a pair, is what models are trained to predict unless told otherwise.
# Most pairs do not interact:

# %%
table = dataset.to_pandas()
epsilon = table[table["phenotype"] == "epsilon"]
print(epsilon["value"].describe())

# %% [markdown]
# ## Train
#
# Settings are those of the command line, dots written as two underscores. These make it small and quick;
# leave them out for a model that is worth something.

# %%
SMALL = {
    "data__rows": 2000, "training__epochs": 3, "model__layers": 1, "model__width": 14, "model__heads": 7,
    "model__head__heads": 2, "model__trees__bags": 1, "run__replicates": 100, "run__progress": False,
}  # fmt: skip
BASELINES = ["mean", "additive_ridge", "boosting"]
run = wt.fit(dataset="ecoli-core-growth", split__name="random", seed=0, baselines=BASELINES, **SMALL)

# %% [markdown]
# ## The honest table
#
# Every model on the same test rows, with intervals from a bootstrap over genes. If a baseline wins,
# that is what it says.

# %%
comparison = run.comparisons["epsilon"]
print(comparison.winner_sentence)
for score in comparison.scores:
    r = score.pearson
    print(f"{score.model:20} {r.value:6.3f} [{r.low:.3f}, {r.high:.3f}]")

# %% [markdown]
# ## Predict
#
# A run folder is all that is needed, on any machine. The columns beside the prediction say how far to trust
# it: an interval, whether genes and order were seen, what was measured before.

# %%
model = wt.load(run.path)
predicted = model.predict([["b0902", "b1761"], ["b0116", "b0726"], ["b0116"]], interval=0.9)
print(predicted.T)

# %% [markdown]
# What the model predicts, what it was trained on and where its limits are stands in the model card of its
# checkpoint:

# %%
print((run.path / "checkpoint" / "model_card.md").read_text(encoding="utf-8"))
