"""Small files in the publishers' own layouts, written by hand: no mirror holds them."""

from __future__ import annotations

import pytest

GFF = """##gff-version 3
#!date-produced 2024-05-29
chrI	SGD	chromosome	1	230218	.	.	.	ID=chrI;Name=chrI
chrI	SGD	gene	147594	151166	.	-	.	ID=YAL001C;Name=YAL001C;gene=TFC3;Note=Subunit%3B%20big
chrI	SGD	mRNA	147500	151300	.	-	.	ID=YAL001C_mRNA;Name=YAL001C_mRNA;Parent=YAL001C
chrI	SGD	CDS	147594	151006	.	-	0	Parent=YAL001C_mRNA;Name=YAL001C_CDS;protein_id=UniProtKB:P34111
chrI	SGD	intron	151007	151096	.	-	.	Parent=YAL001C_mRNA;Name=YAL001C_intron
chrI	SGD	CDS	151097	151166	.	-	0	Parent=YAL001C_mRNA;Name=YAL001C_CDS;protein_id=UniProtKB:P34111
###
chrI	SGD	gene	143000	148000	.	+	.	ID=YAL002W;Name=YAL002W
chrI	SGD	CDS	143707	147531	.	+	0	Parent=YAL002W;Name=YAL002W_CDS
chrIV	SGD	CDS	46271	48031	.	+	0	Name=YDL227C_CDS
chrIV	SGD	gene	10	90	.	+	.	ID=YEL009C;Name=YEL009C
chrmt	SGD	gene	13818	26701	.	+	.	ID=Q0045;Name=Q0045
chrmt	SGD	CDS	13818	26701	.	+	0	Parent=Q0045;protein_id=UniProtKB:P00401
chrI	SGD	gene	1807	2169	.	-	.	ID=YAR044W;Name=YAR044W
chrI	SGD	CDS	1807	2169	.	-	0	Parent=YAR044W
chrI	SGD	CDS	192619	196185	.	+	0	Name=YAR042W_CDS
contig	SGD	CDS	1	9	.	.	0	Name=YAL005C_CDS
chrI	SGD	CDS	5	9	.	+	0	Name=YZZ999W_CDS
##FASTA
>chrI
CCACACCACACCCACACACCCACACACCACACCACACACCACACCACACCCACACACACA
"""


@pytest.fixture
def gff() -> str:
    """An annotated genome as SGD gives it out."""
    return GFF
