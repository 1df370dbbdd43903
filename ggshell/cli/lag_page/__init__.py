"""LAG REPORT as a self-contained HTML page: charts are inline SVG; there are no scripts and no network access."""
