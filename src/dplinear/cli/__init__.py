"""The command line: `dplinear plan | release | regress | join | pca | distances | report | ...`.

One formula: files come first, and every flag has the name of the Python argument it stands for.
`app.py` is the map, with one file for each command; `main.py` runs one and turns whatever goes
wrong into a sentence and an exit code (`errors.py`). Nothing here computes: commands read flags
(`flags.py`) and files of settings (`settings.py`), call what Python callers call, and print.
Everything slow is imported inside the command that needs it.
"""
