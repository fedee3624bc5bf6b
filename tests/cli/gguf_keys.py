# SPDX-License-Identifier: Apache-2.0
"""Adds keys of any type to a GGUF file."""

import struct

ALIGNMENT = 32  # of tensors, unless a key changes it
UINT32, INT32, FLOAT32, BOOL, STRING = 4, 5, 6, 7, 8
FORMATS = {UINT32: "<I", INT32: "<i", FLOAT32: "<f", BOOL: "<?"}


def text_bytes(text):
    data = text if isinstance(text, bytes) else text.encode()
    return struct.pack("<Q", len(data)) + data


def key_bytes(name, kind, value):
    return text_bytes(name) + struct.pack("<I", kind) + (text_bytes(value) if kind == STRING else struct.pack(FORMATS[kind], value))


def write_with_keys(source, path, keys):
    """Writes the file at `source` with more keys, {name: (type, value)}. A last key pads the header so that tensors
    stay aligned."""
    with open(source, "rb") as file:
        head, rest = file.read(24), file.read()
    magic, version, tensors, count = struct.unpack("<4sIQQ", head)
    added = b"".join(key_bytes(name, *value) for name, value in keys.items())
    unfilled = len(added) + len(key_bytes("test.filling", STRING, ""))
    added += key_bytes("test.filling", STRING, "x" * (-unfilled % ALIGNMENT))
    with open(path, "wb") as file:
        file.write(struct.pack("<4sIQQ", magic, version, tensors, count + len(keys) + 1) + added + rest)
    return str(path)
