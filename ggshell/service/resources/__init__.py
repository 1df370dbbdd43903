"""The resources of the REST API, one module for each noun. ``ggshell.service.routes`` imports them all."""
