"""The P4_16 front end: text to checked program.

preprocess -> tokens -> `ast.Program` -> `program.CheckedProgram`. Nothing here knows an
architecture beyond what `core.p4` and `v1model.p4` declare.
"""
