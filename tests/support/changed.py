"""`make test-changed`: run the test files nearest to the changes of this branch, up to a bound of recorded seconds.

Distance 0 are changed test files. Distance 1 are test files that import a changed module, and those in the folder of
`tests/` that mirrors the folder of a changed file. Each further module between a test and a change adds 1. Most tests
import most of the product at some distance, so the bound matters: the summary counts the files that are left out.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath

from tests.support.sources import ROOT, imports_of, parse
from tests.support.tiers import TEST, files_of_tests, recorded_seconds

CODE = ("tablegate", "tests", "benchmarks")
REPOSITORY = "tests/repository"
"""The folder of tests that read documents, configuration and source text."""
_UNRECORDED_S = 1.0


def python_files() -> dict[str, str]:
    """Return the path of each module of the repository, relative to the root, by dotted name."""
    found = {}
    for folder in CODE:
        for path in (ROOT / folder).rglob("*.py"):
            relative = path.relative_to(ROOT)
            parts = relative.with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = relative.as_posix()
    return found


def importers(tests: Iterable[str]) -> Mapping[str, set[str]]:
    """Return the files that import each file. Both are paths relative to the root.

    These tests count as importers of the `conftest.py` of their folder and of outer folders.
    """
    files = python_files()
    found: dict[str, set[str]] = defaultdict(set)
    for path in files.values():
        for module in imports_of(parse(ROOT / path), files):
            if module in files:
                found[files[module]].add(path)
        if path.endswith("/conftest.py"):
            folder = path.removesuffix("conftest.py")
            found[path].update(test for test in tests if test.startswith(folder))
    return found


def mirrored_folder(path: str) -> str:
    """Return the folder of tests for a file: that of the same name in `tests/`, or of the nearest outer folder."""
    if path.startswith("tests/"):
        return str(PurePosixPath(path).parent)
    if not path.startswith("tablegate/"):
        return REPOSITORY
    folder = PurePosixPath("tests") / PurePosixPath(path).relative_to("tablegate").parent
    while not (ROOT / folder).is_dir():
        folder = folder.parent
    return str(folder) if folder.name != "tests" else REPOSITORY


def distances(
    changed: Iterable[str], tests: Sequence[str], importers: Mapping[str, set[str]]
) -> dict[str, int]:
    """Return the distance of each test file that a change of these files concerns."""
    changed = sorted(changed)
    found = dict.fromkeys(changed, 0)
    folders = {mirrored_folder(path) for path in changed}
    mirrored = [test for test in tests if str(PurePosixPath(test).parent) in folders]
    reached = list(changed)
    for path in reached:  # grows: the nearest come first
        next_files = importers.get(path, set())
        for other in sorted([*next_files, *mirrored] if found[path] == 0 else next_files):
            if other not in found:
                found[other] = found[path] + 1
                reached.append(other)
    return {test: found[test] for test in tests if test in found}


def nearest(by_distance: Mapping[str, int], seconds: Mapping[str, float], bound_s: float) -> Iterator[str]:
    """Yield test files by distance, the shortest first, while their recorded seconds stay within the bound.

    Changed test files are always among them.
    """
    total_s = 0.0
    for test in sorted(
        by_distance, key=lambda test: (by_distance[test], seconds.get(test, _UNRECORDED_S), test)
    ):
        total_s += seconds.get(test, _UNRECORDED_S)
        if by_distance[test] and total_s > bound_s:
            return
        yield test


def changed_files(since: str) -> list[str]:
    """Return the files that differ from the last common commit with `since`, those that git does not track included.

    Raises CalledProcessError if git does not know the commit.
    """
    base = _git("merge-base", "HEAD", since)[0]
    return sorted({*_git("diff", "--name-only", base), *_git("ls-files", "--others", "--exclude-standard")})


def _git(*words: str) -> list[str]:
    done = subprocess.run(["git", *words], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout.splitlines()


def main(arguments: list[str]) -> int:
    """Choose the files and run pytest with the remaining arguments."""
    parser = argparse.ArgumentParser(prog="make test-changed", description=__doc__)
    parser.add_argument("--since", default="main", metavar="COMMIT", help="branch or commit to compare with")
    parser.add_argument(
        "--bound",
        type=float,
        default=120.0,
        metavar="SECONDS",
        help="bound of recorded seconds (default 120)",
    )
    options, words = parser.parse_known_args(arguments)
    try:
        changed = changed_files(options.since)
    except subprocess.CalledProcessError:
        print(
            f"Cannot compare with {options.since}. Name a branch or a commit: make test-changed SINCE=COMMIT"
        )
        return 2
    tests = files_of_tests()
    by_distance = distances(changed, tests, importers(tests))
    chosen = list(nearest(by_distance, recorded_seconds([TEST]), options.bound))
    print(
        f"{len(changed)} files differ from {options.since}. {len(by_distance)} test files import them, directly or not. "
        f"Running the nearest {len(chosen)}.",
        flush=True,
    )
    if not chosen:
        return 0
    return subprocess.run([sys.executable, "-m", "pytest", *words, *chosen], cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
