"""Encodes texts with a byte-level BPE, as the paper of GPT-2 says it and as plainly as can be.

    bpe_reference.py FOLDER FILE

FOLDER holds vocab.json and merges.txt; FILE has a text a line, in hexadecimal. Prints the ids of each text on a line.
A byte that is no part of well-formed UTF-8 is a piece of its own, and the text on either side is split alone.
"""

import json
import pathlib
import sys

import regex

PATTERN = regex.compile(r"""'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+""")


def byte_characters():
    """The character that each byte is written as."""
    printable = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    others = [byte for byte in range(256) if byte not in printable]
    return {byte: chr(byte) for byte in printable} | {byte: chr(256 + i) for i, byte in enumerate(others)}


def pieces(data):
    while data:
        try:
            good, bad = data.decode("utf-8"), b""
        except UnicodeDecodeError as error:
            good, bad = data[: error.start].decode("utf-8"), data[error.start : error.start + 1]
        yield from (piece.encode("utf-8") for piece in PATTERN.findall(good))
        if not bad:
            return
        yield bad
        data = data[len(good.encode("utf-8")) + 1 :]


class Reference:
    def __init__(self, folder):
        self.vocab = json.loads((folder / "vocab.json").read_text(encoding="utf-8"))
        lines = (folder / "merges.txt").read_text(encoding="utf-8").split("\n")[1:]
        self.ranks = {tuple(line.split(" ")): rank for rank, line in enumerate(lines) if line}
        self.characters = byte_characters()
        self.known = {}

    def merge(self, piece):
        word = [self.characters[byte] for byte in piece]
        while True:
            pairs = [pair for pair in zip(word, word[1:]) if pair in self.ranks]
            if not pairs:
                return [self.vocab[token] for token in word]
            best = min(pairs, key=self.ranks.get)
            merged = []
            i = 0
            while i < len(word):
                if tuple(word[i : i + 2]) == best:
                    merged.append(word[i] + word[i + 1])
                    i += 2
                else:
                    merged.append(word[i])
                    i += 1
            word = merged

    def encode(self, data):
        ids = []
        for piece in pieces(data):
            if piece not in self.known:
                self.known[piece] = self.merge(piece)
            ids += self.known[piece]
        return ids


def main(folder, file):
    reference = Reference(pathlib.Path(folder))
    for line in pathlib.Path(file).read_text(encoding="ascii").splitlines():
        print(*reference.encode(bytes.fromhex(line)))


main(*sys.argv[1:])
