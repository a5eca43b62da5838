#!/usr/bin/env python3
"""README and the guides in docs, typed as they stand on a fresh machine; the output is compared with the page. Translations must
show the same commands and the same output as the page they translate.

    tests/e2e/docs_pages.py [PAGE…]            only these, such as README.md
    tests/e2e/docs_pages.py --update [PAGE…]   writes what was printed into the pages
"""
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from checks import Checks, skip_all  # noqa: E402
from muster import ROOT  # noqa: E402
from pages import PLAYED, TRANSLATED  # noqa: E402
from replay import fill, play  # noqa: E402
from seeds import Newcomer, as_built, no_newcomer  # noqa: E402

MINE = [page for page, test in PLAYED.items() if test == "tests/e2e/docs_pages.py" and page not in TRANSLATED]


def blocks(page):
    return re.findall(r"^```console\n(.*?)^```", (ROOT / page).read_text(), re.M | re.S)


def main():
    why = no_newcomer()
    if why:
        skip_all(why)
    check, update = Checks(), "--update" in sys.argv
    chosen = [one for one in sys.argv[1:] if not one.startswith("--")] or MINE
    chosen = [one for one in chosen if one not in TRANSLATED]
    for page in chosen:
        path = ROOT / page
        with Newcomer() as newcomer:
            if update:
                path.write_text(fill(path.read_text(), newcomer.shell, as_built))
            else:
                play(path.read_text(), newcomer.shell, check, as_built)
    for page, original in TRANSLATED.items():
        if update:
            fresh = iter(blocks(original))
            text = (ROOT / page).read_text()
            text = re.sub(r"^```console\n.*?^```", lambda _: f"```console\n{next(fresh)}```", text, flags=re.M | re.S)
            (ROOT / page).write_text(text)
        check(f"{page} shows what {original} shows", blocks(page) == blocks(original))
    return check.close()


if __name__ == "__main__":
    sys.exit(main())
