"""LAG REPORT as one HTML page that needs nothing else: drawings are SVG in the page, no script, no network."""
