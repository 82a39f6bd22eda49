"""Networks as transformers saves them, in the program: model.init takes their folder, the model's keys come from their
config.json, and the loss is transformers' own."""

import json
import pathlib
import subprocess

import pytest
import torch
import torch.nn.functional as F
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors
from transformers import (AutoConfig, AutoModelForCausalLM, AutoTokenizer, GPT2Config, LlamaConfig, MistralConfig, PreTrainedTokenizerFast, Qwen2Config,
                          Qwen3Config)

from launch import PROGRAM

BLOCK = 32
TOKENIZER = pathlib.Path(__file__).parents[3] / "experiments/speedrun/bytes"
TEXT = pathlib.Path(__file__).parents[3] / "docs/operators.md"
TOKENS = torch.tensor(list(TEXT.read_bytes()[:20 * BLOCK])).view(20, BLOCK)  # the tokenizer's are bytes

SHAPE = dict(vocab_size=257, hidden_size=24, num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=2,
             intermediate_size=40, max_position_embeddings=64, rms_norm_eps=1e-3)
LLAMA3 = dict(rope_type="llama3", rope_theta=1000.0, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
              original_max_position_embeddings=16)


def without(table, *keys):
    return {key: value for key, value in table.items() if key not in keys}


def changed(text, changes):
    """`...`: is left out."""
    return json.dumps(without(json.loads(text) | changes, *(key for key in changes if changes[key] is ...)))


NETWORKS = {
    "gpt2": GPT2Config(vocab_size=257, n_embd=24, n_layer=3, n_head=4, n_positions=64),
    "llama": LlamaConfig(**SHAPE, tie_word_embeddings=True, rope_parameters=dict(rope_type="default", rope_theta=500.0)),
    "llama 3.1": LlamaConfig(**SHAPE, tie_word_embeddings=False, rope_parameters=LLAMA3),
    "llama with wide heads": LlamaConfig(**SHAPE, head_dim=16),
    "mistral": MistralConfig(**SHAPE, sliding_window=48),
    "qwen2": Qwen2Config(**SHAPE, tie_word_embeddings=True),
    "qwen3": Qwen3Config(**SHAPE, head_dim=10),
}


def network_of(config):
    """With larger weights than at the beginning, and biases and norms that are not all alike."""
    torch.manual_seed(3)
    model = AutoModelForCausalLM.from_config(config, attn_implementation="eager").eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(4 if parameter.dim() == 2 else 1).add_(torch.randn_like(parameter) * 0.1)
    return model


def program(command, folder, *settings):
    text = f"""
        [model]
        kind = "{'gpt2' if 'gpt2' in folder.name else 'llama'}"
        init = "{folder}"
        cuts = []
        [data]
        kind = "text"
        train_file = "{TEXT}"
        test_file = "{TEXT}"
        tokenizer = "{TOKENIZER}"
        block = {BLOCK}
        test_limit = 20
        batch_size = 4
    """
    (folder / "run.toml").write_text(text)
    sets = [part for setting in settings for part in ("--set", setting)]
    return subprocess.run([PROGRAM, *command, folder / "run.toml", *sets], capture_output=True,
                          text=True, timeout=300)


def evaluation(folder, weights="model.safetensors"):
    done = program(["eval", "--json", "--weights", folder / weights], folder)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def saved(tmp_path, name, **how):
    folder = tmp_path / name.replace(" ", "-")
    model = network_of(NETWORKS[name])
    model.save_pretrained(folder, **how)
    return model, folder


def loss_of(model):
    with torch.no_grad():
        scores = model(TOKENS).logits
    return F.cross_entropy(scores[:, :-1].flatten(0, 1), TOKENS[:, 1:].flatten()).item()


@pytest.mark.parametrize("name", NETWORKS)
def test_has_the_loss_that_transformers_has(name, tmp_path):
    model, folder = saved(tmp_path, name)
    assert evaluation(folder)["off"]["loss"] == pytest.approx(loss_of(model), rel=2e-5)


