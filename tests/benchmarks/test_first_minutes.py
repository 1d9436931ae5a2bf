"""A newcomer's first minutes: the commands that pages show are those that are timed."""

import pytest

from benchmarks import first_minutes


@pytest.mark.parametrize("page", ["README.md", "docs/index.md"])
def test_pages_install_and_show_the_demo(page: str) -> None:
    assert first_minutes.commands(page) == ["pip install .", first_minutes.DEMO]


def test_a_page_that_installs_nothing_is_told() -> None:
    with pytest.raises(LookupError):
        first_minutes.commands("docs/theory-map.md")
