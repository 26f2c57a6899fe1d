#!/bin/sh
# Install an archive of the package into an environment of its own, and run the quick tests there:
# sh benchmarks/check_archive.sh PYTHON dist/ulmus-0.2.0.tar.gz
set -eu
place=build/check/$(basename "$2")
mkdir -p "$place"
"$1" -m venv "$place/venv"
"$place/venv/bin/python" -m pip install --quiet --disable-pip-version-check \
    "$2[cli,report,onnx]" 'pytest>=8.2' hypothesis onnxruntime
# Away from src/, so that what was installed is what is tested.
cp -r tests CITATION.cff "$place"
sed '/^testpaths/d' pyproject.toml > "$place/pyproject.toml"
cd "$place"
venv/bin/python -m pytest -q -p no:cacheprovider tests/test_estimates.py \
    tests/test_files.py tests/test_columns.py tests/test_cli_models.py \
    tests/test_onnx_graph.py
venv/bin/ulmus demo demo
