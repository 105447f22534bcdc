"""Links of the project's pages lead somewhere, in the files and on the site."""

from pathlib import Path

import links
import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted({*links.pages(ROOT), *(p.relative_to(ROOT).as_posix() for p in ROOT.glob("docs/**/*.md"))})
PAGES = [page for page in PAGES if not page.startswith(("docs/generated", "docs/_build"))]


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_to_files_or_folders(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    for match in [*links.LINK.finditer(text), *links.PICTURE.finditer(text)]:
        link = match[2].partition("#")[0]
        if link and "://" not in link and not link.startswith(("generated/", "../generated/")):
            assert ((ROOT / page).parent / link).exists(), link


def test_links_to_pages_and_files_and_folders():
    text = "[map](../kernels/README.md#floors), [tables](../benchmarks), [same](#here), ![p](pictures/a.png), [w](https://x.y)"
    found = links.rewritten(text.replace("a.png", "jacksboro.png"), "docs/kernels.md", "docs/deep/kernels.md", ROOT)
    assert found == (
        "[map](../generated/map-of-the-kernels.md#floors), tables, [same](#here), "
        "![p](../pictures/jacksboro.png), [w](https://x.y)"
    )


def test_the_page_start_is_the_readme_without_head_and_list():
    page = links.start((ROOT / "README.md").read_text(encoding="utf-8"))
    assert page.startswith("# Start\n") and "make demo" in page and "## More" not in page
    with pytest.raises(ValueError, match="substring not found"):
        links.start("# no sections")
