"""Every study of measured mutants that can be read from publishers' files, and put into a store."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from wildtype.datasets.measurements import Measurements
from wildtype.datasets.reading import ReadReport
from wildtype.datasets.store import Store
from wildtype.errors import MissingFileError, SourceError
from wildtype.organism import GeneIndex
from wildtype.sources.yeast.screens import (
    baryshnikova2010,
    celaj2020,
    costanzo2010,
    costanzo2016,
    diazmejia2018,
    growth,
    jonikas2009,
    kuzmin2018,
    kuzmin2020,
    tau_sga,
)
from wildtype.sources.yeast.traits import calmorph, deleteome, messner2023, phenome

READERS: Mapping[str, Callable[..., Measurements]] = {
    "kuzmin2018": kuzmin2018.read,
    "kuzmin2018-calls": kuzmin2018.read_calls,
    "kuzmin2020": kuzmin2020.read,
    "tau-sga": tau_sga.read,
    "costanzo2010": costanzo2010.read,
    "costanzo2016": costanzo2016.read,
    "costanzo2016-dcell": costanzo2016.read_dcell,
    "baryshnikova2010": baryshnikova2010.read,
    "celaj2020": celaj2020.read,
    "jonikas2009": jonikas2009.read,
    "diazmejia2018": diazmejia2018.read,
    **growth.READERS,
    **phenome.READERS,
    "ohya2005": calmorph.read,
    "kemmeren2014": deleteome.read,
    "messner2023": messner2023.read,
}
"""``read(folder, genes, *, collect) -> Measurements`` by the name of the study."""


@dataclass(frozen=True, eq=False)
class Ingested:
    """What became of one study.

    Attributes
    ----------
    name : str
        Name of the study.
    measurements : int
        Rows that the store holds of it now; 0 where it is left out.
    readings : tuple of Reading
        What became of the rows of its files.
    left_out : str
        Why it is not in the store; empty where it is.
    """

    name: str
    measurements: int = 0
    readings: tuple[ReadReport, ...] = ()
    left_out: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return it in plain values."""
        return asdict(self)


def ingest(
    store: Store, folder: str | Path, genes: GeneIndex, names: Sequence[str] = ()
) -> Iterator[Ingested]:
    """Read studies from a folder into a store, one transaction each, and say what became of each.

    Parameters
    ----------
    store : Store
        Open for writing; a study that it holds already is replaced.
    folder : path
        Publishers' files.
    genes : GeneIndex
        Names are resolved to its systematic names.
    names : sequence of str
        Studies; without any, all those whose files are there, and the others are reported as left out.

    Raises
    ------
    SourceError
        If there is no such study, a file of a study that was asked for is not there, or any file is damaged
        or not in the published layout.
    """
    for name in names:
        if name not in READERS:
            raise SourceError(f"there is no study {name!r}; known studies: {', '.join(READERS)}")
    for name in names or READERS:
        readings: list[ReadReport] = []
        try:
            measurements = READERS[name](folder, genes, collect=readings.append)
        except MissingFileError as error:
            if names:
                raise
            yield Ingested(name, left_out=str(error))
            continue
        store.ingest(measurements, readings, replace=True)
        yield Ingested(name, len(measurements), tuple(readings))
