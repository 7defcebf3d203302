#!/usr/bin/env python3
"""Records the folder images: pictures as PIL writes them, what PIL reads in them, and what PIL makes of parts of one.

  images.py images
"""
import pathlib
import sys

import numpy as np
from PIL import Image

WIDTH, HEIGHT = 45, 34
# left, top, width, height of the part; width, height of the result
PARTS = {"smaller": ((1.5, 2.25, 40.5, 30.0), (11, 9)), "larger": ((10, 8, 12, 9), (50, 33)),
         "narrower": ((3.75, 20.5, 38.0, 5.25), (16, 12))}


def picture():
    random = np.random.default_rng(35)
    y, x = np.mgrid[0:HEIGHT, 0:WIDTH]
    rgb = np.stack([128 + 90 * np.sin(x / 7 + y / 11), 40 + 5 * y, 200 - 3 * x], 2)
    rgb[8:20, 25:38] = (250, 30, 60)
    rgb += random.normal(size=rgb.shape) * 6
    return Image.fromarray(np.clip(rgb, 0, 255).astype(np.uint8))


def main(folder):
    folder.mkdir(exist_ok=True)
    rgb = picture()
    rgb.save(folder / "colour.jpg", quality=90, subsampling=2)
    rgb.save(folder / "progressive.jpg", quality=80, subsampling=2, progressive=True)
    rgb.save(folder / "restarts.jpg", quality=70, subsampling=1, restart_marker_rows=1)
    rgb.convert("L").save(folder / "grey.jpg", quality=80)
    rgb.convert("CMYK").save(folder / "cmyk.jpg", quality=80)  # with Adobe's mark: inverted
    ycck = bytearray((folder / "cmyk.jpg").read_bytes())
    ycck[ycck.index(b"Adobe") + 11] = 2  # the same numbers, taken for YCCK
    (folder / "ycck.jpg").write_bytes(ycck)
    for file in folder.glob("*.jpg"):
        Image.open(file).convert("RGB").save(file.with_suffix(".ppm"))
    rgb.quantize(16).save(folder / "palette.png", bits=4, transparency=3)
    Image.open(folder / "palette.png").convert("RGB").save(folder / "palette.ppm")
    decoded = Image.open(folder / "colour.ppm")
    for name, ((left, top, width, height), size) in PARTS.items():
        outer = (int(left), int(top), int(np.ceil(left + width)), int(np.ceil(top + height)))
        inner = (left - outer[0], top - outer[1], left - outer[0] + width, top - outer[1] + height)
        decoded.crop(outer).resize(size, Image.Resampling.BILINEAR, box=inner).save(folder / f"{name}.ppm")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
