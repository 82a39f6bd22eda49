"""A convolutional network that is trained as if it were cut in two: what crosses the cut is compressed in both directions.

    python examples/python/boundary.py --activations quant:4 --gradients topk:0.1 --feedback ef21

Prints the loss of every epoch, the accuracy with compression and without, and the bytes that would have crossed.
"""

import argparse

import torch
import torch.nn.functional as F
from torch import nn

import strait


def pictures(count, generator):
    """Stripes, upright or lying, of random width and place, under noise."""
    places = torch.arange(16.0)
    upright = torch.randint(2, (count,), generator=generator)
    width = 1 + 2 * torch.rand(count, 1, generator=generator)
    wave = torch.sin(places / width + 6 * torch.rand(count, 1, generator=generator))
    lying = wave[:, None, :, None].expand(-1, 1, -1, 16)
    stripes = torch.where(upright[:, None, None, None] == 1, lying.transpose(2, 3), lying)
    return stripes + 0.8 * torch.randn(count, 1, 16, 16, generator=generator), upright


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--activations", default="quant:4", help="codec of what crosses forward")
    parser.add_argument("--gradients", default="topk:0.1", help="codec of what crosses backward")
    parser.add_argument("--feedback", default="ef21", help="feedback around both")
    parser.add_argument("--epochs", type=int, default=4)
    options = parser.parse_args()

    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(0)
    inputs, targets = pictures(1024, generator)
    test_inputs, test_targets = pictures(512, generator)

    batch = 32
    cut = strait.Boundary(options.activations, options.gradients, feedback=options.feedback, slots=batch)
    model = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), cut,
                          nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                          nn.Linear(16, 2))
    optimizer = torch.optim.Adam(model.parameters(), 0.01)

    for epoch in range(options.epochs):
        model.train()
        for ids in torch.randperm(len(inputs), generator=generator).split(batch):
            optimizer.zero_grad()
            with strait.batch(model, ids=ids):  # ids are for feedback that keeps something per sample
                loss = F.cross_entropy(model(inputs[ids]), targets[ids])
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: loss {loss.item():.4f}")

    def accuracy():
        with torch.no_grad():
            return (model(test_inputs).argmax(1) == test_targets).float().mean().item()

    model.eval()
    compressed = accuracy()
    with strait.compression(model, enabled=False):
        print(f"accuracy {compressed:.3f} with compression, {accuracy():.3f} without")
    crossed = cut.bytes()
    print(f"bytes: {crossed.forward} forward, {crossed.backward} backward, {crossed.ratio:.1f} times fewer than "
          f"{crossed.raw}")


if __name__ == "__main__":
    main()
