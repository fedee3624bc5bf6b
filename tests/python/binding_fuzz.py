# SPDX-License-Identifier: Apache-2.0
"""binding_fuzz.py MODEL FOLDER [libFuzzer's options…]: calls of the package, chosen by atheris. FOLDER is for files
that they write."""

import pathlib
import sys

import atheris

with atheris.instrument_imports(include=["winnow", "binding"]):
    import binding


def main():
    model, folder = (str(pathlib.Path(name).resolve()) for name in sys.argv[1:3])
    target = binding.Binding(model, pathlib.Path(folder))
    atheris.Setup([sys.argv[0], *sys.argv[3:]], target.run)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
