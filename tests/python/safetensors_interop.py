"""A reader and a writer of safetensors, written from the format's description with struct and json only.

    safetensors_interop.py check FILE    compares FILE with the tensors below
    safetensors_interop.py write FILE    writes those tensors and one piece of metadata

Layout: 8 bytes little-endian header length, JSON header, data. The C++ test makes the same tensors.
"""

import json
import struct
import sys

import torch

DTYPES = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "I64": torch.int64,
    "I32": torch.int32,
    "I16": torch.int16,
    "I8": torch.int8,
    "U8": torch.uint8,
    "BOOL": torch.bool,
}
METADATA = {"format": "pt", "note": "caf\u00e9 \"quoted\""}


def expected():
    """Counting tensors of every type, a scalar, an empty one and one with an odd name."""
    tensors = {}
    for name, dtype in DTYPES.items():
        values = torch.arange(6) % 2 if name == "BOOL" else torch.arange(6) * 3
        tensors["t." + name] = values.to(dtype).reshape(2, 3)
    tensors["scalar"] = torch.tensor(-1.5)
    tensors["empty"] = torch.zeros(0, 4)
    tensors["odd \"name\"\n\u00e9"] = torch.tensor([1, -2], dtype=torch.int64)
    return tensors


def raw_bytes(tensor):
    flat = tensor.contiguous().reshape(-1)
    return bytes(flat.view(torch.uint8).tolist()) if flat.numel() and flat.dtype != torch.bool else bytes(
        flat.to(torch.uint8).tolist())


def write(path):
    header, data = {"__metadata__": METADATA}, b""
    for name, tensor in expected().items():
        part = raw_bytes(tensor)
        code = next(key for key, dtype in DTYPES.items() if dtype == tensor.dtype)
        header[name] = {"dtype": code, "shape": list(tensor.shape), "data_offsets": [len(data), len(data) + len(part)]}
        data += part
    text = json.dumps(header).encode()
    with open(path, "wb") as out:
        out.write(struct.pack("<Q", len(text)) + text + data)


def read(path):
    with open(path, "rb") as source:
        content = source.read()
    (length,) = struct.unpack("<Q", content[:8])
    assert (8 + length) % 8 == 0, "the data are not aligned to 8 bytes"
    header = json.loads(content[8 : 8 + length])
    data = content[8 + length :]
    metadata = header.pop("__metadata__", {})
    tensors = {}
    end_of_last = 0
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        assert begin == end_of_last, f"{name} begins at {begin}, expected {end_of_last}"
        end_of_last = end
        part = bytearray(data[begin:end])
        dtype = DTYPES[entry["dtype"]]
        tensor = torch.frombuffer(part, dtype=dtype) if part else torch.zeros(0, dtype=dtype)
        tensors[name] = tensor.reshape(entry["shape"])
    assert end_of_last == len(data), "bytes follow the last tensor"
    return tensors, metadata


def check(path):
    tensors, metadata = read(path)
    wanted = expected()
    assert metadata == METADATA, metadata
    assert list(tensors) == list(wanted), list(tensors)
    for name, tensor in wanted.items():
        found = tensors[name]
        assert found.dtype == tensor.dtype and found.shape == tensor.shape, name
        assert torch.equal(found, tensor), name


if __name__ == "__main__":
    {"check": check, "write": write}[sys.argv[1]](sys.argv[2])
