"""An example of a table that can be imported, with its explanation."""

from __future__ import annotations

from wildtype.sources.user_tables.vocabulary import kind_words

EXPLANATION = f"""\
One row per measured mutant. Lines that begin with # above the header are comments and may stay.
genes       one or several genes, by systematic name, standard name or alias; several are separated
            by a semicolon (or + | , or a blank)
value       the measured number
All other columns may be left out:
kind        what was done to the genes, one word for all or one each (absent where it says nothing):
            {kind_words()}
dose        copies, or expression relative to wild type, one number for each gene
condition   name of the medium, drug or temperature
phenotype   fitness (wild type = 1), epsilon (2 genes or more), tau (3 or more), or a name of your own
sd          standard deviation of the value
replicate   which of several independent measurements
Import with: wildtype data import my.csv --organism yeast
"""
ROWS = (
    "genes,value,kind,dose,condition,phenotype,sd,replicate",
    "SGS1,0.93,,,YPD 30 C,fitness,0.02,plate 1",
    "SGS1,0.95,,,YPD 30 C,fitness,0.02,plate 2",
    "SGS1;SRS2,0.41,absent;absent,,YPD 30 C,fitness,0.05,plate 1",
    "CDC28;CLN2,0.77,temperature sensitive;absent,,YPD 30 C,fitness,0.04,plate 1",
    "PDR5,1.08,overexpressed,3,YPD 30 C fluconazole,fitness,0.03,plate 1",
    "SGS1;SRS2,-0.31,,,YPD 30 C,epsilon,,plate 1",
)


def template() -> str:
    """Return the example as CSV text."""
    comments = [f"# {line}".rstrip() for line in EXPLANATION.splitlines()]
    return "\n".join([*comments, *ROWS]) + "\n"
