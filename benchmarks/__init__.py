"""The project's referee: this server and other emulators, side by side in one run (`make bench`, docs/explain/performance.md).

machine.py       what it runs on: cores, fsync        processes.py   servers as trees of processes: CPU, memory
installing.py    peers from their registries          contestants.py how each server is started and found ready
signing.py       requests as raw, signed bytes        dynamodb.py, azuretable.py, tablestore.py: the workloads
generator.*      the load generator, in C or Python   rounds.py      interleaved slices of load, what they cost
databases.py     raw SQLite and pgbench               single.py      figures of this server alone: start, memory, growth
background.py    purging and indexing, and neighbours
comparisons.py   medians of paired ratios, intervals   report.py      the page; plot.py: its picture
"""
