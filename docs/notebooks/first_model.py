"""A first model: a script with cells. Run it, or its cells one by one, in an editor with ``# %%``."""

# %% [markdown]
# # A first model
#
# This example goes from a dataset to predictions. It uses simulated *E. coli* core metabolism and downloads
# nothing.

# %%
import wildtype as wt

dataset = wt.load_dataset("ecoli-core-growth")
names = ", ".join(phenotype.name for phenotype in dataset.phenotypes)
print(f"{len(dataset):,} measurements of {len(dataset.organism.genes)} genes: {names}")

# %% [markdown]
# Models predict epsilon by default. Epsilon, the genetic interaction of a pair, is the fitness of the double
# mutant minus the product of the fitnesses of the single mutants. Most pairs do not interact:

# %%
table = dataset.to_pandas()
epsilon = table[table["phenotype"] == "epsilon"]
print(epsilon["value"].describe())

# %% [markdown]
# ## Train
#
# Settings have the names of the command line, with two underscores in place of each dot. These settings make
# the model small and quick; leave them out for an accurate model.

# %%
SMALL = {
    "data__rows": 2000, "training__epochs": 3, "model__layers": 1, "model__width": 14, "model__heads": 7,
    "model__head__heads": 2, "model__trees__bags": 1, "run__replicates": 100, "run__progress": False,
}  # fmt: skip
BASELINES = ["mean", "additive_ridge", "boosting"]
run = wt.fit(dataset="ecoli-core-growth", split__name="random", seed=0, baselines=BASELINES, **SMALL)

# %% [markdown]
# ## The comparison table
#
# The table compares all models on the same test rows, with intervals from a bootstrap over genes. If a
# baseline wins, the table reports it.

# %%
comparison = run.comparisons["epsilon"]
print(comparison.winner_sentence)
for score in comparison.scores:
    r = score.pearson
    print(f"{score.model:20} {r.value:6.3f} [{r.low:.3f}, {r.high:.3f}]")

# %% [markdown]
# ## Predict
#
# Prediction needs only the run directory, on any machine. Further columns describe how reliable a prediction
# is. They give a conformal interval, calibrated on the errors of validation rows, and earlier measurements.
# They also show whether the genes and the order (the number of perturbed genes) occur in training rows.

# %%
model = wt.load(run.path)
predicted = model.predict([["b0902", "b1761"], ["b0116", "b0726"], ["b0116"]], interval=0.9)
print(predicted.T)

# %% [markdown]
# The model card in the checkpoint describes the predicted phenotypes, the training data and the limits of the
# model:

# %%
print((run.path / "checkpoint" / "model_card.md").read_text(encoding="utf-8"))
