"""Docstrings become reStructuredText that says the same: lists of aligned columns, equations and examples untouched."""

import docstrings
import docutils.core
import pytest

TEXT = """Solve A_b x = b: |x| and *y*, cov_ of `gemm_`.

    A       (n, n) matrix,
            continued
    rtol    stops at ‖b − A x‖

    A = U S V^T      more
    B = 2 A

>>> 1 + 1
2

Raises ValueError for another A. Source: Saad (2003)."""


def test_columns_become_a_list_of_names_and_texts():
    assert docstrings.columns("A   first,\n    more\nb_  second") == [["A", "first,\nmore"], ["b_", "second"]]
    assert docstrings.columns("only prose here") is None
    assert docstrings.columns("A = B    an equation") is None


def test_the_text_is_valid_and_nothing_is_lost():
    rst = docstrings.as_rst(TEXT).replace("`gemm_`", "``gemm_``")
    html = docutils.core.publish_string(rst, writer="html5", settings_overrides={"halt_level": 2}).decode()
    for piece in ("|x| and *y*, cov_ of", "<dt>", "continued", "A = U S V^T      more\nB = 2 A", "1 + 1"):
        assert piece in html
    assert "<strong>Raises</strong> ValueError" in html and "<strong>Source:</strong> Saad" in html


@pytest.mark.parametrize("text", ["", "One line.", "Prose\n    x = y\n    z"])
def test_short_docstrings_stay_whole(text):
    words = docstrings.as_rst(text).replace("::", "").split()
    assert words == text.split()


def test_angle_brackets_in_code_are_no_targets_of_links():
    assert docstrings.prose("see `batched.<room>` and `qr`") == "see ``batched.<room>`` and `qr`"


def test_signatures_name_the_types_of_the_interface():
    """As Sphinx spells a signature, `ArrayLike | None` is a line of private names; on the site it is not."""
    inspection = pytest.importorskip("sphinx.util.inspect", reason="Sphinx is not installed (the extra docs)")
    import signatures

    from h2gpu import covariance_matrix

    spelt = inspection.stringify_signature(inspection.signature(covariance_matrix), unqualified_typehints=True)
    short = signatures.shortened(spelt)
    assert "_SupportsArray" in spelt and "_SupportsArray" not in short
    assert "points: ArrayLike" in short and "col_points: ArrayLike | None = None" in short
    assert signatures.shortened(None) is None
