"""What a mutant reads from the cell does not depend on foreign genes that it lacks."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

import wildtype as wt
from tests.tiny import tiny_dataset
from wildtype.datasets import Dataset
from wildtype.experiments.run import train
from wildtype.experiments.settings.compose import compose
from wildtype.models.cell_transformer.config import CellTransformerConfig
from wildtype.models.cell_transformer.model import CellTransformer
from wildtype.models.checkpoint import load_checkpoint
from wildtype.models.interface import organism_tensors
from wildtype.mutants import Kind, MutantTable
from wildtype.mutants.batch import MutantBatch


def with_foreign() -> Dataset:
    """The tiny dataset, half of whose pairs are measured with one of two foreign genes, too."""
    dataset = tiny_dataset()
    organism = dataset.organism
    for name, shape in (("NEW1", [0.5, -1.0, 2.0]), ("NEW2", [1.0, 1.0, 0.0])):
        organism = organism.add_gene(name, features={"shape": shape})
    dataset = replace(
        dataset, organism=organism, single_fitness=None, single_fitness_sd=None, single_fitness_source=""
    )
    pairs = dataset.table.take(np.flatnonzero(dataset.table.order == 2)[::2])
    gene = np.column_stack([pairs.matrix(2), 24 + np.arange(len(pairs)) % 2])
    kind = np.column_stack([pairs.kind.reshape(-1, 2), np.full(len(pairs), Kind.ADDED)])
    more = MutantTable.from_matrix(
        gene, kind=kind.reshape(-1), value=pairs.value + 0.1, phenotype=pairs.phenotype
    )
    return replace(dataset, table=MutantTable.concatenate([dataset.table, more]))


def test_z_of_mutants_without_a_foreign_gene_does_not_read_it() -> None:
    organism = with_foreign().organism
    config = CellTransformerConfig(width=16, heads=4, layers=1, table=False)
    torch.manual_seed(0)
    model = CellTransformer(config, genes=26, features=3, phenotypes=1).eval()
    seen = organism_tensors(model, organism, torch.randn(26, 3))
    wild_type = model.encode(seen)
    kinds = np.array([0, 0, 0, Kind.ADDED], np.uint8)
    batch = MutantBatch.from_table(MutantTable.build([0, 1, 2, 24], [0, 2, 4], kind=kinds))
    before = model.head.whole_cell(wild_type, batch)
    genes = wild_type.genes.clone()
    genes[24:] += torch.randn(2, 16)
    after = model.head.whole_cell(replace(wild_type, genes=genes), batch)
    assert torch.equal(before[0], after[0])
    assert not torch.equal(before[1], after[1])


def test_a_run_with_foreign_genes_is_the_same_after_loading(tmp_path: Path) -> None:
    words = [
        "data.name=tiny-growth", "model.table=false", "model.width=16", "model.heads=4", "model.layers=1",
        "model.head.heads=2", "training.epochs=1", "baselines=[]", "run.progress=false", "run.replicates=10",
        "model.evidence.tokens=8", f"run.folder={tmp_path / 'run'}",
    ]  # fmt: skip
    train(compose(words), dataset=with_foreign())
    checkpoint = load_checkpoint(tmp_path / "run")
    assert checkpoint.organism.native == 24
    assert checkpoint.validation is not None
    # Stored predictions were made by the model before it was saved.
    again = checkpoint.predict(checkpoint.known.rows("validation"))[:, 0]
    np.testing.assert_allclose(again, checkpoint.validation.predicted, atol=1e-6)
    frame = wt.load(tmp_path / "run").predict([["G001", "G002"], ["G001", "G002", "NEW1"]])
    assert frame["kinds"][1] == "absent,absent,added"
    assert frame["epsilon"][0] != frame["epsilon"][1]
