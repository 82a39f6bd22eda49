"""Fine-tuning a model of transformers as its users do: sentences padded to the longest of their batch, a mask that every
stage is given, a frozen lower part. strait.Pipeline against transformers' own loss and gradients."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from transformers import AutoModelForCausalLM, GPT2Config
from transformers.masking_utils import create_causal_mask

import strait

pytestmark = pytest.mark.usefixtures("one_thread")

WORDS, WIDTH, ROWS = 50, 32, 6


class Stage(nn.Module):

    def __init__(self, model, number):
        super().__init__()
        body = model.transformer
        self.config = model.config
        self.wte, self.wpe = (body.wte, body.wpe) if number == 0 else (None, None)
        self.block = body.h[number]
        self.ln_f, self.head = (body.ln_f, model.lm_head) if number + 1 == len(body.h) else (None, None)

    def forward(self, x, *, attention_mask):
        if self.wte is not None:
            x = self.wte(x) + self.wpe(torch.arange(x.shape[1]))
        x = self.block(x, attention_mask=create_causal_mask(self.config, x, attention_mask, None))
        return x if self.head is None else self.head(self.ln_f(x))


def sentences(longest):
    """Tokens, labels with -100 for padding, and the mask."""
    tokens = torch.randint(WORDS, (ROWS, longest))
    mask = (torch.arange(longest) < torch.randint(3, longest + 1, (ROWS, 1))).long()
    return tokens, tokens.masked_fill(mask == 0, -100), mask


def gradients(model):
    return {name: parameter.grad.clone() for name, parameter in model.named_parameters() if parameter.grad is not None}


def test_padded_sentences_have_the_gradients_of_transformers():
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(
        GPT2Config(vocab_size=WORDS, n_positions=WIDTH, n_embd=WIDTH, n_layer=4, n_head=4, resid_pdrop=0.0, embd_pdrop=0.0,
                   attn_pdrop=0.0, bos_token_id=0, eos_token_id=0, tie_word_embeddings=False))
    stages = [Stage(model, number) for number in range(4)]
    stages[0].requires_grad_(False)

    def loss(scores, labels):
        return F.cross_entropy(scores[:, :-1].flatten(0, 1), labels[:, 1:].flatten(), ignore_index=-100)

    pipe = strait.Pipeline(stages, loss)
    for longest in 9, 14, 9, 5:
        tokens, labels, mask = sentences(longest)
        model.zero_grad()
        result = pipe.train(tokens, labels, attention_mask=mask)
        # three cuts forward, and two back: nothing is trained before the first
        assert (result.messages, result.raw_bytes) == (5, 5 * ROWS * longest * WIDTH * 4)
        ours = gradients(model)
        model.zero_grad()
        theirs = model(tokens, attention_mask=mask, labels=labels)
        theirs.loss.backward()
        assert result.loss == pytest.approx(theirs.loss.item(), rel=1e-6)
        expected = gradients(model)
        assert ours.keys() == expected.keys()
        for name, gradient in expected.items():
            torch.testing.assert_close(ours[name], gradient, rtol=1e-5, atol=1e-7, msg=name)
        with torch.no_grad():
            torch.testing.assert_close(pipe.predict(tokens, attention_mask=mask), model(tokens, attention_mask=mask).logits)
