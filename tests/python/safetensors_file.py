"""Reads and writes .safetensors files, written from the format's description alone."""

import json
import struct

import torch

DTYPES = {"F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16,
          "I64": torch.int64, "I32": torch.int32, "I16": torch.int16, "I8": torch.int8, "U8": torch.uint8,
          "BOOL": torch.bool}


def read(path):
    """Returns ({name: tensor}, metadata)."""
    with open(path, "rb") as file:
        raw = file.read()
    (size,) = struct.unpack("<Q", raw[:8])
    header = json.loads(raw[8:8 + size])
    data = bytearray(raw[8 + size:])
    metadata = header.pop("__metadata__", {})
    tensors = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        dtype = DTYPES[entry["dtype"]]
        if begin == end:
            tensors[name] = torch.empty(entry["shape"], dtype=dtype)
        else:
            tensors[name] = torch.frombuffer(data[begin:end], dtype=dtype).reshape(entry["shape"])
    return tensors, metadata


def write(path, tensors, metadata=None):
    names = {dtype: name for name, dtype in DTYPES.items()}
    header = {"__metadata__": metadata} if metadata else {}
    parts = []
    offset = 0
    for name, tensor in tensors.items():
        tensor = tensor.contiguous()
        part = bytes(tensor.flatten().view(torch.uint8).numpy()) if tensor.numel() else b""
        header[name] = {"dtype": names[tensor.dtype], "shape": list(tensor.shape),
                        "data_offsets": [offset, offset + len(part)]}
        parts.append(part)
        offset += len(part)
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)))
        file.write(text)
        file.writelines(parts)
