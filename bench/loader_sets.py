"""Makes the sets of images that bench/loader_vs_pytorch reads, with numpy and PIL alone where lmdb or FFCV is missing:

  loader_sets.py FOLDER IMAGES [PHOTOS]

JPEG of quality 90 and 500 x 375 pixels, in 10 classes: parts of the photos below the folder PHOTOS, else pictures of
many edges of every size. FOLDER gets `jpeg/` (a folder of files), `jpeg-*.tar` (shards), `jpeg-lmdb/` (Caffe's Datum),
and the same pictures as 256 x 256 pixels that are not compressed: `raw-*.tar` (PPM), `planes-*.tar` (arrays),
`raw-lmdb/`. With FFCV also
`jpeg.beton` and `raw.beton`. What is there is kept. Prints JSON that says what there is.
"""
import io
import json
import pathlib
import sys
import tarfile

import numpy
from PIL import Image

WIDTH, HEIGHT, QUALITY, SIDE, CLASSES, SHARDS = 500, 375, 90, 256, 10, 8
KINDS = (".jpg", ".jpeg", ".png", ".webp")


def painted(random):
    """A picture with the spectrum of photos, whose power falls with the square of the frequency: covering discs of
    every size (Lee, Mumford, Huang, "Occlusion Models for Natural Images", 2001), shaded and with a little grain."""
    y, x = numpy.mgrid[0:HEIGHT, 0:WIDTH].astype(numpy.float32)
    picture = numpy.empty((HEIGHT, WIDTH, 3), numpy.float32)
    picture[:] = random.uniform(40, 200, 3)
    radii = 1 / numpy.sqrt(random.uniform(1 / 120 ** 2, 1 / 4 ** 2, 1500))  # density of r^-3
    for radius in -numpy.sort(-radii)[random.permutation(len(radii))]:
        cx, cy = random.uniform(0, WIDTH), random.uniform(0, HEIGHT)
        left, right = max(int(cx - radius), 0), min(int(cx + radius) + 1, WIDTH)
        top, bottom = max(int(cy - radius), 0), min(int(cy + radius) + 1, HEIGHT)
        px, py = x[top:bottom, left:right], y[top:bottom, left:right]
        inside = (px - cx) ** 2 + (py - cy) ** 2 < radius ** 2
        colour = random.normal(random.uniform(30, 225), 25, 3).astype(numpy.float32)
        slope = random.normal(0, 20 / radius, 2)
        shade = (px - cx) * slope[0] + (py - cy) * slope[1]
        picture[top:bottom, left:right][inside] = colour + shade[inside][:, None]
    picture += random.normal(0, 4, (HEIGHT, WIDTH, 1))
    return Image.fromarray(picture.clip(0, 255).astype(numpy.uint8))


def photographed(photos, random):
    """Most of a photo, made smaller: as sharp as pictures of the web."""
    photo = photos[random.integers(len(photos))]
    most = min(photo.width / WIDTH, photo.height / HEIGHT)
    scale = most * random.uniform(0.6, 1)
    width, height = int(WIDTH * scale), int(HEIGHT * scale)
    left, top = random.integers(photo.width - width + 1), random.integers(photo.height - height + 1)
    return photo.resize((WIDTH, HEIGHT), Image.Resampling.LANCZOS, (left, top, left + width, top + height))


def pictures(images, folder):
    random = numpy.random.default_rng(1)
    photos = []
    for path in sorted(pathlib.Path(folder).rglob("*")) if folder else ():
        if path.suffix.lower() in KINDS:
            photo = Image.open(path).convert("RGB")
            if photo.width >= WIDTH and photo.height >= HEIGHT:
                photos.append(photo)
    if folder and not photos:
        sys.exit(f"no photos of at least {WIDTH} x {HEIGHT} pixels below {folder}")
    for i in range(images):
        picture = photographed(photos, random) if photos else painted(random)
        file = io.BytesIO()
        picture.save(file, "JPEG", quality=QUALITY)
        yield i, i % CLASSES, file.getvalue()


def files_of(folder):
    """(index, class, path), in order."""
    return [(int(path.stem), int(path.parent.name), path) for path in
            sorted((folder / "jpeg").rglob("*.jpg"), key=lambda path: int(path.stem))]


def ppm(file):
    image = Image.open(io.BytesIO(file)).resize((SIDE, SIDE), Image.Resampling.BILINEAR)
    return b"P6\n%d %d\n255\n" % (SIDE, SIDE) + image.tobytes()


