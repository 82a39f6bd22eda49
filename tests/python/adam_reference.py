"""Trains a small language model in python3-torch with Adam or AdamW, Hugging Face's linear schedule and clipping.

Usage: adam_reference.py FOLDER. Reads config.json, init.safetensors and data.safetensors there, prints
{"losses": [...], "rates": [...], "loss": ...} with one number per step, and writes trained.safetensors and, of the
logits in data.safetensors, gradient.safetensors.
"""

import json
import pathlib
import sys

import torch
import torch.nn.functional as F
from torch import nn

import safetensors_file


class Between(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear = nn.Linear(width, width)

    def forward(self, x):
        return torch.tanh(self.linear(x))


class Head(nn.Module):
    def __init__(self, width, vocabulary):
        super().__init__()
        self.linear = nn.Linear(width, vocabulary)

    def forward(self, x):
        return self.linear(x)


def language_model_loss(logits, tokens):
    return F.cross_entropy(logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())


def linear_schedule(warmup, steps):
    def share(step):
        if step < warmup:
            return step / max(1, warmup)
        return max(0.0, (steps - step) / max(1, steps - warmup))

    return share


def main():
    folder = pathlib.Path(sys.argv[1])
    config = json.loads((folder / "config.json").read_text())
    torch.set_num_threads(1)
    data, _ = safetensors_file.read(folder / "data.safetensors")
    initial, _ = safetensors_file.read(folder / "init.safetensors")
    vocabulary, width = initial["embed.weight"].shape
    model = nn.ModuleDict({"embed": nn.Embedding(vocabulary, width), "between": Between(width),
                           "head": Head(width, vocabulary)})
    model.load_state_dict(initial, strict=True)
    kind = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}[config["kind"]]
    optimizer = kind(model.parameters(), lr=config["lr"], betas=config["betas"], eps=config["eps"],
                     weight_decay=config["weight_decay"])
    tokens, batch, epochs = data["tokens"], config["batch_size"], config["epochs"]
    steps = epochs * -(-len(tokens) // batch)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, linear_schedule(config["warmup_steps"], steps))
    losses, rates = [], []
    for epoch in range(epochs):
        order = data[f"order.{epoch}"]
        for begin in range(0, len(order), batch):
            part = tokens[order[begin:begin + batch]]
            optimizer.zero_grad()
            loss = language_model_loss(model["head"](model["between"](model["embed"](part))), part)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), config["clip_norm"])
            losses.append(loss.item())
            rates.append(scheduler.get_last_lr()[0])
            optimizer.step()
            scheduler.step()
    logits = data["logits"].requires_grad_(True)
    loss = language_model_loss(logits, tokens)
    loss.backward()
    print(json.dumps({"losses": losses, "rates": rates, "loss": loss.item()}))
    safetensors_file.write(folder / "trained.safetensors", model.state_dict(), {"format": "pt"})
    safetensors_file.write(folder / "gradient.safetensors", {"logits": logits.grad}, {"format": "pt"})


if __name__ == "__main__":
    main()
