"""The documentation site: `make docs` builds it, without the network, and takes no warning.

Reference: https://www.sphinx-doc.org/en/master/usage/configuration.html
"""

import logging
import os
import sys
from importlib.metadata import version as version_of
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "extensions"))

import api_reference  # noqa: E402
import links  # noqa: E402  (found by the line above)

api_reference.write(HERE / "generated" / "reference")
links.write(HERE.parent)

project = "h2gpu"
author = copyright = "The h2gpu developers"
version = release = version_of("h2gpu")

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "docstrings",
    "links",
    "mathml",
    "published",
    "signatures",
]
exclude_patterns = ["_build", "drawings", "extensions", "gallery", "**/README.txt"]
default_role = "py:obj"
smartquotes = False
highlight_language = "none"
myst_enable_extensions = ["colon_fence", "dollarmath", "attrs_inline"]
myst_heading_anchors = 3
autodoc_preserve_defaults = True
autodoc_typehints_format = "short"
python_maximum_signature_line_length = 88
python_use_unqualified_type_names = True
copybutton_prompt_text = r">>> |\.\.\. "
copybutton_prompt_is_regexp = True

logging.getLogger("h2gpu").setLevel(logging.ERROR)  # of the examples

sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "generated/gallery",
    "filename_pattern": r"plot_",
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "show_memory": False,
    "write_computation_times": False,
    "show_signature": False,
    "remove_config_comments": True,
    "abort_on_example_error": True,
    "min_reported_time": 1,
    "matplotlib_animations": False,
    "plot_gallery": os.environ.get("H2GPU_GALLERY", "True"),  # "False": their pages without pictures
}
suppress_warnings = ["config.cache"]  # sphinx-gallery's settings are not pickled

html_theme = "furo"
html_title = f"h2gpu {release}"
html_static_path = ["static"]
html_css_files = ["h2gpu.css"]
html_math_renderer = "mathml"
html_copy_source = False
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#1f5f8b", "color-brand-content": "#1f5f8b"},
    "dark_css_variables": {"color-brand-primary": "#7fb8dd", "color-brand-content": "#7fb8dd"},
}
