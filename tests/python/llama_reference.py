"""A Llama decoder in plain PyTorch, written from the papers' formulas, as an independent reference.

Usage: llama_reference.py FOLDER. Reads config.json (layers, heads, kv_heads, width, hidden, vocab, theta, eps, tied,
head_size, qkv_bias, qk_norm, scaling), tokens.safetensors and weights.safetensors there. Writes the logits to logits.safetensors and the gradients of the mean
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
    queries, keys = config["head_size"] * config["heads"], config["head_size"] * config["kv_heads"]
    yield "model.embed_tokens.weight", [config["vocab"], width]
    for i in range(config["layers"]):
        for name, out, into in [("self_attn.q_proj", queries, width), ("self_attn.k_proj", keys, width),
                                ("self_attn.v_proj", keys, width), ("self_attn.o_proj", width, queries),
                                ("mlp.gate_proj", hidden, width), ("mlp.up_proj", hidden, width),
                                ("mlp.down_proj", width, hidden)]:
            yield f"model.layers.{i}.{name}.weight", [out, into]
            if config["qkv_bias"] and name[10] in "qkv":
                yield f"model.layers.{i}.{name}.bias", [out]
        for name in ["input_layernorm", "post_attention_layernorm"]:
            yield f"model.layers.{i}.{name}.weight", [width]
        for name in ["q_norm", "k_norm"] if config["qk_norm"] else []:
            yield f"model.layers.{i}.self_attn.{name}.weight", [config["head_size"]]
    yield "model.norm.weight", [width]
    if not config["tied"]:
        yield "lm_head.weight", [config["vocab"], width]


def normalise(x, weight, eps):
    return x / torch.sqrt((x * x).mean(-1, keepdim=True) + eps) * weight


def slowed(speed, factor, low, high, context):
    """Llama 3.1's rule for one frequency, by its wave length in tokens."""
    length = 2 * math.pi / speed
    if length < context / high:
        return speed
    if length > context / low:
        return speed / factor
    share = (context / length - low) / (high - low)
    return (1 - share) * speed / factor + share * speed


def rotate(x, theta, scaling):
    """x, [B, T, D]: elements i and i + D/2 as one complex number, times exp(i position theta^(-2i/D))."""
    half = x.shape[-1] // 2
    speeds = [slowed(theta ** (-2 * i / (2 * half)), **scaling) for i in range(half)]
    speeds = torch.tensor(speeds, dtype=torch.float64)
    angles = torch.arange(x.shape[1], dtype=torch.float64)[:, None] * speeds
    turned = torch.complex(x[..., :half].double(), x[..., half:].double()) * torch.polar(torch.ones_like(angles), angles)
    return torch.cat([turned.real, turned.imag], -1).to(x.dtype)


def attend(x, weights, name, config):
    size = config["head_size"]
    group = config["heads"] // config["kv_heads"]
    q, k, v = (x @ weights[f"{name}.{part}_proj.weight"].T + weights.get(f"{name}.{part}_proj.bias", 0) for part in "qkv")
    visible = torch.tril(torch.ones(x.shape[1], x.shape[1], dtype=torch.bool))
    outputs = []
    for head in range(config["heads"]):
        mine = slice(head * size, (head + 1) * size)
        shared = slice(head // group * size, (head // group + 1) * size)
        query, key = q[..., mine], k[..., shared]
        if config["qk_norm"]:
            query = normalise(query, weights[f"{name}.q_norm.weight"], config["eps"])
            key = normalise(key, weights[f"{name}.k_norm.weight"], config["eps"])
        turned = [rotate(part, config["theta"], config["scaling"]) for part in (query, key)]
        scores = turned[0] @ turned[1].transpose(1, 2)
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
