"""Two embedded databases with rows and a workload, for the quickstart, the fault tests and the benchmarks."""
