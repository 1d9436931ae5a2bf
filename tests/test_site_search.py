"""The site as people meet it: opened from disk in a browser, without a network."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from report.browsers import chromium, opened
from services import library

pytestmark = pytest.mark.heavy
DOCS = Path(__file__).parents[1] / "docs"
FORMULA = "$‖u‖ ≤ \\sqrt{k}$"
PAGES = {
    "index.md": "# Home\nNothing of what is looked for.\n",
    "theory/laplace.md": (DOCS / "theory/laplace.md").read_text(encoding="utf-8"),
    "peculiar.md": f"# Peculiar words\n\nHere is the word hippopotamus, and {FORMULA}.\n",
}


def write_site(folder: Path) -> Path:
    """Build some pages with the settings of the whole site, and return where they are."""
    for name, text in PAGES.items():
        (folder / "docs" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "docs" / name).write_text(text, encoding="utf-8")
    (folder / "docs/assets").symlink_to(DOCS / "assets")
    load = library("mkdocs.config").load_config
    with (DOCS.parent / "mkdocs.yml").open("rb") as settings:
        config = load(
            settings,
            docs_dir=str(folder / "docs"),
            site_dir=str(folder / "site"),
            nav=list(PAGES),
        )
    config.plugins.on_startup(command="build", dirty=False)
    library("mkdocs.commands.build").build(config)
    return folder / "site"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_site(tmp_path_factory.mktemp("site"))


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as found:
        yield found


def test_search_finds_a_page_from_disk_and_fetches_nothing(site: Path, browser: Any) -> None:
    with opened(browser, site / "theory/laplace.html") as watched:
        page = watched.page
        page.set_viewport_size({"width": 1300, "height": 900})
        page.locator(".md-search__input").focus()
        page.keyboard.type("hippopotamus")
        page.wait_for_selector("a.md-search-result__link")
        found = page.locator("a.md-search-result__link").first.get_attribute("href")
        assert found.partition("?")[0] == (site / "peculiar.html").as_uri()
        assert all(url.startswith(("file:", "data:", "about:")) for url in watched.requests)
        assert not watched.troubles


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1300])
def test_formulas_are_set_and_no_page_is_wider_than_its_screen(
    site: Path, browser: Any, scheme: str, width: int
) -> None:
    screen = {"width": width, "height": 900}
    with opened(
        browser, site / "theory/laplace.html", viewport=screen, color_scheme=scheme
    ) as seen:
        page = seen.page
        assert page.locator("math").count() > 10
        assert page.locator("msup").first.bounding_box()["height"] > 10  # set, not only shown
        assert "$" not in page.locator("article").inner_text()
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert not seen.troubles
