"""Trains ResNet-18 in python3-torch the way strait says it does, as an independent reference, with feedback and
index reuse at the boundaries.

Usage: train_reference.py FOLDER. Reads config.json, init.safetensors and data.safetensors there, prints
{"losses": [...], "off": {...}, "on": {...}} with one loss per step, and writes trained.safetensors.
"""

import json
import math
import pathlib
import sys

import torch
import torch.nn.functional as F
from torch import nn

import safetensors_file


def channels_last(x):
    """As strait's ResNet has tensors: the order of a sum depends on it."""
    return x.contiguous(memory_format=torch.channels_last)


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
    def __init__(self, width, boundaries):
        super().__init__()
        self.boundaries = boundaries
        self.conv1 = nn.Conv2d(3, width, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        channels = width
        for group in range(4):
            outputs = width * 2**group
            blocks = [Block(channels, outputs, 1 if group == 0 else 2), Block(outputs, outputs, 1)]
            setattr(self, f"layer{group + 1}", nn.Sequential(*blocks))
            channels = outputs
        self.linear = nn.Linear(channels, 10)

    def forward(self, x, cross):
        """`cross(boundary, x)` is what comes of x behind a boundary."""
        x = F.relu(self.bn1(self.conv1(channels_last(x))))
        for boundary, layer in zip(self.boundaries, (self.layer1, self.layer2, self.layer3)):
            x = channels_last(cross(boundary, layer(x)))
        return self.linear(F.avg_pool2d(self.layer4(x), 4).flatten(1))


def quantise(x, bits):
    levels = 2**bits - 1
    low, high = x.min(), x.max()
    if low == high:
        return x.clone()
    codes = torch.round((x - low) / (high - low) * levels)
    return codes / levels * (high - low) + low


class KeepLargest:
    def __init__(self, share):
        self.share = share
        self.mask = None  # of the last tensor the positions that were kept

    def __call__(self, x):
        rows = x.flatten(1)
        kept = math.ceil(round(self.share * rows.shape[1], 6))
        order = torch.sort(rows.abs(), dim=1, descending=True, stable=True).indices[:, :kept]
        self.mask = torch.zeros_like(rows, dtype=torch.bool).scatter(1, order, True).reshape(x.shape)
        return torch.where(self.mask, x, torch.zeros_like(x))


def operator(spec):
    name, _, argument = spec.partition(":")
    if name == "none":
        return lambda x: x.clone()
    return (lambda x: quantise(x, int(argument))) if name == "quant" else KeepLargest(float(argument))


class Channel:
    """One direction of a boundary: what the receiver sees, message by message."""

    def __init__(self, operator, feedback):
        self.operator, self.feedback = operator, feedback
        self.rows = None    # state of a row of the batch
        self.buffers = {}   # state of a sample

    def send(self, x, ids):
        if self.feedback == "none":
            return self.operator(x)
        if self.feedback == "aq-sgd":
            return self.send_by_sample(x, ids)
        if self.rows is None:
            self.rows = torch.zeros_like(x)
        state = self.rows[:len(x)].clone()  # a short batch has the first rows
        if self.feedback == "ef":
            seen = self.operator(x + state)
            self.rows[:len(x)] = x + state - seen
        else:
            assert self.feedback == "ef21"
            seen = state + self.operator(x - state)
            self.rows[:len(x)] = seen
        return seen

    def send_by_sample(self, x, ids):
        known = [i for i, sample in enumerate(ids) if sample in self.buffers]
        seen = x.clone()
        if known:
            buffers = torch.stack([self.buffers[ids[i]] for i in known])
            seen[known] = buffers + self.operator(x[known] - buffers)
        self.fill(seen, ids)
        return seen

    def fill(self, x, ids):
        for row, sample in zip(x, ids):
            self.buffers[sample] = row.clone()


class Boundary:
    def __init__(self, config):
        self.plain = operator(config["activations"])
        self.activations = Channel(self.plain, config["activation_feedback"])
        self.gradients = Channel(operator(config["gradients"]), config["gradient_feedback"])
        self.reuse = config["reuse_indices"]
        self.fills = config["fill"] == "warmup"
        self.ids = None  # of the batch in training

    def warm_up(self, x):
        if self.fills:
            self.activations.fill(x.detach(), self.ids)
        return x

    def train(self, x):
        boundary = self

        class Cross(torch.autograd.Function):
            @staticmethod
            def forward(context, x):
                seen = boundary.activations.send(x, boundary.ids)
                context.kept = boundary.plain.mask if boundary.reuse else None
                return seen

            @staticmethod
            def backward(context, gradient):
                if boundary.reuse:
                    return channels_last(torch.where(context.kept, gradient, torch.zeros_like(gradient)))
                return channels_last(boundary.gradients.send(gradient, boundary.ids))

        return Cross.apply(x)


def score(model, inputs, targets, batch, cross):
    model.eval()
    loss, correct = 0.0, 0
    with torch.no_grad():
        for begin in range(0, len(targets), batch):
            part = targets[begin:begin + batch]
            output = model(inputs[begin:begin + batch], cross)
            loss += F.cross_entropy(output, part).item() * len(part)
            correct += (output.argmax(1) == part).sum().item()
    return {"loss": loss / len(targets), "accuracy": 100.0 * correct / len(targets)}


def main():
    folder = pathlib.Path(sys.argv[1])
    config = json.loads((folder / "config.json").read_text())
    torch.set_num_threads(config["threads"])
    data, _ = safetensors_file.read(folder / "data.safetensors")
    model = ResNet18(config["width"], [Boundary(config) for _ in range(3)])
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
            for boundary in model.boundaries:
                boundary.ids = ids.tolist()
            optimizer.zero_grad()
            cross = Boundary.train if epoch >= config["start_epoch"] else Boundary.warm_up
            loss = F.cross_entropy(model(inputs[ids], cross), targets[ids])
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        scheduler.step()
    print(json.dumps({"losses": losses,
                      "off": score(model, inputs, targets, batch, lambda boundary, x: x),
                      "on": score(model, inputs, targets, batch, lambda boundary, x: boundary.plain(x))}))
    safetensors_file.write(folder / "trained.safetensors", model.state_dict(), {"format": "pt"})


if __name__ == "__main__":
    main()
