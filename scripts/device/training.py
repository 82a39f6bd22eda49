#!/usr/bin/env python3
"""Trains a small network (training.toml) on a GPU, as only a machine with one can show: the same bits when it is trained
again, and in a process a stage; a run that resumes on the CPU, and the other way; what compression costs a step.

    scripts/device/training.py STRAIT FOLDER [DEVICE]   runs go to FOLDER, DEVICE is cuda

Prints a line for each and exits with status 1 where one does not hold. Rates are those of the last of three epochs of 40
steps of the paper's ResNet-18, 100 pictures each, in one process.
"""

import json
import pathlib
import subprocess
import sys

if len(sys.argv) not in (3, 4):
    sys.exit(__doc__)
STRAIT = pathlib.Path(sys.argv[1]).resolve()
FOLDER = pathlib.Path(sys.argv[2]).resolve()
DEVICE = sys.argv[3] if len(sys.argv) > 3 else "cuda"
CONFIG = pathlib.Path(__file__).resolve().with_suffix(".toml")
RATES = {
    "none": ("none", "none"),
    "quant:4,scope=block:64": ("quant:4,scope=block:64", "none"),
    "topk:0.1,index=bitmap": ("topk:0.1,index=bitmap", "none"),
    "topk:0.1": ("topk:0.1", "none"),
    "topk:0.1,index=bitmap with ef21": ("topk:0.1,index=bitmap", "ef21"),
}
# Another process that leaves 900 MB of the card, until its input ends.
HOLDER = """
import sys, torch
held = torch.empty(torch.cuda.mem_get_info()[0] - 900_000_000, dtype=torch.uint8, device="cuda")
print(flush=True)
sys.stdin.read()
"""
wrong = []


def strait(*words):
    done = subprocess.run([STRAIT, *words], capture_output=True, text=True, check=False)
    if done.returncode:
        say(False, f"{' '.join(map(str, words))}: exit status {done.returncode}: {done.stderr.strip()}")
    return done


def say(holds, sentence):
    print("holds:" if holds else "WRONG:", sentence, flush=True)
    if not holds:
        wrong.append(sentence)


def settings(**keys):
    return [word for key, value in keys.items() for word in ("--set", f"{key.replace('__', '.')}={value}")]


def train(name, device, *words, processes=1):
    launch = ["launch", "-n", str(processes), "-q", "--"] if processes > 1 else []
    again = [] if "--resume" in words else ["--overwrite"]
    strait(*launch, "train", CONFIG, "--out", FOLDER / name, *settings(train__device=device), *again, *words, "-q")
    return FOLDER / name


def epochs(run):
    try:
        return [json.loads(line) for line in (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    except OSError:
        return []


def weights(run):
    path = run / "model.safetensors"
    return path.read_bytes() if path.exists() else None


def losses(run):
    return [epoch["train_loss"] for epoch in epochs(run)]


def check_bits():
    once = train("once", DEVICE)
    print(f"losses on {DEVICE}: {losses(once)}", flush=True)
    found = weights(once)
    say(found is not None and found == weights(train("again", DEVICE)), "trained again, it has the same weights")
    say(found is not None and found == weights(train("ranks", DEVICE, processes=4)),
        "a process a stage gives the weights of one process")
    on_cpu = losses(train("cpu", "cpu"))
    print(f"losses on the CPU: {on_cpu}", flush=True)
    say(len(on_cpu) == 2 and abs(losses(once)[0] - on_cpu[0]) < 0.05, "its first loss is near that of the CPU")


def check_resume():
    for first, second in ((DEVICE, "cpu"), ("cpu", DEVICE)):
        run = train(f"{first}-then-{second}", first, *settings(train__epochs=1))
        before = losses(run)
        train(run.name, second, "--resume")
        after = losses(run)
        print(f"losses on {first}, then {second}: {after}", flush=True)
        say(len(after) == 2 and after[:1] == before, f"a run on {first} resumes on {second}")


def check_errors():
    done = subprocess.run([STRAIT, "train", CONFIG, "--out", FOLDER / "absent", "--set", "train.device=cuda:9"],
                          capture_output=True, text=True, check=False)
    say(done.returncode == 2 and done.stderr.count("\n") == 1 and "cuda:9" in done.stderr,
        f"a device that is not there: {done.stderr.strip()}")
    with subprocess.Popen([sys.executable, "-c", HOLDER], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        holder.stdout.readline()
        done = subprocess.run([STRAIT, "train", CONFIG, "--out", FOLDER / "large", "-q", "--overwrite",
                               *settings(train__device=DEVICE, model__width=64, data__batch_size=1000)],
                              capture_output=True, text=True, check=False)
    say(done.returncode == 1 and done.stderr.count("\n") == 1, f"a card whose memory is full: {done.stderr.strip()}")


def measure_rates():
    """Rates of two trainings of each, of which the faster one counts."""
    rates = {}
    for attempt in range(2):
        for number, (name, (codec, feedback)) in enumerate(RATES.items()):
            words = [word for direction in ("activations", "gradients") for word in
                     ("--set", f"compression.{direction}.codec={codec}", "--set", f"compression.{direction}.feedback={feedback}")]
            run = train(f"rate-{number}-{attempt}", DEVICE, *words,
                        *settings(model__width=64, train__epochs=3, data__train_limit=4000, data__test_limit=100,
                                  train__evaluate_epochs=3))
            for epoch in epochs(run)[-1:]:
                rates[name] = max(rates.get(name, 0), epoch["samples_per_second"])
    for name, rate in rates.items():
        of_none = f", a step {rates['none'] / rate - 1:+.1%}" if "none" in rates else ""
        print(f"{name:<34} {rate:8.0f} samples/s{of_none}", flush=True)


FOLDER.mkdir(parents=True, exist_ok=True)
check_bits()
check_resume()
check_errors()
measure_rates()
sys.exit(1 if wrong else 0)
