"""Say which links of a built site lead nowhere: ``python docs/check_links.py FOLDER``.

Links between its pages, to places in them, and to images, styles and scripts. Addresses of other
sites are followed by ``make docs-links``.
"""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """The places of a page (``id``) and its links."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.places: set[str] = set()
        self.links: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect what a tag names and where it points."""
        values = dict(attrs)
        self.places |= {values[key] for key in ("id", "name") if values.get(key)}
        self.links |= {values[key] for key in ("href", "src") if values.get(key)}


def broken_links(site: Path) -> list[str]:
    """Each link that leads nowhere, with its page."""
    pages = {
        path.resolve(): Page(path.read_text())
        for path in site.rglob("*.html")
        if "_static" not in path.parts
    }
    broken = []
    for path, page in sorted(pages.items()):
        for link in sorted(page.links):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            place = unquote(parts.fragment)
            missing = not target.exists()
            if missing or (place and target in pages and place not in pages[target].places):
                broken.append(f"{path.relative_to(site.resolve())}: {link}")
    return broken


if __name__ == "__main__":
    found = broken_links(Path(sys.argv[1]))
    print("\n".join(found) or "Every link between the pages leads somewhere.")
    sys.exit(bool(found))
