"""A GPT-2 or a Llama of Hugging Face's transformers, cut by layer and trained over processes with compressed messages.

    torchrun --nproc-per-node 4 examples/python/gpt2_transformers.py --text FILE --out FOLDER [--model llama] [--activations quant:8]

Tokens are the text's bytes, so that nothing is downloaded. FOLDER is then a model for from_pretrained. For a model of
your own, from_pretrained takes the place of from_config; its embedding and head must not share their weights
(tie_word_embeddings=False), since they are in different processes.
"""

import argparse
import pathlib

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from transformers import AutoModelForCausalLM, GPT2Config, LlamaConfig

import strait

CONTEXT = 64


def make_model(kind: str) -> nn.Module:
    """A small one. Dropout would draw other numbers in other processes; it works, but runs cannot be compared."""
    if kind == "gpt2":
        config = GPT2Config(vocab_size=256, n_positions=CONTEXT, n_embd=64, n_layer=4, n_head=4, resid_pdrop=0.0,
                            embd_pdrop=0.0, attn_pdrop=0.0, tie_word_embeddings=False)
    else:
        config = LlamaConfig(vocab_size=256, max_position_embeddings=CONTEXT, hidden_size=64, intermediate_size=176,
                             num_hidden_layers=4, num_attention_heads=4, num_key_value_heads=2, tie_word_embeddings=False)
    torch.manual_seed(0)  # the same weights in every process
    return AutoModelForCausalLM.from_config(config)


class Gpt2Stage(nn.Module):
    """Some blocks of a GPT-2; the first stage has its embeddings, the last one its head."""

    def __init__(self, model: nn.Module, begin: int, end: int) -> None:
        super().__init__()
        body, first, last = model.transformer, begin == 0, end == len(model.transformer.h)
        self.wte, self.wpe, self.drop = (body.wte, body.wpe, body.drop) if first else (None, None, None)
        self.blocks = nn.ModuleList(body.h[begin:end])
        self.ln_f, self.head = (body.ln_f, model.lm_head) if last else (None, None)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.wte is not None:
            x = self.drop(self.wte(x) + self.wpe(torch.arange(x.shape[1], device=x.device)))
        for block in self.blocks:
            x = block(x)
        return x if self.head is None else self.head(self.ln_f(x))


class LlamaStage(nn.Module):
    """Some layers of a Llama, likewise. Each stage makes the rotary embedding by itself: it has no weights."""

    def __init__(self, model: nn.Module, begin: int, end: int) -> None:
        super().__init__()
        body, first, last = model.model, begin == 0, end == len(model.model.layers)
        self.embedding = body.embed_tokens if first else None
        self.rotary = body.rotary_emb
        self.layers = nn.ModuleList(body.layers[begin:end])
        self.norm, self.head = (body.norm, model.lm_head) if last else (None, None)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        positions = torch.arange(x.shape[1], device=x.device).unsqueeze(0)
        if self.embedding is not None:
            x = self.embedding(x)
        rotary = self.rotary(x, positions)
        for layer in self.layers:
            x = layer(x, position_embeddings=rotary, position_ids=positions)
        return x if self.head is None else self.head(self.norm(x))


def cut(model: nn.Module, count: int) -> list[nn.Module]:
    """The model in so many stages, each with as many layers."""
    kind = Gpt2Stage if hasattr(model, "transformer") else LlamaStage
    layers = model.config.num_hidden_layers
    ends = [layers * (i + 1) // count for i in range(count)]
    return [kind(model, begin, end) for begin, end in zip([0, *ends], ends)]


def next_token_loss(scores: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    return F.cross_entropy(scores[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())


def save(model: nn.Module, stages: list[nn.Module], pipe: strait.Pipeline, folder: pathlib.Path) -> None:
    """The weights of all processes in the form of save_pretrained."""
    if dist.is_initialized():
        for number, stage in enumerate(stages):
            for parameter in stage.parameters():
                dist.broadcast(parameter.data, src=number % dist.get_world_size())
    if pipe.rank == 0:
        model.save_pretrained(folder)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--model", choices=["gpt2", "llama"], default="gpt2")
    parser.add_argument("--activations", default="quant:8")
    parser.add_argument("--gradients", default="quant:8")
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--stages", type=int, default=4)
    flags = parser.parse_args()
    torch.set_num_threads(1)
    if dist.is_torchelastic_launched():
        dist.init_process_group("gloo")

    model = make_model(flags.model)
    stages = cut(model, flags.stages)
    pipe = strait.Pipeline(stages, next_token_loss, activations=flags.activations, gradients=flags.gradients,
                           micro_batches=4)
    text = torch.tensor(list(flags.text.read_bytes()), dtype=torch.long)
    blocks = text[:len(text) // CONTEXT * CONTEXT].view(-1, CONTEXT)
    optimizer = torch.optim.AdamW(pipe.parameters(), lr=3e-3)
    for step in range(flags.steps):
        batch = blocks[torch.arange(step * 8, step * 8 + 8) % len(blocks)]
        optimizer.zero_grad()
        result = pipe.train(batch, batch)
        optimizer.step()
        if (step + 1) % 20 == 0:
            everywhere = pipe.gather(result)
            if pipe.rank == 0:
                print(f"step {step + 1:3}  loss {everywhere.loss:.4f}  {everywhere.wire_bytes} bytes of {everywhere.raw_bytes}")
    model.eval()
    held = blocks[:8]
    score = pipe.gather(pipe.evaluate(held, held, mode="off"))
    if pipe.rank == 0:
        print(f"loss of the first 8 blocks {score.loss:.8f}")
    save(model, stages, pipe, flags.out)
    if dist.is_initialized():
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
