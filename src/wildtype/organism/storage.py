"""An organism on disk: one folder with `organism.json` (what it is) and `arrays.npz` (no pickle)."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from wildtype.errors import DatasetError, reason_of
from wildtype.files import sha256_of_file, write_json, write_text, writing, writing_folder
from wildtype.organism.features import BASIS, FeatureBlock, GeneFeatures
from wildtype.organism.genes import Coordinates, GeneIndex
from wildtype.organism.metabolism import Metabolism
from wildtype.organism.organism import Organism
from wildtype.organism.relations import Appended, GeneGraphs, Relation
from wildtype.organism.units import Units
from wildtype.unpacking import read_arrays

FORMAT = 2


def save_organism(organism: Organism, folder: str | Path, *, beside: Mapping[str, str] | None = None) -> None:
    """Write an organism to ``folder``, completely or not at all; raises ``OutputError``.

    ``beside`` holds texts by file name that are written into the folder, too.
    """
    arrays: dict[str, Any] = {}
    relations, blocks = [], []
    for i, relation in enumerate(organism.graphs.values()):
        a = relation.adjacency
        arrays |= {f"graph{i}.indptr": a.indptr, f"graph{i}.indices": a.indices, f"graph{i}.data": a.data}
        relations.append(relation.facts)
    for i, block in enumerate(organism.features.values()):
        arrays[f"feature{i}"] = block.values
        if block.basis is not None:
            arrays[f"basis{i}.mean"], arrays[f"basis{i}.loadings"] = block.basis.mean, block.basis.loadings
        blocks.append(block.facts)
    appended = organism.appended
    arrays["appended"] = appended.genes
    arrays |= {f"valid{i}": pairs for i, pairs in enumerate(appended.valid.values())}
    if organism.metabolism is not None:
        arrays |= {f"metabolism.{key}": value for key, value in organism.metabolism.to_arrays().items()}
    if organism.essential is not None:
        arrays["essential"] = organism.essential
    if organism.dubious is not None:
        arrays["dubious"] = organism.dubious
    if organism.foreign is not None:
        arrays["foreign"] = organism.foreign
    if organism.coordinates is not None:
        arrays |= {f"coordinates.{key}": value for key, value in organism.coordinates.to_arrays().items()}
    if organism.units is not None:
        table = organism.units.table
        arrays |= {"units.indptr": table.indptr, "units.indices": table.indices}
    with writing_folder(folder) as temporary:
        with writing(temporary / "arrays.npz") as path, open(path, "wb") as handle:
            np.savez(handle, **arrays)
        record = {
            "format_version": FORMAT,
            "name": organism.name,
            "description": organism.description,
            "genes": organism.genes.to_json(),
            "relations": relations,
            "features": blocks,
            "valid": list(appended.valid),
            "genes_of_units": None if organism.units is None else organism.units.genes.to_json(),
            "arrays_sha256": sha256_of_file(temporary / "arrays.npz"),
        }
        write_json(temporary / "organism.json", record)
        for name, text in (beside or {}).items():
            write_text(temporary / name, text)


def is_current(folder: str | Path) -> bool:
    """Return whether a folder holds an organism of this format; `read_organism` checks for damage."""
    try:
        record = json.loads((Path(folder) / "organism.json").read_text(encoding="utf-8"))
        return bool(record["format_version"] == FORMAT)
    except (OSError, ValueError, KeyError, TypeError):
        return False


def read_organism(folder: str | Path) -> Organism:
    """Read an organism that ``save_organism`` wrote.

    Raises
    ------
    DatasetError
        If the folder is missing, damaged, or of another format.
    """
    folder = Path(folder)
    remedy = "remove the folder and build it again, as `wildtype data build` does"
    try:
        record = json.loads((folder / "organism.json").read_text(encoding="utf-8"))
        if record["format_version"] != FORMAT:
            raise DatasetError(f"{folder} has format {record['format_version']}, expected {FORMAT}: {remedy}")
        if sha256_of_file(folder / "arrays.npz") != record["arrays_sha256"]:
            raise DatasetError(f"{folder / 'arrays.npz'} does not match its recorded sha256: {remedy}")
        arrays = read_arrays(folder / "arrays.npz")
        genes = GeneIndex.from_json(record["genes"])
        n = len(genes)
        graphs = GeneGraphs(
            Relation(
                adjacency=sparse.csr_array(
                    (arrays[f"graph{i}.data"], arrays[f"graph{i}.indices"], arrays[f"graph{i}.indptr"]),
                    shape=(n, n),
                ),
                **relation,
            )
            for i, relation in enumerate(record["relations"])
        )
        features = GeneFeatures(
            FeatureBlock.from_facts(
                block,
                arrays[f"feature{i}"],
                {part: arrays[f"basis{i}.{part}"] for part in BASIS if block["basis"]},
            )
            for i, block in enumerate(record["features"])
        )
        flat, places = (
            {key.removeprefix(prefix): a for key, a in arrays.items() if key.startswith(prefix)}
            for prefix in ("metabolism.", "coordinates.")
        )
        return Organism(
            name=record["name"],
            genes=genes,
            graphs=graphs,
            features=features,
            metabolism=Metabolism.from_arrays(flat) if flat else None,
            essential=arrays.get("essential"),
            description=record["description"],
            appended=Appended(
                arrays.get("appended", np.zeros(0, np.int64)),
                {name: arrays[f"valid{i}"] for i, name in enumerate(record.get("valid", []))},
            ),
            coordinates=Coordinates.from_arrays(places) if places else None,
            dubious=arrays.get("dubious"),
            units=_units(record.get("genes_of_units"), arrays),
            foreign=arrays.get("foreign"),
        )
    except FileNotFoundError as error:
        raise DatasetError(
            f"there is no organism at {folder} ({error.filename} is missing): build it first"
        ) from error
    except (KeyError, ValueError, TypeError, EOFError, OSError, zipfile.BadZipFile) as error:
        if isinstance(error, DatasetError) and str(folder) in str(error):
            raise
        raise DatasetError(f"the organism at {folder} is damaged ({reason_of(error)}): {remedy}") from error


def _units(genes: Mapping[str, Any] | None, arrays: Mapping[str, NDArray[Any]]) -> Units | None:
    if genes is None:
        return None
    index = GeneIndex.from_json(genes)
    indptr, indices = arrays["units.indptr"], arrays["units.indices"]
    ones = np.ones(indices.size, np.float32)
    return Units(index, sparse.csr_array((ones, indices, indptr), shape=(indptr.size - 1, len(index))))
