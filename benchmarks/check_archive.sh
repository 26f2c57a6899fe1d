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
venv/bin/python -m pytest -q -p no:cacheprovider tests/estimators/test_estimates.py \
    tests/model_file/test_save_load.py tests/tables/test_cells.py tests/cli/test_models.py \
    tests/integrations/test_onnx_graph.py
venv/bin/ulmus demo demo
