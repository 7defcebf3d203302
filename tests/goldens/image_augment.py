"""Records what PIL makes of a small picture: tests/goldens/image_augment.json, bytes [3, height, width] in hexadecimal.
Needs pillow and numpy.

    python3 tests/goldens/image_augment.py
"""
import io
import json
import math
import os

import numpy as np
import PIL
from PIL import Image, ImageEnhance, ImageOps

HEIGHT, WIDTH = 11, 13


def picture():
    """Smooth, with noise, greys, saturated and equal channels."""
    pixels = np.zeros((HEIGHT, WIDTH, 3), np.uint8)
    state = 12345
    for y in range(HEIGHT):
        for x in range(WIDTH):
            for c in range(3):
                state = (state * 1103515245 + 12345) % 2**31
                pixels[y, x, c] = (20 * y * (c + 1) + 13 * x * (3 - c) + (state >> 16) % 61) % 256
    pixels[0, :4] = [[0, 0, 0], [255, 255, 255], [128, 128, 128], [255, 0, 0]]
    pixels[1, :4] = [[0, 255, 0], [0, 0, 255], [255, 255, 0], [0, 255, 255]]
    return pixels


def hue(pixels, part):
    """torchvision.transforms.functional.adjust_hue of a float tensor, rounded."""
    rgb = pixels.astype(np.float64) / 255
    maxc, minc = rgb.max(-1), rgb.min(-1)
    chroma = maxc - minc
    s = chroma / np.where(chroma == 0, 1, maxc)
    divisor = np.where(chroma == 0, 1, chroma)[..., None]
    rc, gc, bc = np.moveaxis((maxc[..., None] - rgb) / divisor, -1, 0)
    r, g, b = np.moveaxis(rgb, -1, 0)
    h = np.where(maxc == r, bc - gc, np.where(maxc == g, 2 + rc - bc, 4 + gc - rc))
    h = (h / 6 + 1 + part) % 1
    i = np.floor(h * 6)
    f = h * 6 - i
    i = i.astype(int) % 6
    p, q, t = maxc * (1 - s), maxc * (1 - s * f), maxc * (1 - s * (1 - f))
    v = maxc
    table = np.stack([np.stack(x, -1) for x in ((v, t, p), (q, v, p), (p, v, t), (p, q, v), (t, p, v), (v, p, q))], 0)
    result = np.take_along_axis(table, np.broadcast_to(i[None, ..., None], (1,) + rgb.shape), 0)[0]
    return np.floor(result * 255 + 0.5).clip(0, 255).astype(np.uint8)


def inverse_affine(center, angle, translate, scale, shear_x):
    """torchvision.transforms.functional._get_inverse_affine_matrix with a shear along x."""
    rot, sx = math.radians(angle), math.radians(shear_x)
    cx, cy = center
    tx, ty = translate
    a, b = math.cos(rot), -math.cos(rot) * math.tan(sx) - math.sin(rot)
    c, d = math.sin(rot), -math.sin(rot) * math.tan(sx) + math.cos(rot)
    matrix = [x / scale for x in (d, -b, 0.0, -c, a, 0.0)]
    matrix[2] += matrix[0] * (-cx - tx) + matrix[1] * (-cy - ty) + cx
    matrix[5] += matrix[3] * (-cx - tx) + matrix[4] * (-cy - ty) + cy
    return matrix


