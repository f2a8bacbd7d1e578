"""Facts that the gathered table lacks, each with the source they were read from.

FILLS: name of a row -> {column: (value, source, date)}.
ADDITIONS: whole rows, in the columns of gpus.csv.
"""

FILLS = {}
ADDITIONS = []
