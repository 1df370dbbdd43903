"""Two embedded databases, real rows and a workload: what the quickstart, the fault tests and the benches stand on."""
