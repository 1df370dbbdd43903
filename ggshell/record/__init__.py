"""The data types of a change, shared by capture, trail, route and apply; all of them are frozen."""
