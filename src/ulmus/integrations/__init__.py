"""Adapters to other packages: Dask collections, ONNX graphs and skpro, one module each.

Each requires its package and is loaded only when imported; ``ulmus.dask``, ``ulmus.onnx`` and
``ulmus.skpro`` are short import paths. Nothing in ulmus but the command line imports from here.
"""
