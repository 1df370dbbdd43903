"""The @functions of the manual's pages, with one maker each."""
