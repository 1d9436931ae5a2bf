"""Pages that are made of notebooks: docs/notebooks/*.ipynb as they were run, with their outputs.

A notebook stays where it is, so that a page can link to it, and becomes a page of the same name.
Nothing is executed here: `tests/pages` runs notebooks, and compares what they store.
"""

import base64
import json
from pathlib import PurePosixPath
from typing import Any

from mkdocs.structure.files import File, Files

DOWNLOAD = '<a href="{name}" download>Download this notebook</a> to run it yourself.'


def on_files(files: Files, *, config: Any) -> Files:
    """Add a page for each notebook, and its pictures."""
    for notebook in [one for one in files if one.src_uri.endswith(".ipynb")]:
        page, pictures = rendered(notebook.content_string, PurePosixPath(notebook.src_uri))
        path = notebook.src_uri.removesuffix(".ipynb") + ".md"
        files.append(File.generated(config, path, content=page))
        for name, content in pictures.items():
            files.append(File.generated(config, name, content=content))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Let links to notebooks lead to their pages."""
    return markdown.replace(".ipynb)", ".md)")


def rendered(text: str, path: PurePosixPath) -> tuple[str, dict[str, bytes]]:
    """Return a notebook as Markdown, and its pictures by their paths."""
    parts: list[str] = []
    pictures: dict[str, bytes] = {}
    for cell in json.loads(text)["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
            continue
        parts.append(f"```python\n{source}\n```")
        for output in cell["outputs"]:
            data = output.get("data", {"text/plain": output.get("text", [])})
            if "image/png" in data:
                name = f"{path.stem}-{len(pictures) + 1}.png"
                picture = base64.b64decode("".join(data["image/png"]))
                pictures[str(path.with_name(name))] = picture
                parts.append(f"![What this code draws]({name})")
            elif "text/html" in data:
                inside = "".join(data["text/html"])
                parts.append(f'<div class="notebook-output">\n{inside}\n</div>')
            else:
                parts.append(f"```text\n{''.join(data['text/plain']).rstrip()}\n```")
    parts.insert(1, DOWNLOAD.format(name=path.name))
    return "\n\n".join(parts) + "\n", pictures
