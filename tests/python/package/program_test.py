"""strait.Boundary against the program: `strait train` in one process, and the same network in PyTorch with boundaries where
it is cut, from the same weights and batches, end with the same weights, byte for byte. The optimizer is SGD: PyTorch's Adam
rounds otherwise in Python than in LibTorch."""

import json
import pathlib

import pytest
import torch
import torch.nn.functional as F

import networks
import strait
from launch import expect_equal, train_by_program
from train_reference import ResNet18

pytestmark = pytest.mark.usefixtures("one_thread")


def samples(count, shape, classes):
    return torch.randn(count, *shape), torch.randint(classes, (count,))


def train_here(model, forward, data, seed, epochs, batch_size, optimizer):
    """The same in PyTorch."""
    inputs, targets = data
    for epoch in epochs:
        for ids in torch.tensor(networks.epoch_order(seed, epoch, len(targets))).split(batch_size):
            optimizer.zero_grad()
            with strait.batch(model, ids=ids):
                loss = F.cross_entropy(forward(inputs[ids]), targets[ids])
            loss.backward()
            optimizer.step()


SCHEMES = {
    "none": ({}, {}, {}),
    "quant": ({"codec": "quant:4"}, {"codec": "quant:8"}, {}),
    "draws": ({"codec": "quant:3,rounding=stochastic"}, {"codec": "quant:4,rounding=stochastic"}, {}),
    "ef21": ({"codec": "topk:0.1", "feedback": "ef21"}, {"codec": "topk:0.1", "feedback": "ef21"}, {}),
    "ef": ({"codec": "quant:2,scope=sample", "feedback": "ef"}, {"codec": "topk:0.2", "feedback": "ef-mixed"}, {}),
    "aq-sgd": ({"codec": "topk:0.3", "feedback": "aq-sgd,format=bf16"}, {"codec": "topk:0.3"}, {}),
    "reuse": ({"codec": "topk:0.25"}, {"codec": "topk:0.25"}, {"reuse_indices": True}),
}


def boundaries(names, scheme, seed):
    forward, backward, options = SCHEMES[scheme]
    return {name: strait.Boundary(forward.get("codec", "none"), backward.get("codec", "none"), seed=seed, index=index,
                                  feedback=(forward.get("feedback", "none"), backward.get("feedback", "none")), **options)
            for index, name in enumerate(names)}


def compression(scheme):
    forward, backward, options = SCHEMES[scheme]
    keys = {"compression.activations": forward, "compression.gradients": backward}
    return {key: value for key, value in keys.items() if value} | {f"compression.{k}": v for k, v in options.items()}


@pytest.mark.parametrize("scheme", SCHEMES)
def test_boundaries_train_the_weights_of_the_program(tmp_path, scheme):
    seed, data = 6, samples(22, (2, 5), 3)  # batches of 5, the last of 2
    model = networks.Mlp(32, 2, (2, 5), 3, boundaries(["hidden.0", "hidden.1"], scheme, seed))
    keys = {"model.kind": "mlp", "model.width": 32, "model.layers": 2, "model.cuts": ["hidden.0", "hidden.1"], "seed": seed,
            "data.batch_size": 5, "train.epochs": 4,
            "train.optimizer": {"kind": "sgd", "lr": 0.05, "momentum": 0.9, "weight_decay": 1e-3}}
    run = train_by_program(tmp_path, keys | compression(scheme), data, model.weights())
    optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9, weight_decay=1e-3)
    train_here(model, model, data, seed, range(4), 5, optimizer)
    expect_equal(run, model.weights())
    # What crossed is the same too.
    counted = [json.loads(line)["boundaries"] for line in (run / "metrics.jsonl").read_text().splitlines()]
    for index, boundary in enumerate(strait.boundaries(model)):
        forward = sum(epoch[index]["activations"]["wire_bytes"] for epoch in counted)
        backward = sum(epoch[index]["gradients"]["wire_bytes"] for epoch in counted)
        assert (boundary.bytes().forward, boundary.bytes().backward) == (forward, backward)


