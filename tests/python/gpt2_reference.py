"""GPT-2 in python3-torch, written from the papers (Radford et al. 2018 and 2019), as an independent reference.

Usage: gpt2_reference.py FOLDER. Reads config.json (layers, heads, width, context, vocab, seed), tokens.safetensors
and weights.safetensors there; writes the gradients of the mean next-token loss to gradients.safetensors. Then draws
weights of its own and writes them, with the names and the extra tensors of a language model's file, to
drawn.safetensors, and their gradients to drawn_gradients.safetensors. Prints {"loss": ..., "drawn_loss": ...}.
"""

import json
import math
import pathlib
import sys

import torch

import safetensors_file


def shapes(config):
    width = config["width"]
    yield "wte.weight", [config["vocab"], width]
    yield "wpe.weight", [config["context"], width]
    for i in range(config["layers"]):
        for name, rows, columns in [("attn.c_attn", width, 3 * width), ("attn.c_proj", width, width),
                                    ("mlp.c_fc", width, 4 * width), ("mlp.c_proj", 4 * width, width)]:
            yield f"h.{i}.{name}.weight", [rows, columns]
            yield f"h.{i}.{name}.bias", [columns]
        for name in ["ln_1", "ln_2"]:
            yield f"h.{i}.{name}.weight", [width]
            yield f"h.{i}.{name}.bias", [width]
    yield "ln_f.weight", [width]
    yield "ln_f.bias", [width]


def normalise(x, weights, name):
    mean = x.mean(-1, keepdim=True)
    variance = ((x - mean) ** 2).mean(-1, keepdim=True)
    return (x - mean) / torch.sqrt(variance + 1e-5) * weights[name + ".weight"] + weights[name + ".bias"]


def project(x, weights, name):
    return x @ weights[name + ".weight"] + weights[name + ".bias"]


def gelu(x):
    return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def attend(x, weights, name, heads):
    tokens, width = x.shape[1], x.shape[2]
    outputs = []
    for q, k, v in zip(*(part.split(width // heads, -1)
                         for part in project(x, weights, name + ".c_attn").split(width, -1))):
        scores = q @ k.transpose(1, 2) / math.sqrt(width // heads)
        visible = torch.tril(torch.ones(tokens, tokens, dtype=torch.bool))
        outputs.append(torch.softmax(torch.where(visible, scores, torch.tensor(-1e30)), -1) @ v)
    return project(torch.cat(outputs, -1), weights, name + ".c_proj")


def loss_of(weights, tokens, config):
    x = weights["wte.weight"][tokens] + weights["wpe.weight"][: tokens.shape[1]]
    for i in range(config["layers"]):
        x = x + attend(normalise(x, weights, f"h.{i}.ln_1"), weights, f"h.{i}.attn", config["heads"])
        hidden = gelu(project(normalise(x, weights, f"h.{i}.ln_2"), weights, f"h.{i}.mlp.c_fc"))
        x = x + project(hidden, weights, f"h.{i}.mlp.c_proj")
    logits = normalise(x, weights, "ln_f") @ weights["wte.weight"].T
    right = torch.log_softmax(logits, -1)[:, :-1].gather(2, tokens[:, 1:, None])
    return -right.mean()


def differentiate(weights, tokens, config, path):
    for weight in weights.values():
        weight.requires_grad_(True)
    loss = loss_of(weights, tokens, config)
    loss.backward()
    safetensors_file.write(path, {name: weight.grad for name, weight in weights.items()})
    return loss.item()


def draw(config):
    torch.manual_seed(config["seed"])
    return {name: 0.2 * torch.randn(shape) + (1 if "ln_" in name and name.endswith("weight") else 0)
            for name, shape in shapes(config)}


def language_model_file(weights, config):
    """As a language model's file has it: everything but the head in a part of its own, and the causal masks."""
    tensors = {"transformer." + name: weight.detach() for name, weight in weights.items()}
    for i in range(config["layers"]):
        mask = torch.tril(torch.ones(1, 1, config["context"], config["context"])).to(torch.uint8)
        tensors[f"transformer.h.{i}.attn.bias"] = mask
        tensors[f"transformer.h.{i}.attn.masked_bias"] = torch.tensor(-1e4)
    tensors["lm_head.weight"] = weights["wte.weight"].detach()
    return tensors


def main():
    folder = pathlib.Path(sys.argv[1])
    config = json.loads((folder / "config.json").read_text())
    torch.set_num_threads(1)
    tokens = safetensors_file.read(folder / "tokens.safetensors")[0]["tokens"]
    given, _ = safetensors_file.read(folder / "weights.safetensors")
    assert {name: list(weight.shape) for name, weight in given.items()} == dict(shapes(config))
    losses = {"loss": differentiate(given, tokens, config, folder / "gradients.safetensors")}
    drawn = draw(config)
    safetensors_file.write(folder / "drawn.safetensors", language_model_file(drawn, config), {"format": "pt"})
    losses["drawn_loss"] = differentiate(drawn, tokens, config, folder / "drawn_gradients.safetensors")
    print(json.dumps(losses))


if __name__ == "__main__":
    main()
