"""The shell: reads statements and prints results. It is the top layer: it may import any package; none imports it."""