@pytest.mark.parametrize("scheme", ["draws", "ef21"])
def test_a_convolutional_network_too(tmp_path, scheme):
    seed, data, cuts = 2, samples(8, (3, 32, 32), 10), ["layer1", "layer2", "layer3"]
    keys = {"model.kind": "resnet18", "model.width": 2, "seed": seed, "model.cuts": cuts, "data.batch_size": 4,
            "data.classes": 10, "train.optimizer": {"kind": "sgd", "lr": 0.05, "momentum": 0.9, "weight_decay": 0.0}}
    # An epoch without compression, whose weights both go on from.
    begun = train_by_program(tmp_path, keys | {"train.epochs": 1, "checkpoint.every_epochs": 1}, data, out="begun")
    run = train_by_program(tmp_path, keys | compression(scheme) | {
        "train.epochs": 6, "compression.start_epoch": 1, "compression.start_from": str(begun),
        "compression.start_from_optimizer": False}, data)
    model = ResNet18(2, cuts)
    model.load_state_dict(strait.load_run(begun).weights)
    model.cuts = torch.nn.ModuleDict(boundaries(cuts, scheme, seed))
    for boundary in strait.boundaries(model):
        boundary.step = 2
    optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9)
    train_here(model, lambda x: model(x, lambda name, x: model.cuts[name](x)), data, seed, range(1, 6), 4, optimizer)
    expect_equal(run, {name: tensor for name, tensor in model.state_dict().items() if not name.startswith("cuts.")})


def test_runs_are_loaded(tmp_path):
    data = samples(20, (6,), 4)
    folder = train_by_program(tmp_path, {
        "model.kind": "mlp", "model.width": 8, "model.cuts": ["hidden.0"], "data.batch_size": 10, "train.epochs": 3,
        "name": "a-name", "compression.activations": {"codec": "quant:4"}}, data)
    run = strait.load_run(folder)
    assert run.config["name"] == "a-name" and run.config["compression"]["activations"]["codec"] == "quant:4"
    assert run.config["model"]["cuts"] == ["hidden.0"] and run.config["train"]["threads"] == 1
    assert isinstance(run.config["train"]["optimizer"]["lr"], float) and run.config["compression"]["reuse_indices"] is False
    assert run.status["status"] == "done" and repr(run).endswith("done, 3 epochs>")
    assert run.metrics == [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    table = run.metrics.to_pandas()
    assert list(table["epoch"]) == [0, 1, 2]
    assert list(table["test.off.loss"]) == [epoch["test"]["off"]["loss"] for epoch in run.metrics]
    model = networks.Mlp(8, 2, (6,), 4)
    model.load_state_dict(run.weights)
    accuracy = (model(data[0]).argmax(1) == data[1]).float().mean().item() * 100
    assert accuracy == pytest.approx(run.metrics[-1]["test"]["off"]["accuracy"])


@pytest.mark.parametrize("name, content, kind, text", [
    ("config.toml", None, FileNotFoundError, "config.toml: expected a file of a run"),
    ("config.toml", "a = ", ValueError, "config.toml:1: not valid TOML"),
    ("status.json", "{}", ValueError, "status"),
    ("status.json", '{"status": ', ValueError, "status.json"),
    ("metrics.jsonl", '{"epoch": "no"}\n', ValueError, "metrics.jsonl:1"),
    ("model.safetensors", "short", ValueError, "model.safetensors"),
    ("model.safetensors", None, FileNotFoundError, "model.safetensors"),
])
def test_what_is_no_run_is_named(tmp_path, name, content, kind, text):
    (tmp_path / "config.toml").write_text("name = \"x\"\n")
    (tmp_path / "model.safetensors").write_bytes(b"\x02\0\0\0\0\0\0\0{}")
    run = strait.load_run(tmp_path)  # one that has only begun
    assert (run.config, run.status, run.metrics, run.weights) == ({"name": "x"}, {"status": "running"}, [], {})
    (tmp_path / name).unlink(missing_ok=True)
    if content is not None:
        (tmp_path / name).write_text(content)
    with pytest.raises(kind) as error:
        strait.load_run(tmp_path).weights
    assert text in str(error.value) and "\n" not in str(error.value)


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="missing: expected the folder of a run"):
        strait.load_run(pathlib.Path(tmp_path, "missing"))
