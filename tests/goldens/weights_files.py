#!/usr/bin/env python3
"""Records files of weights as other programs write them: small ones in the folder weights, and weights_files.json, which
has each tensor's type, shape and the CRC-32 of its bytes, of these and of the files in a folder of published ones. The
bytes are those of the type that concord::weights::File::read takes.

Needs torch, numpy, h5py and Keras 3.

  weights_files.py [FOLDER]     FOLDER: with .pth, .pt and .hdf5 files
"""
import json
import os
import pathlib
import pickle
import sys
import zlib
from collections import OrderedDict

import torch

FOLDER = pathlib.Path(__file__).parent
TYPES = {"torch.float32": "F32", "torch.float16": "F16", "torch.bfloat16": "BF16", "torch.float64": "F64",
         "torch.int64": "I64", "torch.int32": "I32", "torch.int16": "I16", "torch.int8": "I8", "torch.uint8": "U8",
         "torch.bool": "BOOL", "torch.float8_e4m3fn": "F8_E4M3", "torch.float8_e5m2": "F8_E5M2",
         "torch.uint16": "U16", "torch.uint32": "U32", "torch.uint64": "U64"}


def state():
    """Every type and every kind of window on a storage."""
    torch.manual_seed(1)
    big = torch.randn(4, 6)
    result = OrderedDict()
    result["contiguous"] = big
    result["transposed"] = big.t()
    result["window"] = big[1:3, 2:5]
    result["every_second"] = torch.arange(12, dtype=torch.float32)[::2]
    result["permuted"] = torch.randn(2, 3, 4).permute(2, 0, 1)
    result["channels_last"] = torch.randn(2, 3, 4, 5).contiguous(memory_format=torch.channels_last)
    result["scalar"] = torch.tensor(1.5)
    result["empty"] = torch.empty(0, 3)
    result["parameter"] = torch.nn.Parameter(torch.randn(3))
    for kind in (torch.float16, torch.bfloat16, torch.float64):
        result[str(kind)[6:]] = torch.randn(5).to(kind)
    for kind in (torch.int64, torch.int32, torch.int16, torch.int8):
        result[str(kind)[6:]] = torch.tensor([0, 1, -2, 127, -128]).to(kind)
    result["uint8"] = torch.tensor([0, 1, 255], dtype=torch.uint8)
    result["bool"] = torch.tensor([True, False, True])
    result["größe"] = torch.ones(2)
    return result


def natural(tensor):
    """As File::read: F64 and F8 become f32, integers i32, bool u8."""
    if tensor.is_floating_point():
        return tensor.float() if tensor.dtype in (torch.float64, torch.float8_e4m3fn, torch.float8_e5m2) else tensor
    return tensor.to(torch.uint8 if tensor.dtype in (torch.bool, torch.uint8) else torch.int32)


class Evil:
    def __reduce__(self):
        return os.system, ("echo executed > executed",)


def write_samples(folder):
    folder.mkdir(exist_ok=True)
    tensors = state()
    torch.save(tensors, folder / "zip.pth")
    torch.save(tensors, folder / "legacy.pth", _use_new_zipfile_serialization=False)
    newer = OrderedDict(tensors)
    for kind in (torch.float8_e4m3fn, torch.float8_e5m2):
        newer[str(kind)[6:]] = torch.tensor([0.0, 1.0, -0.5, 2.0 ** -9, 240.0]).to(kind)
    for kind in (torch.uint16, torch.uint32, torch.uint64):
        newer[str(kind)[6:]] = torch.tensor([0, 1, 65535], dtype=torch.int32).to(kind)
    torch.save(newer, folder / "newer.pth")
    small = {"conv.weight": torch.randn(2, 1, 3, 3), "conv.bias": torch.randn(2)}
    torch.save({"epoch": 3, "state_dict": small, "optimizer": {"state": {0: {"exp_avg": torch.zeros(2)}}, "lr": 0.1}},
               folder / "checkpoint.pth")
    torch.save({"net": {"encoder": {"w": torch.ones(2)}, "heads": [torch.zeros(1), torch.ones(1)]}}, folder / "nested.pth")
    torch.save(torch.nn.Linear(2, 2), folder / "module.pth")
    torch.jit.script(torch.nn.Linear(2, 2)).save(str(folder / "script.pt"))
    torch.save({"w": Evil()}, folder / "evil.pth")
    (folder / "evil.pkl").write_bytes(pickle.dumps({"w": Evil()}, protocol=2))


def write_keras(folder):
    """A small network with the layouts of Keras; recorded is what Keras itself has."""
    os.environ["KERAS_BACKEND"] = "torch"
    import keras
    from keras import layers
    keras.utils.set_random_seed(1)
    model = keras.Sequential([layers.Input((6, 6, 2)), layers.Conv2D(3, 3, name="first"), layers.BatchNormalization(),
                              layers.SeparableConv2D(4, 3), layers.Flatten(), layers.Dense(5, name="head"),
                              layers.Dense(2, use_bias=False)])
    for layer in model.layers:
        if isinstance(layer, layers.BatchNormalization):
            layer.set_weights([w + 0.1 * (i + 1) for i, w in enumerate(layer.get_weights())])
    model.save(folder / "keras.h5")
    model.save(folder / "keras3.keras")
    model.save_weights(folder / "keras3.weights.h5")
    return {f"{v.path.split('/')[-2]}.{v.path.split('/')[-1]}": ["F32", list(v.shape), zlib.crc32(v.numpy().tobytes())]
            for v in model.weights}


