"""Times other loaders of images; bench/loader_vs_pytorch runs it, a process for each measurement:

  loader_peers.py --versions
  loader_peers.py SIDE FORM SET WORKERS SECONDS RESULT

SIDE is pytorch, webdataset, dali or ffcv. FORM is what decodes JPEG: pil or torchvision (its torchvision.io), or "own".
SET is a folder of files, a pattern of shards or a .beton. WORKERS is the number of processes (DALI and FFCV: threads);
0: the process itself. RESULT is f32 or u8, as of bench/loader.cpp. Prints JSON as it does, or, with exit code 3, why
there is nothing to measure.
"""
import glob
import json
import multiprocessing
import os
import pathlib
import sys
import time

BATCH, SIDE = 64, 224
MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def cpu_seconds():
    """Of this process and of the workers that it has."""
    total = time.process_time()
    for worker in multiprocessing.active_children():
        fields = pathlib.Path(f"/proc/{worker.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        total += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return total


def transform_of(form, result):
    """torchvision's, at its best: classic on PIL's images, v2 on tensors of bytes."""
    import torch
    from torchvision.transforms import v2
    first = [v2.RandomResizedCrop(SIDE, antialias=True), v2.RandomHorizontalFlip()]
    if form == "pil":
        first.append(v2.PILToTensor())
    if result == "f32":
        first += [v2.ToDtype(torch.float32, scale=True), v2.Normalize(MEAN, DEVIATION)]
    return v2.Compose(first)


def decoder_of(form):
    """From the bytes of a file."""
    if form == "pil":
        import io

        from PIL import Image
        return lambda data: Image.open(io.BytesIO(data)).convert("RGB")
    import torch
    from torchvision.io import ImageReadMode, decode_jpeg
    return lambda data: decode_jpeg(torch.frombuffer(bytearray(data), dtype=torch.uint8), mode=ImageReadMode.RGB)


def batches_of_pytorch(form, files, workers, result):
    import torch
    from torch.utils.data import DataLoader, Dataset
    torch.set_num_threads(1)  # of this process: workers have one each anyway
    decode, transform = decoder_of(form), transform_of(form, result)

    class Folder(Dataset):
        def __init__(self):
            self.paths = sorted(pathlib.Path(files).rglob("*.jpg"))

        def __len__(self):
            return len(self.paths)

        def __getitem__(self, i):
            return transform(decode(self.paths[i].read_bytes())), int(self.paths[i].parent.name)

    loader = DataLoader(Folder(), BATCH, shuffle=True, num_workers=workers, persistent_workers=workers > 0)
    return lambda: (len(labels) for _, labels in loader), torch


def batches_of_webdataset(form, pattern, workers, result):
    import torch
    import webdataset
    torch.set_num_threads(1)
    decode, transform = decoder_of(form), transform_of(form, result)
    shards = sorted(glob.glob(pattern))
    samples = webdataset.WebDataset(shards, shardshuffle=len(shards), empty_check=False).shuffle(1000).to_tuple(
        "jpg", "cls").map_tuple(lambda data: transform(decode(data)), int).batched(BATCH)
    loader = webdataset.WebLoader(samples, batch_size=None, num_workers=workers, persistent_workers=workers > 0)
    return lambda: (len(labels) for _, labels in loader), webdataset


def batches_of_dali(form, files, workers, result):
    import nvidia.dali
    from nvidia.dali import fn, pipeline_def, types

    @pipeline_def(batch_size=BATCH, num_threads=max(workers, 1), device_id=None)
    def pipeline():
        if files.endswith(".tar"):
            data, label = fn.readers.webdataset(paths=sorted(glob.glob(files)), ext=["jpg", "cls"],
                                                missing_component_behavior="error", random_shuffle=True,
                                                initial_fill=1000, name="reader")
        else:
            data, label = fn.readers.file(file_root=files, random_shuffle=True, initial_fill=1000, name="reader")
        images = fn.decoders.image_random_crop(data, device="cpu", output_type=types.RGB,
                                               random_aspect_ratio=[3 / 4, 4 / 3], random_area=[0.08, 1.0])
        images = fn.resize(images, size=[SIDE, SIDE], interp_type=types.INTERP_LINEAR)
        mirror = fn.random.coin_flip(probability=0.5)
        if result == "f32":
            images = fn.crop_mirror_normalize(images, dtype=types.FLOAT, output_layout="CHW", mirror=mirror,
                                              mean=[255 * m for m in MEAN], std=[255 * d for d in DEVIATION])
        else:
            images = fn.crop_mirror_normalize(images, dtype=types.UINT8, output_layout="CHW", mirror=mirror)
        return images, label

    pipe = pipeline()
    pipe.build()
    count = -(-next(iter(pipe.reader_meta().values()))["epoch_size"] // BATCH)

    def epoch():
        for _ in range(count):
            yield len(pipe.run()[0])
    return epoch, nvidia.dali


def batches_of_ffcv(form, path, workers, result):
    import ffcv
    import numpy
    import torch
    from ffcv.fields.decoders import IntDecoder
    from ffcv.fields.rgb_image import RandomResizedCropRGBImageDecoder
    from ffcv.loader import Loader, OrderOption
    from ffcv.transforms import NormalizeImage, RandomHorizontalFlip, ToTensor, ToTorchImage
    torch.set_num_threads(1)
    image = [RandomResizedCropRGBImageDecoder((SIDE, SIDE)), RandomHorizontalFlip()]
    if result == "f32":
        image.append(NormalizeImage(255 * numpy.array(MEAN), 255 * numpy.array(DEVIATION), numpy.float32))
    image += [ToTensor(), ToTorchImage()]
    loader = Loader(path, batch_size=BATCH, num_workers=max(workers, 1), order=OrderOption.RANDOM, os_cache=True,
                    drop_last=False, pipelines={"image": image, "label": [IntDecoder(), ToTensor()]})
    return lambda: (len(labels) for _, labels in loader), ffcv


SIDES = {"pytorch": batches_of_pytorch, "webdataset": batches_of_webdataset, "dali": batches_of_dali,
         "ffcv": batches_of_ffcv}


def versions():
    """Of what runs here, or why it does not."""
    from importlib import metadata
    found = {}
    for name in ("torch", "torchvision", "PIL", "webdataset", "nvidia.dali", "ffcv"):
        try:
            module = __import__(name, fromlist=["__version__"])
            found[name] = metadata.version("ffcv") if name == "ffcv" else module.__version__  # FFCV's is not its own
        except Exception as error:  # a wheel for another machine fails in its own way
            found[name] = "none: " + f"{type(error).__name__}: {error}".splitlines()[0]
    return found


def main():
    if sys.argv[1] == "--versions":
        print(json.dumps(versions()))
        return
    side, form, files, workers, seconds, result = sys.argv[1:7]
    try:
        epoch, _ = SIDES[side](form, files, int(workers), result)
    except ImportError as error:
        print(f"{side}: {error}", file=sys.stderr)
        sys.exit(3)
    sum(epoch())  # starts workers, compiles, and brings files into the page cache
    images, start, cpu_start = 0, time.perf_counter(), cpu_seconds()
    while time.perf_counter() - start < float(seconds):
        images += sum(epoch())
    print(json.dumps({"images": images, "bytes": images * 3 * SIDE * SIDE * (4 if result == "f32" else 1),
                      "seconds": time.perf_counter() - start, "cpu_seconds": cpu_seconds() - cpu_start}))
    sys.stdout.flush()
    os._exit(0)  # the threads of some loaders outlive an orderly end


main()
