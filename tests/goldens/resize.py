#!/usr/bin/env python3
"""Records resize.json: one line of numbers resized by ONNX's reference evaluator, for every rule of its Resize.

  resize.py > resize.json
"""
import itertools
import json
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

# Rounding decides no place: the middle lies between two numbers, and parts of the line are sums of powers of two.
X = np.array([1, 4, -2, 3, 0.5, -1, 2, 1.5], np.float32)
COORDINATES = ["half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric",
               "tf_crop_and_resize"]
# size, scale (0: given by the size)
SIZES = [(3, 0), (1, 0), (12, 0), (5, 0.7), (20, 2.5)]


def resized(size, scale, **attributes):
    crop = attributes["coordinate_transformation_mode"] == "tf_crop_and_resize"
    inputs = ["x", "roi" if crop else "", "scales" if scale else "", "" if scale else "sizes"]
    node = helper.make_node("Resize", inputs, ["y"], **attributes)
    feeds = {"x": X.reshape(1, 1, -1)}
    kinds = [("x", TensorProto.FLOAT)]
    if crop:
        feeds["roi"] = np.array([0, 0, -0.1875, 1, 1, 0.875], np.float32)
        kinds.append(("roi", TensorProto.FLOAT))
    if scale:
        feeds["scales"] = np.array([1, 1, scale], np.float32)
        kinds.append(("scales", TensorProto.FLOAT))
    else:
        feeds["sizes"] = np.array([1, 1, size], np.int64)
        kinds.append(("sizes", TensorProto.INT64))
    graph = helper.make_graph([node], "resize", [helper.make_tensor_value_info(n, t, None) for n, t in kinds],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)])
    y = ReferenceEvaluator(model).run(None, feeds)[0]
    assert y.shape == (1, 1, size), y.shape
    return [float(v) for v in y.flatten()]


def cases():
    for coordinates, (size, scale) in itertools.product(COORDINATES, SIZES):
        base = {"coordinate_transformation_mode": coordinates, "extrapolation_value": 7.0}
        for rounding in ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]:
            yield size, scale, {**base, "mode": "nearest", "nearest_mode": rounding}
        for exclude in [0, 1]:
            for antialias in [0, 1]:
                yield size, scale, {**base, "mode": "linear", "exclude_outside": exclude, "antialias": antialias}
                for a in [-0.75, -0.5]:
                    yield size, scale, {**base, "mode": "cubic", "cubic_coeff_a": a, "exclude_outside": exclude,
                                        "antialias": antialias}


lines = []
for size, scale, attributes in cases():
    row = {"size": size, "scale": scale, "coordinates": attributes["coordinate_transformation_mode"],
           "mode": attributes["mode"], "rounding": attributes.get("nearest_mode", "floor"),
           "a": attributes.get("cubic_coeff_a", -0.75), "exclude": attributes.get("exclude_outside", 0),
           "antialias": attributes.get("antialias", 0)}
    row["y"] = [round(v, 6) for v in resized(size, scale, **attributes)]
    lines.append(json.dumps(row, separators=(",", ":")))
sys.stdout.write('{"recorded_with": "onnx %s", "x": %s, "begin": -0.1875, "end": 0.875, "cases": [\n%s\n]}\n' %
                 (onnx.__version__, json.dumps([float(v) for v in X]), ",\n".join(lines)))
