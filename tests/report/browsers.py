"""A browser without a network, and a page in it that remembers what it did."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from services import lacking, library

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@dataclass
class Watched:
    """A page, with all that it asked for and all that went wrong in it."""

    page: Any
    requests: list[str] = field(default_factory=list)
    troubles: list[str] = field(default_factory=list)


@contextmanager
def chromium() -> Iterator[Any]:
    """Yield a headless browser."""
    playwright = library("playwright.sync_api")
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        lacking("Chromium", "Run make services.")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program, args=FLAGS)
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def opened(browser: Any, file: Path, **options: Any) -> Iterator[Watched]:
    """Open a page from disk, without a network, and watch it."""
    context = browser.new_context(offline=True, **options)
    watched = Watched(context.new_page())
    page = watched.page
    page.on("request", lambda request: watched.requests.append(request.url))
    page.on("pageerror", lambda error: watched.troubles.append(str(error)))
    page.on("dialog", lambda dialog: watched.troubles.append(dialog.message))
    page.on("console", lambda said: watched.troubles.append(f"{said.type}: {said.text}"))
    try:
        page.goto(file.as_uri())
        yield watched
    finally:
        context.close()