def record(path):
    pixels = picture()
    image = Image.fromarray(pixels)
    fill = (124, 116, 104)
    results = {}

    def add(name, value):
        results[name] = np.asarray(value).transpose(2, 0, 1).tobytes().hex()

    add("picture", image)
    for factor in (0.0, 0.55, 1.0, 1.73):
        add(f"brightness {factor}", ImageEnhance.Brightness(image).enhance(factor))
        add(f"contrast {factor}", ImageEnhance.Contrast(image).enhance(factor))
        add(f"saturation {factor}", ImageEnhance.Color(image).enhance(factor))
        add(f"sharpness {factor}", ImageEnhance.Sharpness(image).enhance(factor))
    for part in (-0.5, -0.1, 0.0, 0.3, 0.5):
        add(f"hue {part}", hue(pixels, part))
    for bits in (4, 7):
        add(f"posterize {bits}", ImageOps.posterize(image, bits))
    for threshold in (0, 178, 255):
        add(f"solarize {threshold}", ImageOps.solarize(image, threshold))
    add("stretch", ImageOps.autocontrast(image))
    big = image.resize((32, 24), Image.BILINEAR)  # equalize changes nothing in a picture of fewer pixels than levels
    add("equalize of", big)
    add("equalize", ImageOps.equalize(big))
    add("stretch big", ImageOps.autocontrast(big))
    for name, arguments in {
        "affine 30": (30, (0, 0), 1.0, 0),
        "affine -171.5": (-171.5, (0, 0), 1.0, 0),
        "affine 12:3:-2:0.8:14": (12, (3, -2), 0.8, 14),
        "affine -40:0:1:1.4:-20": (-40, (0, 1), 1.4, -20),
    }.items():
        angle, translate, scale, shear = arguments
        matrix = inverse_affine((WIDTH * 0.5, HEIGHT * 0.5), angle, translate, scale, shear)
        add(name, image.transform((WIDTH, HEIGHT), Image.AFFINE, matrix, Image.BILINEAR, fillcolor=fill))
        add(name + " nearest", image.transform((WIDTH, HEIGHT), Image.AFFINE, matrix, Image.NEAREST, fillcolor=fill))
    # RandAugment of strength 9 and 30, as torchvision calls them.
    for strength in (9, 30):
        for sign in (1, -1):
            m = sign * strength / 30
            end = f" {strength * sign}"
            shear = math.tan(math.atan(0.3 * m))

            def affine(matrix):
                return image.transform((WIDTH, HEIGHT), Image.AFFINE, matrix, Image.BILINEAR, fillcolor=fill)
            add("shear_x" + end, affine([1, shear, 0, 0, 1, 0]))
            add("shear_y" + end, affine([1, 0, 0, shear, 1, 0]))
            add("translate_x" + end, affine([1, 0, -int(150.0 / 331.0 * WIDTH * m), 0, 1, 0]))
            add("translate_y" + end, affine([1, 0, 0, 0, 1, -int(150.0 / 331.0 * HEIGHT * m)]))
            add("rotate" + end, image.rotate(30 * m, Image.BILINEAR, fillcolor=fill))
            add("brightness_op" + end, ImageEnhance.Brightness(image).enhance(1 + 0.9 * m))
            add("color_op" + end, ImageEnhance.Color(image).enhance(1 + 0.9 * m))
            add("contrast_op" + end, ImageEnhance.Contrast(image).enhance(1 + 0.9 * m))
            add("sharpness_op" + end, ImageEnhance.Sharpness(image).enhance(1 + 0.9 * m))
        add(f"posterize_op {strength}", ImageOps.posterize(image, 8 - round(strength / 7.5)))
        # torchvision compares with the threshold as a float.
        threshold = np.linspace(255.0, 0.0, 31)[strength]
        add(f"solarize_op {strength}", np.where(pixels < threshold, pixels, 255 - pixels))
    # Evaluation of the picture of 24 × 32: the sides that it is resized to, and the part at (top, left).
    for name, sides, part in (
        ("evaluate 16 of 18", (18, 24), (1, 4, 16, 16)),
        ("evaluate 30 of 34", (34, 45), (2, 8, 30, 30)),
        ("evaluate 12x20 of 14", (17, 23), (2, 2, 12, 20)),
    ):
        (height, width), (top, left, h, w) = sides, part
        add(name, big.resize((width, height), Image.BILINEAR).crop((left, top, left + w, top + h)))
    # Masks of the picture of 24 × 32: classes 0 … 3, or 0 and 1.
    y, x = np.mgrid[0:24, 0:32]
    classes = (x // 8 % 2 + y // 8).astype(np.uint8)
    palette = Image.fromarray(classes, "P")
    palette.putpalette([9, 9, 9, 200, 0, 0, 0, 200, 0, 0, 0, 200])
    masks = {
        "palette of 2 bits": (palette, {"bits": 2}),
        "palette of 8 bits": (palette, {"bits": 8}),
        "grey of 8 bits": (Image.fromarray(classes, "L"), {}),
        "grey of 1 bit": (Image.fromarray(classes % 2 * 255, "L").convert("1"), {}),
        "grey of 16 bits": (Image.fromarray(classes.astype(np.uint16)), {}),
        "colours": (palette.convert("RGB"), {}),
    }
    files = {}
    for name, (mask, options) in masks.items():
        file = io.BytesIO()
        mask.save(file, "PNG", **options)
        files[name] = file.getvalue().hex()
    with open(path, "w") as file:
        json.dump({"made with": f"pillow {PIL.__version__}", "height": HEIGHT, "width": WIDTH, "results": results, "masks": files}, file,
                  separators=(",", ":"))
        file.write("\n")


record(os.path.join(os.path.dirname(os.path.abspath(__file__)), "image_augment.json"))
