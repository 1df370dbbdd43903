"""Measures how scattered the code is: the files of the package that one piece of work goes through, on a real run."""
