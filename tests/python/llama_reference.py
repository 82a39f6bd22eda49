"""A Llama decoder in plain PyTorch, written from the papers' formulas, as an independent reference.

Usage: llama_reference.py FOLDER. Reads config.json (layers, heads, kv_heads, width, hidden, vocab, theta, eps, tied),
tokens.safetensors and weights.safetensors there. Writes the logits to logits.safetensors and the gradients of the mean
next-token loss to gradients.safetensors. Prints {"loss": ...}.
"""

import json
import math
import pathlib
import sys

import torch

import safetensors_file


def shapes(config):
    width, hidden = config["width"], config["hidden"]
    keys = width // config["heads"] * config["kv_heads"]
    yield "model.embed_tokens.weight", [config["vocab"], width]
    for i in range(config["layers"]):
        for name, out, into in [("self_attn.q_proj", width, width), ("self_attn.k_proj", keys, width),
                                ("self_attn.v_proj", keys, width), ("self_attn.o_proj", width, width),
                                ("mlp.gate_proj", hidden, width), ("mlp.up_proj", hidden, width),
                                ("mlp.down_proj", width, hidden)]:
            yield f"model.layers.{i}.{name}.weight", [out, into]
        for name in ["input_layernorm", "post_attention_layernorm"]:
            yield f"model.layers.{i}.{name}.weight", [width]
    yield "model.norm.weight", [width]
    if not config["tied"]:
        yield "lm_head.weight", [config["vocab"], width]


def normalise(x, weight, eps):
    return x / torch.sqrt((x * x).mean(-1, keepdim=True) + eps) * weight


def rotate(x, theta):
    """x, [B, T, D]: elements i and i + D/2 as one complex number, times exp(i position theta^(-2i/D))."""
    half = x.shape[-1] // 2
    speeds = torch.tensor([theta ** (-2 * i / (2 * half)) for i in range(half)], dtype=torch.float64)
    angles = torch.arange(x.shape[1], dtype=torch.float64)[:, None] * speeds
    turned = torch.complex(x[..., :half].double(), x[..., half:].double()) * torch.polar(torch.ones_like(angles), angles)
    return torch.cat([turned.real, turned.imag], -1).to(x.dtype)


def attend(x, weights, name, config):
    size = config["width"] // config["heads"]
    group = config["heads"] // config["kv_heads"]
    q, k, v = (x @ weights[f"{name}.{part}_proj.weight"].T for part in "qkv")
    visible = torch.tril(torch.ones(x.shape[1], x.shape[1], dtype=torch.bool))
    outputs = []
    for head in range(config["heads"]):
        mine = slice(head * size, (head + 1) * size)
        shared = slice(head // group * size, (head // group + 1) * size)
        scores = rotate(q[..., mine], config["theta"]) @ rotate(k[..., shared], config["theta"]).transpose(1, 2)
        scores = torch.where(visible, scores / math.sqrt(size), torch.tensor(-1e30))
        outputs.append(torch.softmax(scores, -1) @ v[..., shared])
    return torch.cat(outputs, -1) @ weights[f"{name}.o_proj.weight"].T


def perceptron(x, weights, name):
    gate = x @ weights[f"{name}.gate_proj.weight"].T
    return (gate * torch.sigmoid(gate) * (x @ weights[f"{name}.up_proj.weight"].T)) @ weights[f"{name}.down_proj.weight"].T


def logits_of(weights, tokens, config):
    eps = config["eps"]
    x = weights["model.embed_tokens.weight"][tokens]
    for i in range(config["layers"]):
        block = f"model.layers.{i}"
        x = x + attend(normalise(x, weights[f"{block}.input_layernorm.weight"], eps), weights, f"{block}.self_attn",
                       config)
        x = x + perceptron(normalise(x, weights[f"{block}.post_attention_layernorm.weight"], eps), weights,
                           f"{block}.mlp")
    x = normalise(x, weights["model.norm.weight"], eps)
    return x @ weights["model.embed_tokens.weight" if config["tied"] else "lm_head.weight"].T


def main():
    folder = pathlib.Path(sys.argv[1])
    config = json.loads((folder / "config.json").read_text())
    torch.set_num_threads(1)
    tokens = safetensors_file.read(folder / "tokens.safetensors")[0]["tokens"]
    weights, _ = safetensors_file.read(folder / "weights.safetensors")
    assert {name: list(weight.shape) for name, weight in weights.items()} == dict(shapes(config))
    for weight in weights.values():
        weight.requires_grad_(True)
    logits = logits_of(weights, tokens, config)
    right = torch.log_softmax(logits, -1)[:, :-1].gather(2, tokens[:, 1:, None])
    loss = -right.mean()
    loss.backward()
    safetensors_file.write(folder / "logits.safetensors", {"logits": logits.detach()})
    safetensors_file.write(folder / "gradients.safetensors", {name: weight.grad for name, weight in weights.items()})
    print(json.dumps({"loss": loss.item()}))


if __name__ == "__main__":
    main()
