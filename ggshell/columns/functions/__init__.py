"""The @functions of the manual's pages, one maker each."""
