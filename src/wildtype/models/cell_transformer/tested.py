"""Which pairs of genes a relation was tested on, from the files that ``model.prior.tested`` names."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import torch

from wildtype.errors import ConfigError, shown
from wildtype.models.cell_transformer.config import PriorConfig
from wildtype.models.interface import CLS
from wildtype.nn.valid_pairs import ValidPairs
from wildtype.organism import Organism

SEPARATOR = re.compile(r"[\t,;]")


def tested_pairs(prior: PriorConfig, relation: str, organism: Organism) -> ValidPairs | None:
    """Return the valid pairs of tokens of a relation; None where all pairs are.

    A pair counts in both directions where the relation has no direction. Names that are no genes of the run
    are counted (``ValidPairs.unknown``): a file may list the whole genome.

    Raises
    ------
    ConfigError
        If the file is missing, holds no gene of the run, or lines of another number of names.
    AmbiguousGeneError
        If a name may mean several genes.
    """
    for tested, files in ((True, prior.tested), (False, prior.untested)):
        if relation not in files:
            continue
        what = f"model.prior.{'tested' if tested else 'untested'}.{relation}={files[relation]}"
        lines = _lines(Path(files[relation]), what)
        width = len(lines[0])
        wrong = next((line for line in lines if len(line) != width), None)
        if width > 2 or wrong is not None or not (tested or width == 2):
            wanted = "one gene per line, or two" if tested else "two genes per line"
            raise ConfigError(f"{what} has the line {shown(', '.join(wrong or lines[0]))}: write {wanted}")
        position = {name: _find(organism, name) for line in lines for name in line}
        found = np.array([[position[name] for name in line] for line in lines], np.int64)
        known = found[(found >= 0).all(1)]
        if not len(known):
            raise ConfigError(f"{what} holds no {'gene' if width == 1 else 'pair of genes'} of this run")
        unknown = sum(at < 0 for at in position.values())
        tokens, t = torch.from_numpy(known.T) + CLS + 1, len(organism.genes) + 1
        if width == 1:
            return ValidPairs.among(tokens[0], t, unknown=unknown)
        if not organism.graphs[relation].directed:
            tokens = torch.cat([tokens, tokens.flip(0)], 1)
        elif relation in prior.reverse:
            tokens = tokens.flip(0)
        return ValidPairs.of_pairs(tokens, t, tested=tested, unknown=unknown)
    return None


def _lines(path: Path, what: str) -> list[list[str]]:
    """Return the names on every line that has any."""
    if not path.is_file():
        raise ConfigError(f"{what}: there is no such file; check the path")
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise ConfigError(f"{what} is no text in UTF-8: write one or two genes per line") from error
    found = [[name.strip() for name in SEPARATOR.split(line)] for line in lines if line.strip()]
    if not found:
        raise ConfigError(f"{what} is empty: write one or two genes per line")
    return found


def _find(organism: Organism, name: str) -> int:
    """Return the position of a gene, -1 where no gene of the run has the name."""
    genes = organism.genes
    return genes.find(name) if name and genes.find_each(name) else -1
