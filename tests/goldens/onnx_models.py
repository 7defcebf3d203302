"""Records what onnxruntime gives for the ONNX files of a folder of models.

    onnx_models.py FOLDER

Writes onnx_models.json beside this script. The inputs are made of a formula, which tests/onnx/models.cpp has too.
"""

import json
import pathlib
import sys

import numpy as np
import onnxruntime

# File, and the shapes of its inputs.
RUNS = [
    ("pnet.onnx", {"input_1": [1, 24, 30, 3]}),
    ("pnet.onnx", {"input_1": [2, 15, 12, 3]}),
    ("rnet.onnx", {"input_2": [2, 24, 24, 3]}),
    ("onet.onnx", {"input_3": [2, 48, 48, 3]}),
    ("ppocr_cls.onnx", {"x": [2, 3, 48, 192]}),
    ("magika.onnx", {"bytes": [2, 2048]}),
    ("silero_16k_sequence.onnx", {"input": [5, 576], "h": [1, 1, 128], "c": [1, 1, 128]}),
]


def numbers(count):
    """Numbers of [-1, 1) with 24 bits: a multiplicative hash of the index."""
    index = np.arange(1, count + 1, dtype=np.uint64)
    return ((index * 2654435761 % 2**32) >> 8).astype(np.float64) / 2**23 - 1


def tensor(kind, shape):
    values = numbers(int(np.prod(shape))).reshape(shape)
    if kind == "tensor(int32)":
        return np.floor((values + 1) * 128).astype(np.int32)
    return values.astype(np.float32)


def main(folder):
    records = []
    for file, shapes in RUNS:
        session = onnxruntime.InferenceSession(str(folder / file), providers=["CPUExecutionProvider"])
        inputs = {i.name: tensor(i.type, shapes[i.name]) for i in session.get_inputs()}
        names = [o.name for o in session.get_outputs()]
        results = dict(zip(names, session.run(names, inputs)))
        outputs = {
            name: {"shape": list(value.shape), "values": [float(f"{v:.8g}") for v in value.ravel()]}
            for name, value in results.items()
        }
        records.append({"file": file, "inputs": shapes, "outputs": outputs})
    path = pathlib.Path(__file__).parent / "onnx_models.json"
    path.write_text(json.dumps(records) + "\n")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
