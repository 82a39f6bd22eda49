"""Trains ResNet-18 in python3-torch the way strait says it does, as an independent reference.

Usage: train_reference.py FOLDER. Reads config.json, init.safetensors and data.safetensors there, prints
{"losses": [...], "off": {...}, "on": {...}} with one loss a step, and writes trained.safetensors.
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
    def __init__(self, width, compress):
        super().__init__()
        self.compress = compress
        self.conv1 = nn.Conv2d(3, width, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        channels = width
        for group in range(4):
            outputs = width * 2**group
            blocks = [Block(channels, outputs, 1 if group == 0 else 2), Block(outputs, outputs, 1)]
            setattr(self, f"layer{group + 1}", nn.Sequential(*blocks))
            channels = outputs
        self.linear = nn.Linear(channels, 10)

    def forward(self, x, on):
        cut = self.compress if on else lambda x: x
        x = F.relu(self.bn1(self.conv1(x)))
        x = cut(self.layer1(x))
        x = cut(self.layer2(x))
        x = cut(self.layer3(x))
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


def boundary(activations, gradients):
    class Compress(torch.autograd.Function):
        @staticmethod
        def forward(context, x):
            return activations(x)

        @staticmethod
        def backward(context, gradient):
            return gradients(gradient)

    return Compress.apply


def score(model, inputs, targets, batch, on):
    model.eval()
    loss, correct = 0.0, 0
    with torch.no_grad():
        for begin in range(0, len(targets), batch):
            part = targets[begin:begin + batch]
            output = model(inputs[begin:begin + batch], on)
            loss += F.cross_entropy(output, part).item() * len(part)
            correct += (output.argmax(1) == part).sum().item()
    return {"loss": loss / len(targets), "accuracy": 100.0 * correct / len(targets)}


def main():
    folder = pathlib.Path(sys.argv[1])
    config = json.loads((folder / "config.json").read_text())
    torch.set_num_threads(config["threads"])
    data, _ = safetensors_file.read(folder / "data.safetensors")
    model = ResNet18(config["width"], boundary(operator(config["activations"]), operator(config["gradients"])))
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
            loss = F.cross_entropy(model(inputs[ids], True), targets[ids])
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        scheduler.step()
    print(json.dumps({"losses": losses,
                      "off": score(model, inputs, targets, batch, False),
                      "on": score(model, inputs, targets, batch, True)}))
    safetensors_file.write(folder / "trained.safetensors", model.state_dict(), {"format": "pt"})


if __name__ == "__main__":
    main()
