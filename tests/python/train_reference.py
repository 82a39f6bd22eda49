"""Trains ResNet-18 in python3-torch the way strait says it does, as an independent reference.

Usage: train_reference.py FOLDER. Reads config.json, init.safetensors and data.safetensors there, prints
{"losses": [...], "off": {...}, "plain": {...}, "frozen": {...}, "live": {...}} with one loss a step, and writes
trained.safetensors.
"""

import json
import math
import pathlib
import sys

import torch
import torch.nn.functional as F
from torch import nn

import safetensors_file


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.shortcut = nn.Sequential()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride=stride, bias=False),
                                          nn.BatchNorm2d(outputs))

    def forward(self, x):
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        return F.relu(y + self.shortcut(x))


class ResNet18(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.conv1 = nn.Conv2d(3, width, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        channels = width
        for group in range(4):
            outputs = width * 2**group
            blocks = [Block(channels, outputs, 1 if group == 0 else 2), Block(outputs, outputs, 1)]
            setattr(self, f"layer{group + 1}", nn.Sequential(*blocks))
            channels = outputs
        self.linear = nn.Linear(channels, 10)

    def forward(self, x, cuts):
        x = F.relu(self.bn1(self.conv1(x)))
        x = cuts[0](self.layer1(x))
        x = cuts[1](self.layer2(x))
        x = cuts[2](self.layer3(x))
        return self.linear(F.avg_pool2d(self.layer4(x), 4).flatten(1))


def quantise(x, bits):
    levels = 2**bits - 1
    low, high = x.min(), x.max()
    if low == high:
        return x.clone()
    codes = torch.round((x - low) / (high - low) * levels)
    return codes / levels * (high - low) + low


def keep_largest(x, share):
    rows = x.flatten(1)
    kept = math.ceil(round(share * rows.shape[1], 6))
    order = torch.sort(rows.abs(), dim=1, descending=True, stable=True).indices[:, :kept]
    return torch.zeros_like(rows).scatter(1, order, rows.gather(1, order)).reshape(x.shape)


def operator(spec):
    name, _, argument = spec.partition(":")
    if name == "none":
        return lambda x: x.clone()
    return (lambda x: quantise(x, int(argument))) if name == "quant" else (lambda x: keep_largest(x, float(argument)))


class Link:
    """What crosses one cut in one direction; its state has a row for each row of the batch."""

    def __init__(self, spec, feedback):
        self.operator = operator(spec)
        self.feedback = feedback
        self.state = 0.0

    def see(self, x, moves):
        if self.feedback == "ef":
            seen = self.operator(x + self.state)
            after = x + self.state - seen
        elif self.feedback == "ef21":
            seen = after = self.state + self.operator(x - self.state)
        else:
            return self.operator(x)
        if moves:
            self.state = after
        return seen


def training_cut(activations, gradients):
    class Compress(torch.autograd.Function):
        @staticmethod
        def forward(context, x):
            return activations.see(x, True)

        @staticmethod
        def backward(context, gradient):
            return gradients.see(gradient, True)

    return Compress.apply


def evaluation_cut(mode, link):
    return {"off": lambda x: x,
            "plain": link.operator,
            "frozen": lambda x: link.see(x, False),
            "live": lambda x: link.see(x, True)}[mode]


def score(model, links, inputs, targets, batch, mode):
    model.eval()
    cuts = [evaluation_cut(mode, link) for link in links]
    before = [link.state for link in links]
    loss, correct = 0.0, 0
    with torch.no_grad():
        for begin in range(0, len(targets), batch):
            part = targets[begin:begin + batch]
            output = model(inputs[begin:begin + batch], cuts)
            loss += F.cross_entropy(output, part).item() * len(part)
            correct += (output.argmax(1) == part).sum().item()
    for link, state in zip(links, before):
        link.state = state
    return {"loss": loss / len(targets), "accuracy": 100.0 * correct / len(targets)}


def main():
    folder = pathlib.Path(sys.argv[1])
    config = json.loads((folder / "config.json").read_text())
    torch.set_num_threads(config["threads"])
    data, _ = safetensors_file.read(folder / "data.safetensors")
    model = ResNet18(config["width"])
    links = [Link(config["activations"], config["activation_feedback"]) for _ in range(3)]
    cuts = [training_cut(link, Link(config["gradients"], config["gradient_feedback"])) for link in links]
    initial, _ = safetensors_file.read(folder / "init.safetensors")
    model.load_state_dict(initial, strict=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=config["lr"], momentum=config["momentum"],
                                weight_decay=config["weight_decay"])
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=config["t_max"])
    inputs, targets, batch = data["inputs"], data["targets"], config["batch_size"]
    losses = []
    for epoch in range(config["epochs"]):
        model.train()
        order = data[f"order.{epoch}"]
        for begin in range(0, len(order), batch):
            ids = order[begin:begin + batch]
            optimizer.zero_grad()
            loss = F.cross_entropy(model(inputs[ids], cuts), targets[ids])
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        scheduler.step()
    scores = {mode: score(model, links, inputs, targets, batch, mode) for mode in ("off", "plain", "frozen", "live")}
    print(json.dumps({"losses": losses, **scores}))
    safetensors_file.write(folder / "trained.safetensors", model.state_dict(), {"format": "pt"})


if __name__ == "__main__":
    main()
