"""The one thing that pyproject.toml cannot say: the folders of the repository are installed as parts of one package.

`gateway`, `adapters`, `migrations` and `transfer` stand at the top of the repository and inside `tablegate` where it is installed
(tablegate/__init__.py says why). All else is in pyproject.toml.
"""

from setuptools import find_packages, setup

FOLDERS = ("gateway", "adapters", "migrations", "transfer")
PACKAGES = {f"tablegate.{folder}" for folder in FOLDERS} | {
    f"tablegate.{folder}.{package}" for folder in FOLDERS for package in find_packages(folder)
}

setup(
    packages=["tablegate", "tablegate.testing", *sorted(PACKAGES)],
    package_dir={"tablegate": "tablegate", **{f"tablegate.{folder}": folder for folder in FOLDERS}},
)