SILENT = {  # what a file leaves out is what transformers takes then
    "gpt2": ["layer_norm_epsilon"],
    "llama": ["rope_parameters", "rms_norm_eps", "tie_word_embeddings"],
    "llama with wide heads": ["mlp_bias", "attention_bias", "tie_word_embeddings", "rms_norm_eps", "hidden_act"],
    "qwen2": ["rms_norm_eps", "rope_parameters", "use_sliding_window"],
}


@pytest.mark.parametrize("name", SILENT)
def test_has_the_initial_values_of_transformers(name, tmp_path):
    _, folder = saved(tmp_path, name)
    path = folder / "config.json"
    content = json.loads(path.read_text())
    if "tie_word_embeddings" in SILENT[name]:
        content["tie_word_embeddings"] = False
        path.write_text(json.dumps(content))
        torch.manual_seed(3)
        model = network_of(AutoConfig.from_pretrained(folder))
        model.save_pretrained(folder)
    path.write_text(json.dumps(without(content, *SILENT[name])))
    model = AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager").eval()
    assert evaluation(folder)["off"]["loss"] == pytest.approx(loss_of(model), rel=3e-7)


CHANGED = {  # what is changed in a file, with which transformers computes another loss
    "heads by both names": (NETWORKS["gpt2"], {"num_attention_heads": 2}),
    "heads by their common name": (NETWORKS["gpt2"], {"n_head": ..., "num_attention_heads": 6}),
    "two tables": (NETWORKS["llama 3.1"], {"rope_scaling": {"rope_type": "default"}, "rope_theta": 3000.0}),
    "a table that scales beside one that does not": (NETWORKS["llama"], {"rope_scaling": LLAMA3}),
    "turns counted beside the table": (NETWORKS["llama 3.1"], {"original_max_position_embeddings": 32}),
    "turns counted within all positions": (NETWORKS["llama 3.1"], {"rope_parameters": without(LLAMA3, "original_max_position_embeddings")}),
}


