"""Benchmarks of this server and other emulators, side by side in one run (`make bench`, docs/explain/performance.md).

machine.py       cores and fsync of the machine        processes.py   CPU and memory of process trees
installing.py    installation of peers                 contestants.py start of each server
signing.py       signed requests as bytes              dynamodb.py, azuretable.py, tablestore.py: the workloads
generator.*      the load generator, in C or Python    rounds.py      interleaved slices of load and their cost
databases.py     raw SQLite and pgbench                single.py      start, memory and growth of this server alone
background.py    background work beside client load    growth.py      costs by the size of a table
comparisons.py   medians of paired ratios, intervals   report.py      the page. plot.py: its picture
endurance.py     chart of `make endurance`
"""
