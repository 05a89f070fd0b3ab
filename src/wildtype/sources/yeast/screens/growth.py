"""Growth screens of the deletion collections in one to twenty environments, as Yeast Phenome compiles them.

Heterozygous deletions of diploids are recorded as reduced expression at half the dose, so that an essential
gene is never taken for deleted.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from wildtype.datasets.measurements import Measurements
from wildtype.datasets.records import PhenotypeDefinition
from wildtype.errors import SourceError, shown
from wildtype.organism import GeneIndex
from wildtype.sources.text import REMEDY, Collector, ignore
from wildtype.sources.yeast.traits.headings import parse_heading
from wildtype.sources.yeast.traits.matrix import Column
from wildtype.sources.yeast.traits.tables import (
    BRESLOW,
    COSTANZO2021,
    DEUTSCHBAUER,
    GIAEVER,
    QIAN,
    STEINMETZ,
    Study,
    read_measurements,
)

SCREENS = (BRESLOW, DEUTSCHBAUER, QIAN, STEINMETZ, GIAEVER, COSTANZO2021)
PUBLISHERS = tuple(screen.publisher for screen in SCREENS)
GROWTH = {
    BRESLOW.name: PhenotypeDefinition(
        name="growth rate", direction="higher is fitter",
        description="growth rate relative to wild type, from competition of two strains",
    ),
    DEUTSCHBAUER.name: PhenotypeDefinition(
        name="fitness", direction="higher is fitter",
        description="growth rate relative to wild type, from relative abundance in pooled culture",
    ),
    QIAN.name: PhenotypeDefinition(
        name="fitness", direction="higher is fitter",
        description="relative to wild type, from barcodes sequenced in pooled culture",
    ),
    STEINMETZ.name: PhenotypeDefinition(
        name="growth score", unit="as published, not stated", direction="higher is fitter",
        description="from relative abundance in pooled culture; near 0 for most strains, negative where "
        "growth suffers",
    ),
    GIAEVER.name: PhenotypeDefinition(
        name="growth score", unit="as published, not stated", direction="higher is fitter",
        description="from relative abundance in pooled culture; near 0 for most strains, negative where "
        "growth suffers; not comparable between environments",
    ),
    COSTANZO2021.name: PhenotypeDefinition(
        name="growth effect", unit="as published, not stated", direction="higher is fitter",
        description="effect of the deletion on colony size in the condition; near 0 for most strains, "
        "negative where growth suffers",
    ),
}  # fmt: skip
SHAPE = PhenotypeDefinition(
    name="cell shape score",
    unit="score as published",
    level="trait",
    description="whole numbers; 0 for most strains",
)


def read(folder: str | Path, genes: GeneIndex, *, screen: Study, collect: Collector = ignore) -> Measurements:
    """Read one of `SCREENS`: every number of its table is one measurement.

    Raises
    ------
    SourceError
        If the file is missing, damaged, or not in the published layout.
    """

    def column(heading: str, place: str) -> Column:
        parsed = parse_heading(heading, place)
        if parsed.phenotype.startswith("growth"):
            return Column(GROWTH[screen.name], "", parsed.environment, parsed.strain)
        if screen is GIAEVER:
            return Column(SHAPE, parsed.phenotype, parsed.environment, parsed.strain)
        raise SourceError(
            f"{place}: received the phenotype {shown(parsed.phenotype)} in a heading, "
            f"expected growth; {REMEDY}"
        )

    return read_measurements(folder, genes, screen, column, collect)


READERS: dict[str, Callable[..., Measurements]] = {
    screen.name: partial(read, screen=screen) for screen in SCREENS
}
"""By name of the publisher: ``(folder, genes, *, collect) -> Measurements``."""
