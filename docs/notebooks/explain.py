"""What a model has learned: a script with cells. Run it directly, or cell by cell in an editor."""

# %% [markdown]
# # What has it learned?
#
# A result from one seed may be a property of that seed. This example trains two small models and shows the
# agreement between them beside every result.

# %%
import wildtype as wt
from wildtype.experiments.explain import explain_runs
from wildtype.inference.explaining.explain import ExplanationRequest

SMALL = {
    "data__rows": 2000, "training__epochs": 3, "model__layers": 2, "model__width": 16, "model__heads": 8,
    "model__head__heads": 2, "model__head__direct": ["sum", "product"], "model__prior__weight": 1.0,
    "model__trees__bags": 0, "run__replicates": 100, "run__progress": False,
}  # fmt: skip
runs = [
    wt.fit(dataset="ecoli-core-growth", split__name="random", seed=seed, baselines=["mean"], **SMALL).path
    for seed in (0, 1)
]

# %% [markdown]
# ## Do attention heads follow the graphs that regularise them?
#
# The figure is the average precision of a gene's neighbours among all genes ranked by attention. It is
# compared with random graphs in which every gene keeps its number of partners.

# %%
asked = ExplanationRequest(sets=[["b0116", "b3731"]], mutants=120, graphs=3, exchanges=30)
found = explain_runs(runs, asked)
for head in found.heads:
    precision = head.average_precision
    mean, sd, random = precision.found.mean, precision.found.sd, precision.random_mean
    print(f"{head.relation:14} {mean:.2f} ± {sd:.2f}, on random graphs {random:.2f}")

# %% [markdown]
# One head as a table: row i holds the attention of gene i to every gene, and sums to 1. `lpd` (b0116) attends
# most to these genes.

# %%
attention = wt.load(runs[0]).attention(layer=1, head=0, genes=["b0116"])
print(attention.T.nlargest(5, "b0116"))

# %% [markdown]
# ## Are the latents reproducible?
#
# Interpret clusters of whole-cell latents only if different seeds agree on them.

# %%
assert found.latents is not None
print(f"{len(found.latents.clusters)} clusters; distances agree by {found.latents.distances_agree:.2f}")

# %% [markdown]
# ## Which inputs contribute to the prediction of one mutant?
#
# Integrated contributions sum to the difference between the network's predictions for the mutant and for the
# wild type. The phenotype is epsilon: the fitness of the double mutant minus the product of the fitnesses of
# the single mutants. The output gives mean and standard deviation over seeds.

# %%
(mutant,) = found.mutants
for part in mutant.parts:
    print(f"{part.name:20} {part.integrated.mean:+.4f} ± {part.integrated.sd:.4f}")

# %% [markdown]
# `wildtype explain RUN RUN --set b0116,b3731` prints these results and further tables. With `--save`, the
# report page of each run shows them.