@pytest.mark.parametrize("case", CHANGED)
def test_takes_a_file_as_transformers_takes_it(case, tmp_path):
    config, changes = CHANGED[case]
    folder = tmp_path / f"{config.model_type}-{case.replace(' ', '-')}"
    before = network_of(config)
    before.save_pretrained(folder)
    path = folder / "config.json"
    path.write_text(changed(path.read_text(), changes))
    loss = loss_of(AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager").eval())
    assert abs(loss - loss_of(before)) > 5e-5 * loss
    assert evaluation(folder)["off"]["loss"] == pytest.approx(loss, rel=2e-5)


def test_a_qwen_without_a_number_of_heads_has_keys_for_each(tmp_path):
    model = network_of(Qwen2Config(**(SHAPE | dict(num_key_value_heads=4))))
    folder = tmp_path / "qwen2"
    model.save_pretrained(folder)
    path = folder / "config.json"
    path.write_text(changed(path.read_text(), {"num_key_value_heads": None}))
    assert evaluation(folder)["off"]["loss"] == pytest.approx(loss_of(model), rel=2e-5)


def test_weights_in_several_files_are_the_same(tmp_path):
    model, folder = saved(tmp_path, "qwen3", max_shard_size="20KB")
    files = sorted(folder.glob("model-*.safetensors"))
    assert len(files) > 2 and not (folder / "model.safetensors").exists()
    index = folder / "model.safetensors.index.json"
    assert evaluation(folder, weights=index.name)["off"]["loss"] == pytest.approx(loss_of(model), rel=2e-5)
    started = program(["train", "--dry-run"], folder)
    assert started.returncode == 0, started.stderr
    files[1].unlink()
    ended = program(["train", "--dry-run"], folder)
    assert ended.returncode == 2 and str(files[1]) in ended.stderr
    index.write_text(json.dumps({"weight_map": {"lm_head.weight": "../elsewhere.safetensors"}}))
    ended = program(["train", "--dry-run"], folder)
    assert ended.returncode == 2 and "expected the name of a file beside the index" in ended.stderr


@pytest.mark.parametrize("name", NETWORKS)
def test_goes_on_where_it_began_and_is_read_by_transformers(name, tmp_path):
    """What the program trains of a file is a network of that architecture again, in a folder that transformers takes."""
    model, folder = saved(tmp_path, name)
    done = program(["train", "--out", folder / "run"], folder, "train.epochs=1", "train.optimizer.lr=1e-30",
                   "data.train_limit=4")
    assert done.returncode == 0, done.stderr
    again = AutoModelForCausalLM.from_pretrained(folder / "run", attn_implementation="eager").eval()
    assert type(again) is type(model) and again.dtype == torch.float32
    for (key, before), (other, after) in zip(model.state_dict().items(), again.state_dict().items(), strict=True):
        assert key == other and torch.equal(before, after), key
    assert loss_of(again) == loss_of(model)
    assert again.config.eos_token_id == model.config.eos_token_id
    tokens = AutoTokenizer.from_pretrained(folder / "run")("strait \u00e9")["input_ids"]
    assert tokens == list("strait \u00e9".encode())


KEYS = {  # of networks from scratch, and the architecture that they are
    "gpt2": (["model.width=24", "model.heads=4"], "GPT2LMHeadModel"),
    "llama": (["model.width=24", "model.heads=4", "model.kv_heads=2", "model.hidden=40", "model.theta=500", "model.rope_factor=8",
               "model.rope_context=16"], "LlamaForCausalLM"),
    "llama-biases": (["model.width=24", "model.heads=4", "model.kv_heads=2", "model.hidden=40", "model.head_size=10",
                      "model.qkv_bias=true"], "Qwen2ForCausalLM"),
    "llama-norms": (["model.width=24", "model.heads=4", "model.kv_heads=2", "model.hidden=40", "model.tied=false",
                     "model.qk_norm=true"], "Qwen3ForCausalLM"),
    "llama-both": (["model.width=24", "model.heads=4", "model.kv_heads=2", "model.hidden=40", "model.qkv_bias=true",
                    "model.qk_norm=true"], None),
    "llama-odd": (["model.width=24", "model.heads=5", "model.kv_heads=5", "model.hidden=40", "model.head_size=8"], None),
    "gpt2-subspace": (["model.width=24", "model.heads=4", "model.subspace=8"], None),
    "gpt2-bottleneck": (["model.width=24", "model.heads=4", "model.bottleneck=8"], None),
}


@pytest.mark.parametrize("name", KEYS)
def test_a_network_from_scratch_is_read_by_transformers(name, tmp_path):
    settings, architecture = KEYS[name]
    folder = tmp_path / name
    folder.mkdir()
    run = folder / "run"
    done = program(["train", "--out", run], folder, "model.init=", "model.layers=3", "model.context=64", "model.vocab=257",
                   'model.cuts=["layers.0"]' if name.startswith("llama") else 'model.cuts=["h.0"]', "train.epochs=1",
                   "data.train_limit=40", "train.optimizer.lr=0.3", *settings)
    assert done.returncode == 0, done.stderr
    if architecture is None:
        assert not (run / "config.json").exists() and not (run / "tokenizer.json").exists()
        return
    model = AutoModelForCausalLM.from_pretrained(run, attn_implementation="eager").eval()
    loss = json.loads((run / "metrics.jsonl").read_text())["test"]["off"]["loss"]
    assert type(model).__name__ == architecture and loss_of(model) == pytest.approx(loss, rel=2e-5)
    assert model.config.eos_token_id == model.config.bos_token_id == 256  # <|endoftext|> of that tokenizer
    again = program(["eval", "--json", "--weights", run], folder, f"model.init={run}", "model.cuts=[]")
    assert json.loads(again.stdout)["off"]["loss"] == pytest.approx(loss, rel=2e-5), again.stderr


def test_two_files_of_a_tokenizer_become_one_that_transformers_reads(tmp_path):
    folder = tmp_path / "llama-pairs"
    folder.mkdir()
    characters = sorted(pre_tokenizers.ByteLevel.alphabet())
    merges = [("t", "h"), ("th", "e"), ("\u0120", "the"), ("1", "2"), ("\u00c3", "\u00a9")]
    tokens = [*characters, *map("".join, merges), "\u0120foo", "<|\u00c3\u00a9|>", "\u00c3\u00c3", "<|endoftext|>"]  # made by none
    (folder / "vocab.json").write_text(json.dumps({token: id for id, token in enumerate(tokens)}))
    (folder / "merges.txt").write_text("#version: 0.2\n" + "".join(f"{left} {right}\n" for left, right in merges))
    done = program(["train", "--out", folder / "run"], folder, "model.init=", "model.width=8", "model.heads=2", "model.kv_heads=1",
                   "model.hidden=8", "model.layers=2", "model.context=64", f"model.vocab={len(tokens)}", "train.epochs=1", "data.train_limit=4",
                   f'data.tokenizer="{folder}"')
    assert done.returncode == 0, done.stderr
    text = "the the 12 1 \u00e9 e\u0301 foo<|\u00e9|>\u00c3\u00c3 it's\n\n  the"
    (folder / "text").write_text(text, encoding="utf-8")
    ours = subprocess.run([PROGRAM, "tokenize", "--json", "--tokenizer", folder, folder / "text"], capture_output=True, text=True)
    assert AutoTokenizer.from_pretrained(folder / "run")(text)["input_ids"] == json.loads(ours.stdout)["ids"]
    assert AutoTokenizer.from_pretrained(folder / "run").eos_token_id == len(tokens) - 1


def test_generates_what_transformers_generates(tmp_path):
    """The prompt stands behind the token that the tokenizer puts before texts, and the likeliest tokens behind it."""
    tokens = ["<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), "\u2581", *"abcdefgh"]
    tokenizer = Tokenizer(models.BPE({token: id for id, token in enumerate(tokens)}, [], byte_fallback=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
    tokenizer.decoder = decoders.Sequence([decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse()])
    tokenizer.add_special_tokens(["<s>", "</s>"])
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 0)])
    _, folder = saved(tmp_path, "llama")
    model = network_of(LlamaConfig(**(SHAPE | dict(vocab_size=len(tokens))), bos_token_id=0, eos_token_id=1, pad_token_id=None))
    with torch.no_grad():
        model.lm_head.weight[2:258] = 0  # single bytes are no likely tokens
    model.save_pretrained(folder)
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>").save_pretrained(folder)
    ours = AutoTokenizer.from_pretrained(folder)
    for prompt, *settings in [("a cab",), ("",), (" had bed",), ("a</s> cab<s>", "data.special_tokens=true")]:
        begin = ours(prompt, return_tensors="pt")["input_ids"]
        assert begin[0, 0] == 0
        ids = model.generate(begin, attention_mask=torch.ones_like(begin), do_sample=False, max_new_tokens=24, pad_token_id=1)[0, begin.shape[1]:].tolist()
        done = program(["generate", "--json", "--temperature", "0", "--tokens", "24", "--compression", "off", "--prompt", prompt], folder,
                       f'data.tokenizer="{folder}"', *settings)
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["off"] == tokenizer.decode([id for id in ids if id != 1], skip_special_tokens=False), prompt


def test_takes_nothing_from_a_folder_that_is_no_run(tmp_path):
    _, folder = saved(tmp_path, "llama")
    before = sorted(path.name for path in folder.iterdir()) + ["run.toml"]
    done = program(["train", "--out", folder], folder)
    assert done.returncode == 2 and f"{folder}: holds model.safetensors, which a run may replace; choose another --out" in done.stderr
    done = program(["train", "--overwrite", "--out", folder], folder)
    assert done.returncode == 2 and f"{folder}: holds the weights of model.init, which a run that begins there replaces" in done.stderr
    done = program(["train", "--resume", "--out", folder], folder)
    assert done.returncode == 2 and f"{folder}: holds model.safetensors, which a run may replace" in done.stderr
    own = program(["train", "--overwrite", "--dry-run", "--out", TOKENIZER], folder)
    assert own.returncode == 2 and f"{TOKENIZER}: holds the tokenizer of data.tokenizer, which a run that begins there replaces" in own.stderr
    assert set(path.name for path in folder.iterdir()) - {".lock"} == set(before)


def test_brings_its_tokenizer(tmp_path):
    _, folder = saved(tmp_path, "llama")
    for name in ("vocab.json", "merges.txt"):
        (folder / name).write_bytes((TOKENIZER / name).read_bytes())
    shown = program(["config"], folder, f'data.tokenizer="{TOKENIZER}"')
    assert f'tokenizer = "{TOKENIZER}"' in shown.stdout
    (folder / "run.toml").write_text((folder / "run.toml").read_text().replace(f'tokenizer = "{TOKENIZER}"', ""))
    shown = subprocess.run([PROGRAM, "config", folder / "run.toml"], capture_output=True, text=True, check=True)
    assert f'tokenizer = "{folder}"' in shown.stdout and "vocab = 257" in shown.stdout


def test_a_run_is_scored_whatever_became_of_what_it_began_with(tmp_path):
    _, folder = saved(tmp_path, "qwen3")
    done = program(["train", "--out", folder / "run"], folder, "train.epochs=1", "data.train_limit=4")
    assert done.returncode == 0, done.stderr
    (folder / "config.json").write_text('{"model_type": "gemma"}')
    done = subprocess.run([PROGRAM, "eval", folder / "run/config.toml", "--weights", folder / "run"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (folder / "model.safetensors").unlink()
    ended = program(["train", "--dry-run"], folder)
    assert ended.returncode == 2 and f"{folder}: has no weights, expected model.safetensors or" in ended.stderr


REFUSED = {
    "another base": ("llama", {}, "model.theta=10000.0", "rope_theta: expected model.theta = 500.0, found 10000.0"),
    "scaled otherwise": ("llama 3.1", {}, "model.rope_factor=1.0", "factor: expected model.rope_factor = 8.0, found 1.0"),
    "a rule of scaling": ("llama", {"rope_parameters": {"rope_type": "yarn", "factor": 4.0}}, None,
                          'rope_parameters/rope_type is "yarn", expected "default" or "llama3"'),
    "a window": ("mistral", {"sliding_window": 16}, "model.context=32",
                 "sliding_window: expected model.context at most 16, found 32"),
    "a window whatever else it says": ("mistral", {"sliding_window": 16, "use_sliding_window": False}, "model.context=32",
                                       "sliding_window: expected model.context at most 16, found 32"),
    "a window of which it says nothing": ("mistral", {"sliding_window": ...}, "model.context=8000",
                                          "model_type: expected model.context at most 4096, found 8000"),
    "too short a window": ("mistral", {"sliding_window": 16}, None,
                           "model.context: expected at least 32, the tokens of a sample, found 16"),
    "biases": ("llama", {"attention_bias": True}, None, "attention_bias is true, expected false"),
    "sight of what follows": ("llama", {"is_causal": False}, None, "is_causal is false, expected true"),
    "sight of what follows in GPT-2": ("gpt2", {"is_causal": False}, None, "is_causal is false, expected true"),
    "another architecture": ("llama", {"model_type": "gemma"}, None,
                             'model_type is "gemma", expected "llama", "mistral", "qwen2" or "qwen3"'),
    "half a rule of scaling": ("llama 3.1", {"rope_parameters": without(LLAMA3, "factor")}, None,
                               "rope_parameters/factor is null, expected a number > 0"),
    "no table": ("llama", {"rope_scaling": "linear"}, None, 'rope_scaling is "linear", expected an object'),
    "scaled where nothing is": ("llama", {"rope_parameters": None}, "model.rope_factor=8.0",
                                "model_type: expected model.rope_factor = 1.0, found 8.0"),
    "a huge number": ("llama", {"hidden_size": 2**64 - 1}, None, "hidden_size is 18446744073709551615, expected an integer"),
    "no number": ("llama", {"num_attention_heads": "six"}, None, 'num_attention_heads is "six", expected an integer >= 1'),
    "no size": ("llama", {"hidden_size": 0}, None, "hidden_size: expected an integer >= 1, found 0"),
    "no text": ("llama", {"model_type": 5}, None, "model_type is 5, expected"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_another_network_is_refused_in_one_line(case, tmp_path):
    name, changes, setting, complaint = REFUSED[case]
    _, folder = saved(tmp_path, name)
    path = folder / "config.json"
    path.write_text(changed(path.read_text(), changes))
    done = program(["train", "--dry-run"], folder, *([setting] if setting else []))
    assert done.returncode == 2 and complaint in done.stderr and done.stderr.count("\n") == 1, done.stderr