def write_shards(folder, stem, extension, samples):
    # What is written in large parts lies in large pages of the page cache, as what is read from front to back.
    files = [open(folder / f"{stem}-{i:06d}.tar", "wb", 1 << 22) for i in range(SHARDS)]
    shards = [tarfile.open(fileobj=file, mode="w", format=tarfile.USTAR_FORMAT) for file in files]
    for i, label, data in samples:
        for name, content in ((extension, data), ("cls", str(label).encode())):
            entry = tarfile.TarInfo(f"{i:08d}.{name}")
            entry.size = len(content)
            shards[i % SHARDS].addfile(entry, io.BytesIO(content))
    for shard, file in zip(shards, files):
        shard.close()
        file.close()


def varint(value):
    groups = []
    while value > 127:
        groups.append(value & 127 | 128)
        value >>= 7
    return bytes([*groups, value])


def datum(label, data, side=0):
    """Caffe's message: channels 1, height 2, width 3, data 4, label 5, encoded 7."""
    sizes = b"".join(bytes([field << 3]) + varint(value) for field, value in ((1, 3), (2, side), (3, side))) if side \
        else b""
    return sizes + b"\x22" + varint(len(data)) + data + b"\x28" + varint(label) + (b"" if side else b"\x38\x01")


def write_lmdb(path, samples, side=0):
    import lmdb
    with lmdb.open(str(path), map_size=1 << 36) as environment:
        with environment.begin(write=True) as transaction:
            for i, label, data in samples:
                transaction.put(b"%08d" % i, datum(label, data, side))


def pixels_of(file):
    return numpy.frombuffer(ppm(file)[-3 * SIDE * SIDE:], numpy.uint8).reshape(SIDE, SIDE, 3)


def raw_pixels(file):
    return pixels_of(file)[:, :, ::-1].transpose(2, 0, 1).tobytes()  # blue first, a plane a channel


def array(file):
    content = io.BytesIO()
    numpy.save(content, numpy.ascontiguousarray(pixels_of(file).transpose(2, 0, 1)))
    return content.getvalue()


def write_beton(path, files, is_raw):
    from ffcv.fields import IntField, RGBImageField
    from ffcv.writer import DatasetWriter

    class Pictures:
        def __len__(self):
            return len(files)

        def __getitem__(self, i):
            image = Image.open(files[i][2]).convert("RGB")
            return (image.resize((SIDE, SIDE), Image.Resampling.BILINEAR) if is_raw else image), files[i][1]

    # FFCV encodes anew what it stores as JPEG.
    field = RGBImageField(write_mode="raw") if is_raw else RGBImageField(write_mode="jpg", jpeg_quality=QUALITY)
    DatasetWriter(str(path), {"image": field, "label": IntField()}, num_workers=1).from_indexed_dataset(Pictures())


def main(folder, images, photos):
    folder.mkdir(parents=True, exist_ok=True)
    mark = folder / "made.json"
    made = {"images": images, "photos": str(photos)}
    if not mark.exists() or json.loads(mark.read_text(encoding="utf-8")) != made:
        if any(folder.iterdir()):
            sys.exit(f"{folder} holds something else: name an empty folder, or remove it")
        for i, label, data in pictures(images, photos):
            path = folder / f"jpeg/{label}/{i:08d}.jpg"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        mark.write_text(json.dumps(made), encoding="utf-8")
    files = files_of(folder)

    def with_data(change=lambda data: data):
        return ((i, label, change(path.read_bytes())) for i, label, path in files)

    makers = {
        "jpeg-000000.tar": lambda: write_shards(folder, "jpeg", "jpg", with_data()),
        "raw-000000.tar": lambda: write_shards(folder, "raw", "ppm", with_data(ppm)),
        "planes-000000.tar": lambda: write_shards(folder, "planes", "planes.npy", with_data(array)),
        "jpeg-lmdb": lambda: write_lmdb(folder / "jpeg-lmdb", with_data()),
        "raw-lmdb": lambda: write_lmdb(folder / "raw-lmdb", with_data(raw_pixels), SIDE),
        "jpeg.beton": lambda: write_beton(folder / "jpeg.beton", files, False),
        "raw.beton": lambda: write_beton(folder / "raw.beton", files, True),
    }
    lacking = {}
    for name, make in makers.items():
        if not (folder / name).exists():
            try:
                make()
            except Exception as error:  # FFCV fails in many ways
                lacking[name] = f"{type(error).__name__}: {error}".splitlines()[0]
                (folder / name).unlink(missing_ok=True)
    print(json.dumps({"images": len(files), "mean_bytes": sum(path.stat().st_size for _, _, path in files) / len(files),
                      "lacking": lacking}))


main(pathlib.Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3] if len(sys.argv) > 3 else "")
