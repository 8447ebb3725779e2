"""The documentation site: ``make docs``. It is built and read without a network."""

import re
from pathlib import Path

import gridlstm

project = "gridlstm"
author = "the authors of gridlstm"
version = release = gridlstm.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.mathjax",
    "sphinx.ext.napoleon",
]
exclude_patterns = ["_build", "gallery"]

html_theme = "furo"
html_title = f"gridlstm {version}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_extra_path = ["_build/extra"]  # What other commands make for the site, such as the demo.
html_show_copyright = False
html_show_sphinx = False
html_copy_source = False

# MathJax 3.2.2, with its fonts in the same file.
mathjax_path = "mathjax/tex-svg.js"

myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 4

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_preserve_defaults = True
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_custom_sections = [("Variables", "params_style")]
napoleon_use_ivar = True
napoleon_use_rtype = False
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 80

_DOCS = Path(__file__).parent
(_DOCS / "_build" / "extra").mkdir(parents=True, exist_ok=True)
_DEMO = """
:::{raw} html
<p><a href="demo-page.html">Open it in a page of its own</a></p>
<iframe src="demo-page.html" title="Networks of the package, running in this page" loading="lazy"
        style="width:100%;height:85vh;border:1px solid var(--color-background-border)"></iframe>
:::
"""


def _complete_pages(app, name, source):
    """Lists the pages that index.md does not name at its line FURTHER; shows the demo on its page."""
    if name == "index":
        pages = {path.stem for path in _DOCS.glob("*.md")}
        named = {"index", *re.findall(r"^\w+$", source[0], re.MULTILINE)}
        source[0] = source[0].replace("FURTHER\n", "".join(f"{p}\n" for p in sorted(pages - named)))
    if name == "demo" and (_DOCS / "_build" / "extra" / "demo-page.html").exists():
        title, _, text = source[0].partition("\n")
        source[0] = f"{title}\n{_DEMO}{text}"


def _full_names(app, what, name, obj, options, lines):
    """Docstrings refer to public names as users write them: gives roles the full names."""
    public = "|".join(gridlstm.__all__)
    pattern = re.compile(rf":(class|meth|func):`({public})(\.\w+)?`")
    lines[:] = [
        pattern.sub(lambda m: f":{m[1]}:`~gridlstm.{m[2]}{m[3] or ''}`", line) for line in lines
    ]


def _read_again(app, env, added, changed, removed):
    """These two pages depend on which others there are, and on the demo."""
    return [name for name in ("index", "demo") if name in env.found_docs]


def setup(app):
    """Called by Sphinx."""
    app.connect("env-get-outdated", _read_again)
    app.connect("source-read", _complete_pages)
    app.connect("autodoc-process-docstring", _full_names)
