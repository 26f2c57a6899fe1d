"""Export to ONNX: the short import path of :mod:`ulmus.integrations.onnx`."""

from ulmus.integrations.onnx import to_onnx, usage

__all__ = ["to_onnx", "usage"]
