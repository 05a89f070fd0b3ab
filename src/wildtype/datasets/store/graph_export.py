"""The tables of a store as nodes and relations, in the layout that graph databases bulk-load.

One CSV file per table. Its header defines each column: ``id:ID(Genotype)`` the key of a node,
``:START_ID(Measurement)`` and ``:END_ID(Genotype)`` the ends of a relation, ``value:double`` a property with
its type, ``:LABEL`` or ``:TYPE`` what every row of the file is. Keys are content ids and names, so that equal
stores give equal files.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from wildtype.datasets.records import RECORD_VERSION
from wildtype.datasets.store.store import Store
from wildtype.errors import OutputError
from wildtype.files import write_json, writing_folder

FORMAT = 1
"""Version of the layout, noted in `MANIFEST`; a later one is refused."""
MANIFEST = "graph.json"


@dataclass(frozen=True)
class GraphTable:
    """One file of nodes or relations.

    Attributes
    ----------
    name : str
        File name without ``.csv``.
    label : str
        Label of its nodes, or type of its relations.
    columns : mapping of str to str
        Header of every column but the last, and the SQL that gives it.
    source : str
        What the SQL reads from.
    distinct : bool
        Whether equal rows of the source are merged.
    """

    name: str
    label: str
    columns: Mapping[str, str]
    source: str
    distinct: bool = False

    @property
    def file(self) -> str:
        """File name."""
        return f"{self.name}.csv"

    @property
    def header(self) -> tuple[str, ...]:
        """Headers of all columns."""
        return (*self.columns, ":TYPE" if ":START_ID" in next(iter(self.columns)) else ":LABEL")

    @property
    def sql(self) -> str:
        """A query for the rows, in an order that depends on their content alone."""
        columns = ", ".join((*self.columns.values(), f"'{self.label}'"))
        return f"SELECT {'DISTINCT ' * self.distinct}{columns} FROM {self.source} ORDER BY ALL"


def _key(table: str) -> str:
    return f"replace({table}.id::VARCHAR, '-', '')"


def _same(*names: str) -> dict[str, str]:
    return {name: name.partition(":")[0] for name in names}


NODES = (
    GraphTable(
        "publication", "Publication",
        {"id:ID(Publication)": _key("publication")} | _same("citation", "doi", "pubmed"), "publication",
    ),
    GraphTable("study", "Study", {"name:ID(Study)": "name"} | _same("organism", "licence"), "study"),
    GraphTable(
        "note", "Note", {"id:ID(Note)": "name || '/' || i", "text": "notes[i]"},
        "(SELECT name, notes, unnest(range(1, 1 + len(notes))) AS i FROM study)",
    ),
    GraphTable(
        "file", "File", {"id:ID(File)": "s.name || '/' || f.name", "name": "f.name", "sha256": "f.sha256"},
        "file f JOIN study s ON s.number = f.study",
    ),
    GraphTable(
        "reading", "Reading",
        {"id:ID(Reading)": "s.name || '/' || position"}
        | _same("file", "use", "rows:long", "kept:long", "renamed:long"),
        "reading r JOIN study s ON s.number = r.study",
    ),
    GraphTable("reason", "Reason", {"text:ID(Reason)": "reason"}, "dropped", distinct=True),
    GraphTable(
        "environment", "Environment",
        {"id:ID(Environment)": _key("environment")} | _same("medium", "temperature:double", "label"),
        "environment",
    ),
    GraphTable(
        "compound", "Compound", {"id:ID(Compound)": _key("compound")} | _same("name", "dose:double", "unit"),
        "compound",
    ),
    GraphTable(
        "phenotype", "Phenotype",
        {"id:ID(Phenotype)": _key("phenotype")}
        | _same("name", "unit", "direction", "level", "min_order:long", "strong:double", "description"),
        "phenotype",
    ),
    GraphTable("gene", "Gene", {"name:ID(Gene)": "gene"}, "perturbation", distinct=True),
    GraphTable(
        "perturbation", "Perturbation",
        {"id:ID(Perturbation)": _key("perturbation")} | _same("kind", "allele", "dose:double"),
        "perturbation",
    ),
    GraphTable(
        "genotype", "Genotype", {"id:ID(Genotype)": _key("genotype")} | _same("n_genes:long"), "genotype"
    ),
    GraphTable(
        "measurement", "Measurement",
        {"id:ID(Measurement)": "id"}
        | _same("trait", "value:double", "sd:double", "se:double", "p:double", "n:long", "replicate",
                "reference"),
        "measurement",
    ),
)  # fmt: skip

RELATIONS = (
    GraphTable(
        "study_publication", "PUBLISHED_IN",
        {":START_ID(Study)": "s.name", ":END_ID(Publication)": _key("p")},
        "study s JOIN publication p ON p.number = s.publication",
    ),
    GraphTable(
        "study_note", "HAS_NOTE",
        {":START_ID(Study)": "name", ":END_ID(Note)": "name || '/' || i", "position:long": "i"},
        "(SELECT name, unnest(range(1, 1 + len(notes))) AS i FROM study)",
    ),
    GraphTable(
        "study_file", "READ_FROM", {":START_ID(Study)": "s.name", ":END_ID(File)": "s.name || '/' || f.name"},
        "file f JOIN study s ON s.number = f.study",
    ),
    GraphTable(
        "study_reading", "HAS_READING",
        {":START_ID(Study)": "s.name", ":END_ID(Reading)": "s.name || '/' || position",
         "position:long": "position"},
        "reading r JOIN study s ON s.number = r.study",
    ),
    GraphTable(
        "reading_reason", "DROPPED",
        {":START_ID(Reading)": "s.name || '/' || reading", ":END_ID(Reason)": "reason",
         "position:long": "position", "rows:long": "rows"},
        "dropped d JOIN study s ON s.number = d.study",
    ),
    GraphTable(
        "environment_compound", "CONTAINS",
        {":START_ID(Environment)": _key("e"), ":END_ID(Compound)": _key("c")},
        "environment_compound x JOIN environment e ON e.number = x.environment "
        "JOIN compound c ON c.number = x.compound",
    ),
    GraphTable(
        "perturbation_gene", "CHANGES",
        {":START_ID(Perturbation)": _key("perturbation"), ":END_ID(Gene)": "gene"}, "perturbation",
    ),
    GraphTable(
        "genotype_perturbation", "HAS_PERTURBATION",
        {":START_ID(Genotype)": _key("x"), ":END_ID(Perturbation)": _key("p")},
        "(SELECT id, unnest(perturbations) AS number FROM genotype) x JOIN perturbation p USING (number)",
    ),
    GraphTable(
        "measurement_study", "PART_OF", {":START_ID(Measurement)": "m.id", ":END_ID(Study)": "s.name"},
        "measurement m JOIN study s ON s.number = m.study",
    ),
    GraphTable(
        "measurement_genotype", "OF_MUTANT",
        {":START_ID(Measurement)": "m.id", ":END_ID(Genotype)": _key("g")},
        "measurement m JOIN genotype g ON g.number = m.genotype",
    ),
    GraphTable(
        "measurement_environment", "GROWN_IN",
        {":START_ID(Measurement)": "m.id", ":END_ID(Environment)": _key("e")},
        "measurement m JOIN environment e ON e.number = m.environment",
    ),
    GraphTable(
        "measurement_phenotype", "OF_PHENOTYPE",
        {":START_ID(Measurement)": "m.id", ":END_ID(Phenotype)": _key("f")},
        "measurement m JOIN phenotype f ON f.number = m.phenotype",
    ),
)  # fmt: skip


def export_graph(store: Store, folder: str | Path) -> dict[str, int]:
    """Write all tables of a store to a new folder, completely or not at all; return the rows of each file.

    Raises
    ------
    OutputError
        If there is something in the folder already, or it cannot be written.
    DatasetError
        If the store is damaged.
    """
    folder = Path(folder)
    if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
        raise OutputError(f"the folder {str(folder)!r} is not empty: name a new folder")
    rows: dict[str, int] = {}
    with writing_folder(folder) as temporary:
        for table in (*NODES, *RELATIONS):
            rows[table.file] = _write(store, table, temporary / table.file)
        write_json(
            temporary / MANIFEST, {"format_version": FORMAT, "record_version": RECORD_VERSION, "rows": rows}
        )
    return rows


def _write(store: Store, table: GraphTable, path: Path) -> int:
    from pyarrow import csv

    count = 0
    with open(path, "wb") as handle:
        handle.write((",".join(table.header) + "\n").encode())
        with store.query(table.sql) as batches:
            options = csv.WriteOptions(include_header=False)
            with csv.CSVWriter(handle, batches.schema, write_options=options) as writer:
                for batch in batches:
                    writer.write_batch(batch)
                    count += batch.num_rows
    return count
