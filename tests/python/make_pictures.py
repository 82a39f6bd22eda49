"""Makes tests/golden/pictures with Pillow: each NAME.png or NAME.jpg with NAME.rgb, the bytes that Pillow's
convert("RGB") gives, and NAME.fit-SIZE.rgb, what torchvision's Resize(SIZE) and CenterCrop(SIZE) make of it.

Usage: make_pictures.py FOLDER. The files are kept, so that the tests need no Pillow.
"""

import pathlib
import struct
import sys
import zlib

from PIL import Image


def colours(width, height):
    return [((x * 255) // (width - 1), (y * 255) // (height - 1), (x * 37 + y * 91) % 256)
            for y in range(height) for x in range(width)]


def picture(width, height, mode="RGB"):
    image = Image.new("RGB", (width, height))
    image.putdata(colours(width, height))
    return image.convert(mode)


def fitted(image, size):
    width, height = image.size
    short, long = min(width, height), max(width, height)
    scaled = int(size * long / short)
    image = image.resize((size, scaled) if width <= height else (scaled, size), Image.BILINEAR)
    left = int(round((image.width - size) / 2.0))
    top = int(round((image.height - size) / 2.0))
    return image.crop((left, top, left + size, top + size))


def interlaced(width, height):
    """An Adam7 file of 8-bit RGB, which Pillow does not write."""
    rows = colours(width, height)
    data = b""
    for x0, y0, dx, dy in [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]:
        if x0 >= width:
            continue
        for y in range(y0, height, dy):
            data += b"\0" + b"".join(bytes(rows[y * width + x]) for x in range(x0, width, dx))

    def chunk(name, content):
        return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 1)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(data)) + chunk(b"IEND", b"")


def main():
    folder = pathlib.Path(sys.argv[1])
    alpha = picture(9, 7).convert("RGBA")
    alpha.putalpha(Image.linear_gradient("L").resize((9, 7)))
    palette = picture(9, 7).quantize(12)
    palette.save(folder / "palette.png", transparency=3)
    picture(9, 7).save(folder / "rgb.png")
    alpha.save(folder / "rgba.png")
    picture(9, 7, "L").save(folder / "grey.png")
    picture(9, 7, "1").save(folder / "bits.png")
    picture(9, 7, "LA").save(folder / "grey-alpha.png")
    (folder / "interlaced.png").write_bytes(interlaced(9, 7))
    picture(20, 14).save(folder / "rgb.jpg", quality=80)
    picture(20, 14).save(folder / "progressive.jpg", quality=80, progressive=True)
    picture(20, 14, "L").save(folder / "grey.jpg", quality=80)
    picture(8, 8, "CMYK").save(folder / "cmyk.jpg", quality=50)
    for path in sorted([*folder.glob("*.png"), *folder.glob("*.jpg")]):
        with Image.open(path) as image:
            path.with_suffix(path.suffix + ".rgb").write_bytes(image.convert("RGB").tobytes())
    for size in (8, 23):
        with Image.open(folder / "rgb.jpg") as image:
            (folder / f"rgb.jpg.fit-{size}.rgb").write_bytes(fitted(image.convert("RGB"), size).tobytes())
    # 16 bits a channel: the higher byte counts up by 3, the lower one is 255.
    values = b"".join(b"\0" + b"".join(bytes([(3 * (x + 5 * y)) % 256, 255]) for x in range(5)) for y in range(4))
    header = struct.pack(">IIBBBBB", 5, 4, 16, 0, 0, 0, 0)
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(values)), (b"IEND", b"")]
    content = b"\x89PNG\r\n\x1a\n"
    for name, data in chunks:
        content += struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
    (folder / "deep.png").write_bytes(content)
    (folder / "deep.png.rgb").write_bytes(bytes(3 * (x + 5 * y) % 256 for y in range(4) for x in range(5) for _ in range(3)))


if __name__ == "__main__":
    main()
