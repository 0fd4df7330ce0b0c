"""Small networks of `transformers`, built anew: healthy ones, and some with a part scaled down."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Generator, Tensor, nn

from tests.detection.parts import adam, sgd
from tests.detection.run import Label, Run
from tests.detection.runs.sick_fading import FADE

_SIZES: dict[str, Any] = {
    "vocab_size": 30, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2,
    "num_attention_heads": 4,
}  # fmt: skip


def bert(factor: float = 1.0) -> nn.Module:
    """BERT with weights of a size for its width, and a factor on what one attention adds.

    The usual size, 0.02, is made for 768 channels. With 32 it starves the attention.
    """
    from transformers import BertConfig, BertForSequenceClassification

    net = BertForSequenceClassification(
        BertConfig(**_SIZES, num_labels=2, initializer_range=32**-0.5, hidden_dropout_prob=0,
                   attention_probs_dropout_prob=0)
    )  # fmt: skip
    _scale(net.bert.encoder.layer[1].attention.output.dense, factor)
    return net


def gpt2(factor: float = 1.0) -> nn.Module:
    """GPT-2, with a factor on what one feed-forward part adds."""
    from transformers import GPT2Config, GPT2LMHeadModel

    off = dict.fromkeys(("resid_pdrop", "embd_pdrop", "attn_pdrop"), 0)
    none = dict.fromkeys(("bos_token_id", "eos_token_id"))
    net = GPT2LMHeadModel(
        GPT2Config(vocab_size=30, n_embd=32, n_layer=2, n_head=4, n_positions=16, **off, **none)
    )
    _scale(net.transformer.h[1].mlp, factor)
    return net


def llama() -> nn.Module:
    """Llama, two queries for each key."""
    from transformers import LlamaConfig, LlamaForCausalLM

    return LlamaForCausalLM(LlamaConfig(**_SIZES, num_key_value_heads=2))


def t5() -> nn.Module:
    """T5 with gated GELUs; both halves have one embedding."""
    from transformers import T5Config, T5ForConditionalGeneration

    return T5ForConditionalGeneration(
        T5Config(vocab_size=30, d_model=32, d_ff=64, num_layers=2, num_heads=4, d_kv=8,
                 dropout_rate=0, feed_forward_proj="gated-gelu", decoder_start_token_id=0)
    )  # fmt: skip


def _scale(module: nn.Module, factor: float) -> None:
    if factor != 1.0:
        module.register_forward_hook(_Times(factor))


class _Times:
    def __init__(self, factor: float) -> None:
        self.factor = factor

    def __call__(self, module: nn.Module, given: object, output: Tensor) -> Tensor:
        return output * self.factor


def first_word(random: Generator) -> tuple[Tensor, Tensor]:
    """Sentences, and in which half of the words the first one is."""
    x = torch.randint(0, 30, (128, 10), generator=random)
    return x, (x[:, 0] > 14).long()


def in_order(random: Generator) -> tuple[Tensor, Tensor]:
    """Words in their order, to be told one by one."""
    x = torch.randint(0, 30, (128, 10), generator=random).sort(1)[0]
    return x, x


def told(net: Any, x: Tensor, y: Tensor, step: int) -> Tensor:
    """The loss that the network returns."""
    loss: Tensor = net(input_ids=x, labels=y).loss
    return loss


def _run(name: str, build: Callable[[], nn.Module], **changes: Any) -> Run:
    fields: dict[str, Any] = {
        "kind": "transformer", "why": "as its library builds it", "data": in_order,
        "losses": (told,), "optimizers": adam(2e-3), "steps": 40, "batch": 32, "graph": False,
    }  # fmt: skip
    return Run(name=name, build=build, **{**fields, **changes})


_KEYS = tuple(f"bert.encoder.layer.{at}.attention.self.key.bias" for at in range(2))

HEALTHY = (
    _run("library_bert", bert, data=first_word, idle=_KEYS),  # a softmax takes back a key's bias
    _run("library_gpt2", gpt2, optimizers=sgd(0.03, momentum=0.9)),
    _run("library_llama", llama),
    _run("library_t5", t5),
)
SICK = (
    _run(
        "library_gpt2_part_scaled",
        lambda: gpt2(1e-4),
        why="what a feed-forward part adds is divided by ten thousand",
        labels=(Label(unit="net/transformer.h.1.mlp.c_proj", flag="VANISHING"),),
        allowed=FADE,
        cure={"build": gpt2},
    ),
    _run(
        "library_bert_part_scaled",
        lambda: bert(1e-4),
        why="what attention adds is divided by ten thousand",
        data=first_word,
        labels=(Label(unit="net/bert.encoder.layer.1.attention.self.value", flag="VANISHING"),),
        allowed=FADE,
        cure={"build": bert},
        idle=_KEYS,
    ),
)
