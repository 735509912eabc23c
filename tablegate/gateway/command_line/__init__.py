"""The commands of `tablegate`: a module for each family of them. `gateway/__main__.py` puts them together."""
