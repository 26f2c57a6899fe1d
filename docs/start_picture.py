"""Draw the figure of the page "Getting started" by running its code.

``python docs/start_picture.py [FILE]``, by default docs/start.png.
"""

import os
import re
import sys
import tempfile
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

docs = Path(__file__).resolve().parent
target = Path(sys.argv[1] if len(sys.argv) > 1 else docs / "start.png").resolve()
code = re.findall(r"^```\{testcode\}\n(.*?)^```$", (docs / "start.md").read_text(), re.M | re.S)
with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)  # the page writes its tables where it runs
    exec("\n".join(code), {})
    os.chdir(docs)
plt.gcf().savefig(target, dpi=110)
print(f"wrote {target.name}")
