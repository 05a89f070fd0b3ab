"""An example of an `organism.yaml`, with explanations."""

TEMPLATE = """\
# An organism, for `wildtype organism import organism.yaml`. Paths are relative to this file; every file may
# be gzip-compressed (.gz). Remove what you do not have: only name and genes are needed.
name: my-organism
description: Mycoplasma mobile 163K, genome of 2004

# Instead of genes, the publishers' files of yeast (`wildtype organism template yeast`), to which all below is
# added: publishers: {readers: yeast, folder: ../yeast}

genes:            # at least one of files and names_from
  files:
    - path: genes.tsv          # CSV, TSV, .xlsx; GFF3; or a plain list of names (.txt)
      format: table            # table, gff3 or list; by the name of the file if left out
      columns:                 # those with usual names are found; in GFF3 they are attributes
        name: locus_tag        # the name that everything else refers to
        standard: symbol
        aliases: synonyms
        description: product
        essential: essential   # yes or no
        chromosome: chr
        start: start           # bases
        end: end
        strand: strand         # + or -
      alias_separator: "|"
  names_from:                  # further genes: the names in other files
    - relations                # also: gene_sets, features, sequences, units
    - {path: pairs.tsv, columns: [gene_a, gene_b], leave_out: [negative]}

# Perturbed units that are not single genes, such as operons or guides: a row per unit, or per unit and gene.
units: {path: operons.tsv, unit: sgRNA, genes: locus_tags, separator: ","}

relations:
  - name: physical             # an edge list; without a header, columns are numbers from 1
    path: ppi.tsv
    columns: [gene_a, gene_b]
    weight: score
    directed: false
    source: Smith et al. 2020
  - name: string               # STRING links of any taxon: relations string_coexpression, string_experimental
    path: 9606.protein.links.detailed.v12.0.txt.gz
    aliases: 9606.protein.aliases.v12.0.txt.gz
    channels: [coexpression, experimental]
    cutoff: 400
  - name: biogrid              # physical rows; genetic ones are measurements: --measurements FOLDER
    path: BIOGRID-ORGANISM.tab3.txt
    taxon: 9606

gene_sets:
  - {name: pathways, path: reactome.gmt, as: [features, relation], smallest: 3, largest: 300}
  - {name: complexes, path: complexes.tsv, format: complexes, as: [relation]}
  - {name: go, path: goa.gaf.gz, format: gaf, ontology: go.obo, aspect: P, leave_out_evidence: [IGI]}

features:                      # vectors by gene: CSV, TSV, Parquet, NPZ, or the var of .h5ad
  - {name: esm, path: embeddings.npz}
sequences:
  - {path: proteins.fasta}
metabolism: {path: model.xml}  # SBML, JSON or YAML
"""