def varint(number):
    result = b""
    while number > 127:
        result, number = result + bytes([number & 127 | 128]), number >> 7
    return result + bytes([number])


def field(number, payload):
    """A field of protocol buffers: bytes, text, or a whole number."""
    if isinstance(payload, int):
        return varint(number << 3) + varint(payload)
    payload = payload.encode() if isinstance(payload, str) else payload
    return varint(number << 3 | 2) + varint(len(payload)) + payload


def blob(array, old=False):
    data = field(5, array.astype("<f4").tobytes())
    if not old:
        return field(7, field(1, b"".join(varint(d) for d in array.shape))) + data
    dims = (1,) * (4 - array.ndim) + array.shape
    return b"".join(field(i + 1, d) for i, d in enumerate(dims)) + data


def write_caffe(folder):
    """A caffemodel by the field numbers of caffe.proto, with a layer of the old form."""
    import numpy
    draw = numpy.random.default_rng(1).standard_normal
    conv, bias, mean, variance = draw((3, 2, 3, 3)), draw(3), draw(3), draw(3) ** 2
    product, shift = draw((4, 12)), draw(4)

    def layer(name, kind, *arrays):
        return field(100, field(1, name) + field(2, kind) + b"".join(field(7, blob(a)) for a in arrays))
    old = field(2, field(4, "fc") + field(5, 14) + field(6, blob(product, True)) + field(6, blob(shift, True)))
    (folder / "caffe.caffemodel").write_bytes(
        field(1, "small") + layer("data", "Input") + layer("conv", "Convolution", conv, bias) +
        layer("bn", "BatchNorm", mean, variance, numpy.array([2.0])) + layer("scale", "Scale", mean, bias) + old)
    half = numpy.float32(0.5)
    arrays = {"conv.weight": conv, "conv.bias": bias, "bn.running_mean": mean.astype("<f4") * half,
              "bn.running_var": variance.astype("<f4") * half, "scale.weight": mean, "scale.bias": bias,
              "fc.weight": product, "fc.bias": shift}
    return {name: ["F32", list(a.shape), zlib.crc32(a.astype("<f4").tobytes())] for name, a in arrays.items()}


def flat(value, prefix=""):
    if isinstance(value, torch.Tensor):
        yield prefix, value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from flat(inner, f"{prefix}.{key}" if prefix else str(key))
    elif isinstance(value, (list, tuple)):
        for i, inner in enumerate(value):
            yield from flat(inner, f"{prefix}.{i}")


def torch_tensors(path):
    value = torch.load(path, map_location="cpu", weights_only=True)
    for wrapper in ("state_dict", "net"):
        if isinstance(value, dict) and isinstance(value.get(wrapper), dict):
            value = value[wrapper]
    for name, tensor in flat(value):
        data = natural(tensor.detach()).contiguous().reshape(-1).view(torch.uint8)
        yield name, [TYPES[str(tensor.dtype)], list(tensor.shape), zlib.crc32(data.numpy().tobytes())]


def hdf5_tensors(path):
    import h5py
    import numpy
    with h5py.File(path) as file:
        root = file["model_weights"] if "model_weights" in file else file
        found = {}

        def visit(name, item):
            if isinstance(item, h5py.Dataset):
                parts = name.split("/")
                found[f"{parts[0]}.{parts[-1].split(':')[0]}"] = item
        root.visititems(visit)
        for name, item in found.items():
            yield name, [{"float32": "F32"}[str(item.dtype)], list(item.shape),
                         zlib.crc32(numpy.ascontiguousarray(item).tobytes())]


def main():
    write_samples(FOLDER / "weights")
    recorded = {}
    for path in [FOLDER / "weights" / f"{n}.pth" for n in ("zip", "legacy", "newer", "checkpoint", "nested")]:
        recorded[f"weights/{path.name}"] = dict(torch_tensors(path))
    for name, tensors in zip(("keras.h5", "keras3.keras", "keras3.weights.h5"), [write_keras(FOLDER / "weights")] * 3):
        recorded[f"weights/{name}"] = tensors
    recorded["weights/caffe.caffemodel"] = write_caffe(FOLDER / "weights")
    for folder in sys.argv[1:]:
        for path in sorted(pathlib.Path(folder).iterdir()):
            if path.suffix in (".pth", ".pt"):
                recorded[path.name] = dict(torch_tensors(path))
            elif path.suffix in (".h5", ".hdf5"):
                recorded[path.name] = dict(hdf5_tensors(path))
    text = ",\n".join(f"{json.dumps(name)}: {json.dumps(recorded[name])}" for name in recorded)
    (FOLDER / "weights_files.json").write_text("{\n" + text + "\n}\n")


if __name__ == "__main__":
    main()
