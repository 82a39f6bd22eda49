"""The program against plain PyTorch, which knows nothing of strait: what [train] and [pipeline] say is what is trained, with a
last batch that is short and a last step of fewer batches."""

import json

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import networks
import strait
from launch import train_by_program

pytestmark = pytest.mark.usefixtures("one_thread")

SAMPLES, BATCH, EPOCHS, SEED = 23, 4, 4, 7  # six batches, the last of three samples
OPTIMIZERS = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam, "adamw": torch.optim.AdamW}
SGD = {"kind": "sgd", "lr": 0.1, "momentum": 0.9, "weight_decay": 0.01}
ADAM = {"lr": 0.01, "betas": [0.8, 0.95], "eps": 1e-3, "weight_decay": 0.1}

CASES = {
    "sgd": {"train.optimizer": SGD},
    "adam": {"train.optimizer": {"kind": "adam", **ADAM}, "train.schedule": {"kind": "cosine", "t_max": 2}},
    "adamw": {"train.optimizer": {"kind": "adamw", **ADAM}, "train.schedule": {"kind": "linear", "warmup_steps": 5}},
    "steps of four batches": {"train.optimizer": SGD, "train.accumulate": 4, "train.schedule": {"kind": "linear", "warmup_steps": 3}},
    "clipped": {"train.optimizer": SGD, "train.accumulate": 2, "train.clip_norm": 0.3, "pipeline.micro_batches": 3},
    "a rate that rises again": {"train.optimizer": SGD, "train.schedule": {"kind": "cosine", "t_max": 2}, "pipeline.micro_batches": 4},
    "bf16": {"train.optimizer": SGD, "train.precision": "bf16"},
}


def linear(warmup, steps):
    """Hugging Face's get_linear_schedule_with_warmup."""
    return lambda step: step / max(1, warmup) if step < warmup else max(0.0, (steps - step) / max(1, steps - warmup))


def schedule_of(keys, optimizer, steps_per_epoch):
    """A scheduler, and whether it steps with the optimizer or once an epoch."""
    schedule = keys.get("train.schedule", {"kind": "constant"})
    if schedule["kind"] == "cosine":
        return torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, schedule["t_max"]), False
    share = linear(schedule["warmup_steps"], EPOCHS * steps_per_epoch) if schedule["kind"] == "linear" else lambda step: 1.0
    return torch.optim.lr_scheduler.LambdaLR(optimizer, share), True


def train_here(model, data, loss, keys):
    """Per epoch the mean loss, the rate of its first step and the loss of the whole set behind it."""
    inputs, targets = data
    options = dict(keys["train.optimizer"])
    optimizer = OPTIMIZERS[options.pop("kind")](model.parameters(), **options)
    step_samples = BATCH * keys.get("train.accumulate", 1)
    scheduler, by_step = schedule_of(keys, optimizer, -(-SAMPLES // step_samples))
    autocast = torch.autocast("cpu", torch.bfloat16, enabled=keys.get("train.precision") == "bf16")
    epochs = []
    for epoch in range(EPOCHS):
        rate, total = optimizer.param_groups[0]["lr"], 0.0
        for ids in torch.tensor(networks.epoch_order(SEED, epoch, SAMPLES)).split(step_samples):
            optimizer.zero_grad()
            with autocast:
                output = model(inputs[ids])
            mean = loss(output.float(), targets[ids])
            mean.backward()
            if "train.clip_norm" in keys:
                nn.utils.clip_grad_norm_(model.parameters(), keys["train.clip_norm"])
            optimizer.step()
            total += mean.item() * len(ids)
            if by_step:
                scheduler.step()
        if not by_step:
            scheduler.step()
        with torch.no_grad(), autocast:
            epochs.append((total / SAMPLES, rate, loss(model(inputs).float(), targets).item()))
    return epochs


def check(folder, data, outputs, loss, keys):
    model = networks.Mlp(16, 2, data[0].shape[1:], outputs)
    run = train_by_program(folder, {
        "model.kind": "mlp", "model.width": 16, "model.cuts": ["hidden.0", "hidden.1"], "seed": SEED, "data.batch_size": BATCH,
        "train.epochs": EPOCHS, **keys}, data, model.weights())
    epochs = train_here(model, data, loss, keys)
    found = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    for metrics, expected in zip(found, epochs, strict=True):
        assert (metrics["train_loss"], metrics["lr"], metrics["test"]["off"]["loss"]) == pytest.approx(expected, rel=1e-5, abs=1e-9)
    weights = strait.load_run(run).weights
    for name, tensor in model.weights().items():
        torch.testing.assert_close(weights[name], tensor, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("case", CASES)
def test_a_configuration_trains_what_it_says(tmp_path, case):
    data = torch.randn(SAMPLES, 5), torch.randint(3, (SAMPLES,))
    check(tmp_path, data, 3, F.cross_entropy, CASES[case])


def test_numbers_are_learnt_by_their_squared_error(tmp_path):
    data = torch.randn(SAMPLES, 5), torch.randn(SAMPLES, 2, 2)
    check(tmp_path, data, 4, lambda output, targets: F.mse_loss(output, targets.flatten(1)),
          CASES["clipped"] | {"train.optimizer": {"kind": "adamw", **ADAM}})
