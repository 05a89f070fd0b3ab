"""Made-up files in the published layouts of the trigenic screens: real gene names, invented numbers.

Every cross is consistent: tau follows from the fitness columns as the screens define it. Tau of the 2018
table is one-sided, as the public table's is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from wildtype.seeds import generator

HEADER_2018 = (
    "Query strain ID", "Query allele name", "Array strain ID", "Array allele name", "Combined mutant type",
    "Raw genetic interaction score (epsilon)", "Adjusted genetic interaction score (epsilon or tau)",
    "P-value", "Query single/double mutant fitness", "Array single mutant fitness", "Combined mutant fitness",
    "Combined mutant fitness standard deviation",
)  # fmt: skip
HEADER_2020 = (
    *HEADER_2018[:10], "Double/triple mutant fitness", "Double/triple mutant fitness standard deviation"
)  # fmt: skip
HEADER_S5 = (
    "Query Strain ID", "ORF1", "ORF2", "Gene1", "Gene2", "Allele1", "Allele2", "Mutant type", "Fitness",
    "St.dev.", "Genetic interaction score", "P-value",
)  # fmt: skip
TITLE = "Table S1. Made-up crosses in the layout of the published table."
HO = "YDL227C"

PAIRS = (  # ORF and allele of the two genes of a double-mutant query
    ("YGR109C", "clb6Δ", "YPR120C", "clb5Δ"), ("YMR199W", "cln1Δ", "YPL256C", "cln2Δ"),
    ("YJL123C", "mtc1Δ", "YOL111C", "mdy2Δ"), ("YBR152W", "spp381-ph", "YKL074C", "mud2Δ"),
    ("YNL042W-B", "ynl042w-bΔ", "YMR160W", "ymr160wΔ"), ("YJL053W", "pep8Δ", "YHR012W", "vps29Δ"),
    ("YIL033C", "bcy1Δ", "YDR422C", "sip1Δ"), ("YDR170C", "sec7-1", "YOR368W", "rad17Δ"),
)  # fmt: skip
PAIRS_2020 = tuple(
    (*first[:2], *second[2:]) for first, second in zip(PAIRS, PAIRS[1:] + PAIRS[:1], strict=True)
)
ARRAYS = (  # strain and allele
    ("YAL048C_dma2", "gem1Δ"), ("YBL007C_dma91", "sla1Δ"), ("YBL008W_dma90", "hir1Δ"),
    ("YBL021C_dma117", "hap3Δ"), ("YBL024W_dma116", "ncl1Δ"), ("YBL034C_tsa454", "stu1-5"),
    ("YBL041W_tsa1064", "PRE7-ph"), ("YBL047C_dma126", "ede1Δ"), ("YBL050W_tsa45", "sec17-1"),
    ("YBL051C_dma123", "pin4Δ"), ("YBL052C_dma122", "sas3Δ"), ("YBR001C_tsa100", "nth2-5001"),
    ("YDR006C_dma836", "sok1Δ"), ("YDR007W_dma835", "trp1Δ"), ("YGL091C_tsa1120", "nbp35-1"),
    ("YIL112W_dma2363", "hos4Δ"), ("YML035C_dma3551", "amd1Δ"), ("YMR163C_dma3763", "inp2Δ"),
    ("YMR197C_tsa644", "vti1-2"), ("YMR318C_dma3918", "adh6Δ"), ("YOL052C_dma4338", "spe2Δ"),
    ("YOL086C_dma5363", "adh1Δ"), ("YOL126C_dma4395", "mdh2Δ"), ("YOR224C_tsa1195", "rpb8-1"),
    ("YOR245C_dma4649", "dga1Δ"), ("YPL157W_dma4908", "tgs1Δ"), ("YJL187C_dma2650", "swe1Δ"),
    ("YJR050W_dma2700", "isy1Δ"), ("YPL213W_dma4950", "lea1Δ"), ("YLL040C_dma3000", "vps13Δ"),
    ("YFR051C_tsa500", "ret2-1"), ("YHR067W_dma2100", "htd2Δ"), ("YJL124C_dma2500", "lsm1Δ"),
    ("YOR144C_dma4600", "elg1Δ"), ("YBR086C_dma300", "ist2Δ"), ("YOR216C_dma4620", "rud3Δ"),
    ("YOR166C_dma4610", "swt1Δ"), ("YDR116C_dma900", "mrpl1Δ"), ("YML047C_dma3560", "prm6Δ"),
    ("YDR477W_dma1000", "snf1Δ"),
)  # fmt: skip


@dataclass(frozen=True)
class Cross:
    """One row, with the numbers behind it."""

    cells: tuple[str, ...]
    tau: float
    """NaN for digenic rows."""


def crosses(
    seed: int = 0,
    *,
    pairs: Sequence[tuple[str, str, str, str]] = PAIRS,
    arrays: Sequence[tuple[str, str]] = ARRAYS,
    one_sided: bool = True,
    first_id: int = 100,
) -> list[Cross]:
    """Every double-mutant query and its two control queries crossed with every array."""
    random = generator(seed, "made-up trigenic screen")
    orfs = sorted(
        {o for pair in pairs for o in pair[::2]} | {strain.partition("_")[0] for strain, _ in arrays}
    )
    single = dict(zip(orfs, random.uniform(0.6, 1.05, len(orfs)).round(4).tolist(), strict=True))
    trait = dict(zip(orfs, random.normal(0, 1, (len(orfs), 3)), strict=True))
    epsilon: dict[frozenset[str], float] = {}

    def pair_epsilon(a: str, b: str) -> float:
        key = frozenset((a, b))
        if key not in epsilon:
            epsilon[key] = float(0.06 * trait[a][0] * trait[b][0] + random.normal(0, 0.02))
        return epsilon[key]

    def cells(query: str, alleles: str, array: tuple[str, str], numbers: Sequence[float]) -> tuple[str, ...]:
        raw, adjusted, p, query_fitness, array_fitness, fitness, sd = numbers
        return (
            query,
            alleles,
            *array,
            "digenic" if HO in query else "trigenic",
            f"{raw:.6f}",
            f"{adjusted:.6f}",
            f"{p:.2E}",
            f"{query_fitness:.4f}",
            f"{array_fitness:.4f}",
            f"{fitness:.4f}",
            f"{sd:.4f}",
        )

    out = []
    for number, (a, allele_a, b, allele_b) in enumerate(pairs):
        identity = first_id + 3 * number
        double = round(single[a] * single[b] + pair_epsilon(a, b), 4)
        for array in arrays:
            c = array[0].partition("_")[0]
            if c in (a, b):
                continue
            p, sd = (float(x) for x in random.uniform((0, 0.01), (0.5, 0.08)))
            tau = 0.12 * trait[a][1] * trait[c][1] + 0.06 * trait[b][2] + float(random.normal(0, 0.03))
            tau = -abs(tau) if one_sided else tau
            for orf, names, alleles in (
                (a, f"{a}+{HO}", f"{allele_a}+hoΔ"),
                (b, f"{HO}+{b}", f"hoΔ+{allele_b}"),
            ):
                score = pair_epsilon(orf, c)
                fitness = single[orf] * single[c] + score
                strain = f"{names}_tm{identity + 1 + (orf == b)}"
                row = (score, score, p, single[orf], single[c], fitness, sd)
                out.append(Cross(cells(strain, alleles, array, row), float("nan")))
            raw = tau + single[a] * pair_epsilon(b, c) + single[b] * pair_epsilon(a, c)
            row = (raw, tau, p, double, single[c], double * single[c] + raw, sd)
            out.append(Cross(cells(f"{a}+{b}_tm{identity}", f"{allele_a}+{allele_b}", array, row), tau))
    return out


Rows = Sequence[Cross | Sequence[str]]


def text(rows: Rows, header: Sequence[str], title: str = "") -> str:
    """Return a table as tab-separated text."""
    lines = [row.cells if isinstance(row, Cross) else row for row in rows]
    return "\n".join([*([title] if title else []), *("\t".join(line) for line in (header, *lines))]) + "\n"


def write_2018(folder: Path, rows: Rows | None = None, *, name: str = "") -> Path:
    """Write Data File S1 of the 2018 study."""
    path = folder / (name or "Data File S1_Raw genetic interaction dataset.tsv")
    path.write_text(text(crosses() if rows is None else rows, HEADER_2018), encoding="utf-8")
    return path


def write_2020(folder: Path, main: Rows | None = None, pilot: Rows | None = None) -> None:
    """Write Tables S1 and S3 of the 2020 study: a title, then the header."""
    given = crosses(1, pairs=PAIRS_2020, one_sided=False, first_id=1000)
    half = len(given) // 2
    for name, rows in (
        ("TableS1.tsv", given[:half] if main is None else main),
        ("TableS3.tsv", given[half:] if pilot is None else pilot),
    ):
        (folder / name).write_text(text(rows, HEADER_2020, TITLE), encoding="utf-8")


def write_workbook(path: Path, header: Sequence[str], rows: Sequence[Sequence[str]]) -> Path:
    """Write a table of the 2020 study as a workbook: a title, then the header; numbers stay numbers."""
    from openpyxl import Workbook

    book = Workbook()
    sheet = book.active
    assert sheet is not None
    sheet.append([TITLE])
    sheet.append(list(header))
    for row in rows:
        sheet.append([_cell(value) for value in row])
    book.save(path)
    return path


def _cell(value: str) -> str | float | None:
    if not value:
        return None
    try:
        number = float(value)
    except ValueError:
        return value
    return value if np.isnan(number) else number
