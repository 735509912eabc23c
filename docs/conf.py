"""Sphinx configuration of the documentation site (`make docs`)."""

from __future__ import annotations

from tablegate.gateway import __version__

project = "tablegate"
author = "The tablegate contributors"
version = release = __version__
extensions = ["myst_parser"]
exclude_patterns = ["examples"]
source_suffix = {".md": "markdown"}

myst_enable_extensions = ["colon_fence", "attrs_inline"]
myst_heading_anchors = 4
suppress_warnings = ["myst.header"]
nitpicky = True

html_theme = "furo"
html_title = "tablegate"
html_static_path: list[str] = []
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
highlight_language = "text"
