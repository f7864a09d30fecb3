"""Makes the table of `which-models.md`: python docs/which_models.py [MODEL ...]"""

import math
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
import transformers
from torch import Tensor, nn
from transformers.models.whisper.modeling_whisper import WhisperEncoder

import regionscope as rs
from regionscope.tracing.operations import linear_arguments
from regionscope.tracing.steps import indices

PAGE = Path(__file__).parent / "which-models.md"
VARIES = 1e-3  # outputs at two points must differ by this share of the largest, or equal outputs would say nothing


@dataclass(frozen=True)
class Candidate:
    """A model with random weights in eval mode, the shape of one point, and which of its outputs is meant."""

    model: nn.Module
    shape: tuple[int, ...]
    output: str | None = None

    def __call__(self, x: Tensor) -> Tensor:
        with torch.no_grad():
            result = self.model(x.clone())  # some models write into their input
        made: Tensor = result if self.output is None else result[self.output]
        return made

    def points(self, n: int) -> Tensor:
        return torch.randn(n, *self.shape, generator=torch.Generator().manual_seed(1))


# the models


class FromEmbeddings(nn.Module):
    """A language model from the embeddings of its tokens to the last hidden states."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, embeddings: Tensor) -> Tensor:
        states: Tensor = self.model(inputs_embeds=embeddings, **self.others(len(embeddings))).last_hidden_state
        return states

    def others(self, n: int) -> dict[str, Tensor]:
        return {}


class WithDecoder(FromEmbeddings):
    """The same of an encoder and a decoder, which is given three fixed tokens."""

    def others(self, n: int) -> dict[str, Tensor]:
        return {"decoder_input_ids": torch.arange(3).expand(n, 3)}


class Dense(nn.Module):
    """DenseNet: each layer sees all earlier ones."""

    def __init__(self, growth: int = 4, layers: int = 3) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, growth, 3, padding=1)
        self.norms = nn.ModuleList(nn.BatchNorm2d(growth * (i + 1)) for i in range(layers))
        self.convolutions = nn.ModuleList(nn.Conv2d(growth * (i + 1), growth, 3, padding=1) for i in range(layers))
        self.pool, self.head = nn.AvgPool2d(2), nn.Linear(growth * (layers + 1), 5)

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x)
        for norm, convolution in zip(self.norms, self.convolutions, strict=True):
            x = torch.cat([x, convolution(F.relu(norm(x)))], dim=1)
        scores: Tensor = self.head(F.relu(self.pool(x)).mean(dim=(2, 3)))
        return scores


class UNet(nn.Module):
    """Down by max-pooling, up by transposed convolution, with a skip."""

    def __init__(self, width: int = 4) -> None:
        super().__init__()
        self.enter, self.deep = nn.Conv2d(3, width, 3, padding=1), nn.Conv2d(width, 2 * width, 3, padding=1)
        self.up, self.leave = nn.ConvTranspose2d(2 * width, width, 2, 2), nn.Conv2d(2 * width, 2, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        skip = F.relu(self.enter(x))
        deep = F.relu(self.deep(F.max_pool2d(skip, 2)))
        picture: Tensor = self.leave(torch.cat([skip, F.relu(self.up(deep))], dim=1))
        return picture


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.rnn, self.head = nn.RNN(4, 8, num_layers=2, nonlinearity="relu", batch_first=True), nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        states, _ = self.rnn(x)
        scores: Tensor = self.head(states[:, -1])
        return scores


class Gated(nn.Module):
    """An LSTM: sigmoid gates and tanh."""

    def __init__(self) -> None:
        super().__init__()
        self.rnn, self.head = nn.LSTM(4, 8, batch_first=True), nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        states, _ = self.rnn(x)
        scores: Tensor = self.head(states[:, -1])
        return scores


class Inception(nn.Module):
    """GoogLeNet: convolutions of several sizes and a max-pooling beside each other."""

    def __init__(self, width: int = 4) -> None:
        super().__init__()
        self.ways = nn.ModuleList(nn.Conv2d(3, width, k, padding=k // 2) for k in (1, 3, 5))
        self.pooled, self.head = nn.Conv2d(3, width, 1), nn.Linear(4 * width, 5)

    def forward(self, x: Tensor) -> Tensor:
        found = [F.relu(way(x)) for way in self.ways] + [F.relu(self.pooled(F.max_pool2d(x, 3, 1, 1)))]
        scores: Tensor = self.head(F.max_pool2d(torch.cat(found, dim=1), 2).mean(dim=(2, 3)))
        return scores


class Shuffled(nn.Module):
    """ShuffleNet: convolutions in groups, whose channels are shuffled in between."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.enter, self.mix = nn.Conv2d(3, width, 1), nn.Conv2d(width, width, 3, padding=1, groups=width)
        self.norm, self.groups = nn.BatchNorm2d(width), nn.Conv2d(width, width, 1, groups=2)
        self.head = nn.Linear(width, 5)

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(self.enter(x))
        mixed = F.relu(self.groups(self.norm(self.mix(F.channel_shuffle(x, 2)))))
        scores: Tensor = self.head((x + mixed).mean(dim=(2, 3)))
        return scores


class Mixer(nn.Module):
    """MLPs over patches and over channels by turns."""

    def __init__(self, patches: int, width: int, norm: Callable[[], nn.Module], bend: Callable[[], nn.Module]) -> None:
        super().__init__()
        self.enter, self.norms = nn.Conv2d(3, width, 4, 4), nn.ModuleList(norm() for _ in range(2))
        self.mix_patches = nn.Sequential(nn.Linear(patches, 12), bend(), nn.Linear(12, patches))
        self.mix_channels = nn.Sequential(nn.Linear(width, 12), bend(), nn.Linear(12, width))
        self.head = nn.Linear(width, 5)

    def forward(self, x: Tensor) -> Tensor:
        x = self.enter(x).flatten(2)  # (n, width, patches)
        x = x + self.mix_patches(self.norms[0](x.mT).mT)
        x = x.mT + self.mix_channels(self.norms[1](x.mT))
        scores: Tensor = self.head(x.mean(dim=1))
        return scores


class Rescaled(nn.Module):
    """A factor and a shift for each channel, as ResMLP has in place of layer norm."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.ones(width)), nn.Parameter(torch.zeros(width))

    def forward(self, x: Tensor) -> Tensor:
        return x * self.weight + self.bias


WIDTH, TOKENS, VOCABULARY = 16, 5, 40
ENCODER = {"hidden_size": WIDTH, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24}
SMALL_IMAGES: dict[str, Any] = {"image_size": 32, "patch_size": 8}
SPEECH: dict[str, Any] = {
    "conv_dim": (8, 8), "conv_stride": (5, 2), "conv_kernel": (10, 3), "num_feat_extract_layers": 2,
    "num_conv_pos_embeddings": 4, "num_conv_pos_embedding_groups": 2,
}  # fmt: skip
STAGES: dict[str, Any] = {"hidden_sizes": [8, 16], "depths": [1, 1]}
FOUR_STAGES: dict[str, Any] = {"hidden_sizes": [8, 8, 16, 16], "depths": [1, 1, 1, 1]}
GPT2: dict[str, Any] = {
    "n_embd": WIDTH, "n_layer": 2, "n_head": 2, "n_positions": 16, "bos_token_id": 0, "eos_token_id": 0,
}  # fmt: skip

Make = Callable[[], Candidate]


def classifier(name: str, size: int = 32, **options: Any) -> Make:
    """An image classifier of transformers, by the name that its classes begin with."""
    return lambda: Candidate(
        built(f"{name}ForImageClassification", f"{name}Config", options), (3, size, size), "logits"
    )


def from_embeddings(name: str, width: int = WIDTH, **options: Any) -> Make:
    """A language model of transformers, from the embeddings on."""
    options = {"vocab_size": VOCABULARY, "pad_token_id": 0, **options}
    return lambda: Candidate(FromEmbeddings(built(f"{name}Model", f"{name}Config", options)), (TOKENS, width))


def built(model: str, config: str, options: Mapping[str, Any]) -> nn.Module:
    made: nn.Module = getattr(transformers, model)(getattr(transformers, config)(**options))
    return made


def t5(model: str, wrapper: type[FromEmbeddings]) -> Make:
    options = {"d_model": WIDTH, "d_kv": 8, "d_ff": 24, "num_layers": 2, "num_heads": 2, "vocab_size": VOCABULARY}
    return lambda: Candidate(wrapper(built(model, "T5Config", options)), (TOKENS, WIDTH))


def whisper() -> Candidate:
    heads: dict[str, Any] = {"encoder_attention_heads": 2, "encoder_ffn_dim": 24, "encoder_layers": 2}
    config = transformers.WhisperConfig(d_model=WIDTH, num_mel_bins=8, max_source_positions=10, **heads)
    return Candidate(WhisperEncoder(config), (8, 20), "last_hidden_state")


def speech(name: str) -> Make:
    options = {**ENCODER, **SPEECH}
    return lambda: Candidate(built(f"{name}Model", f"{name}Config", options), (200,), "last_hidden_state")


def clip() -> Candidate:
    options = {**ENCODER, **SMALL_IMAGES}
    return Candidate(built("CLIPVisionModel", "CLIPVisionConfig", options), (3, 32, 32), "pooler_output")


def dpt() -> Candidate:
    sizes = {"neck_hidden_sizes": [8] * 4, "fusion_hidden_size": 8, "backbone_out_indices": [0, 1, 2, 3]}
    options = {**ENCODER, **SMALL_IMAGES, **sizes, "num_hidden_layers": 4}
    return Candidate(built("DPTForDepthEstimation", "DPTConfig", options), (3, 32, 32), "predicted_depth")


def upernet() -> Candidate:
    stages: dict[str, Any] = {**FOUR_STAGES, "out_features": [f"stage{i}" for i in range(1, 5)]}
    backbone = transformers.ResNetConfig(embedding_size=8, layer_type="basic", **stages)
    options = {"backbone_config": backbone, "hidden_size": 8, "auxiliary_channels": 8, "num_labels": 3}
    return Candidate(built("UperNetForSemanticSegmentation", "UperNetConfig", options), (3, 32, 32), "logits")


IMAGES: dict[str, Make] = {
    "ResNet, basic blocks": classifier("ResNet", embedding_size=8, layer_type="basic", **STAGES),
    "ResNet, bottlenecks": classifier("ResNet", embedding_size=8, layer_type="bottleneck", **STAGES),
    "RegNet X": classifier("RegNet", embedding_size=8, groups_width=4, layer_type="x", **STAGES),
    "RegNet Y": classifier("RegNet", embedding_size=8, groups_width=4, layer_type="y", **STAGES),
    "MobileNetV1": classifier("MobileNetV1", depth_multiplier=0.125, min_depth=4),
    "MobileNetV2": classifier("MobileNetV2", depth_multiplier=0.125, min_depth=4, depth_divisible_by=4),
    "UperNet on ResNet": upernet,
    "ConvNeXt": classifier("ConvNext", num_stages=2, **STAGES),
    "ConvNeXt V2": classifier("ConvNextV2", num_stages=2, **STAGES),
    "EfficientNet": classifier(
        "EfficientNet", width_coefficient=0.25, hidden_dim=320, in_channels=[32, 16, 24], out_channels=[16, 24, 40],
        kernel_sizes=[3, 3, 5], strides=[1, 2, 2], num_block_repeats=[1] * 3, expand_ratios=[1, 6, 6],
        depth_coefficient=1.0,
    ),
    "BiT": classifier("Bit", embedding_size=32, hidden_sizes=[32, 64], depths=[1, 1], num_groups=4),
    "PoolFormer": classifier("PoolFormer", **FOUR_STAGES),
    "LeViT": classifier(
        "Levit", 64, image_size=64, hidden_sizes=[16, 24, 32], num_attention_heads=[2] * 3, depths=[1] * 3,
        key_dim=[4] * 3,
    ),
    "MobileViT": classifier(
        "MobileViT", 64, image_size=64, hidden_sizes=[16] * 3, neck_hidden_sizes=[8, 8, 8, 16, 16, 16, 16],
        num_attention_heads=2,
    ),
    "CvT": classifier("Cvt", embed_dim=[8, 16, 16], num_heads=[1, 2, 2], depth=[1, 2, 3]),
    "SegFormer": classifier("Segformer", num_attention_heads=[1, 1, 2, 2], **FOUR_STAGES),
    "Swin": classifier(
        "Swin", image_size=32, patch_size=4, embed_dim=8, depths=[2, 2], num_heads=[2, 2], window_size=4
    ),
    "ViT": classifier("ViT", **ENCODER, **SMALL_IMAGES),
    "ViT with ReLU": classifier("ViT", **ENCODER, **SMALL_IMAGES, hidden_act="relu"),
    "DINOv2": classifier("Dinov2", **ENCODER, **SMALL_IMAGES),
    "DeiT": classifier("DeiT", **ENCODER, **SMALL_IMAGES),
    "BEiT": classifier("Beit", **ENCODER, **SMALL_IMAGES, use_relative_position_bias=True),
    "DPT": dpt,
    "CLIP, vision": clip,
}  # fmt: skip
SEQUENCES: dict[str, Make] = {
    "GPT-2": from_embeddings("GPT2", **GPT2),
    "GPT-2 with ReLU": from_embeddings("GPT2", **GPT2, activation_function="relu"),
    "BERT": from_embeddings("Bert", **ENCODER),
    "BERT with ReLU": from_embeddings("Bert", **ENCODER, hidden_act="relu"),
    "RoBERTa": from_embeddings("Roberta", **ENCODER),
    "DistilBERT": from_embeddings("DistilBert", dim=WIDTH, n_layers=2, n_heads=2, hidden_dim=24),
    "ALBERT": from_embeddings("Albert", 8, **ENCODER, embedding_size=8),
    "OPT": from_embeddings(
        "OPT", hidden_size=WIDTH, word_embed_proj_dim=WIDTH, ffn_dim=24, num_hidden_layers=2, num_attention_heads=2,
        max_position_embeddings=32,
    ),
    "T5, encoder": t5("T5EncoderModel", FromEmbeddings),
    "T5, encoder and decoder": t5("T5Model", WithDecoder),
    "Llama": from_embeddings("Llama", **ENCODER),
    "Qwen2": from_embeddings("Qwen2", **ENCODER, num_key_value_heads=1),
    "Pythia": from_embeddings("GPTNeoX", **ENCODER),
    "Mistral": from_embeddings("Mistral", **ENCODER, num_key_value_heads=1, sliding_window=3),
    "Mixtral": from_embeddings("Mixtral", **ENCODER, num_key_value_heads=1, num_local_experts=4),
    "Mamba": from_embeddings("Mamba", hidden_size=WIDTH, state_size=4, num_hidden_layers=2),
    "FNet": from_embeddings("FNet", hidden_size=WIDTH, num_hidden_layers=2, intermediate_size=24),
    "Whisper, encoder": whisper,
    "Wav2Vec2": speech("Wav2Vec2"),
}  # fmt: skip
PLAIN: dict[str, Make] = {
    "DenseNet": lambda: Candidate(Dense(), (3, 8, 8)),
    "U-Net": lambda: Candidate(UNet(), (3, 8, 8)),
    "GoogLeNet": lambda: Candidate(Inception(), (3, 8, 8)),
    "ShuffleNet": lambda: Candidate(Shuffled(), (3, 8, 8)),
    "RNN with ReLU": lambda: Candidate(Recurrent(), (6, 4)),
    "LSTM": lambda: Candidate(Gated(), (6, 4)),
    "MLP-Mixer": lambda: Candidate(Mixer(4, 8, lambda: nn.LayerNorm(8), nn.GELU), (3, 8, 8)),
    "ResMLP with ReLU": lambda: Candidate(Mixer(4, 8, lambda: Rescaled(8), nn.ReLU), (3, 8, 8)),
}
MODELS = {**IMAGES, **SEQUENCES, **PLAIN}


def candidate(name: str) -> Candidate:
    """A model of the table, the same at every call."""
    with torch.random.fork_rng(), quiet():
        torch.manual_seed(0)
        made = MODELS[name]()
        draw(made.model.eval())
    return made


@torch.no_grad()
def draw(model: nn.Module) -> None:
    """Weights under which no signal dies out on its way, and nothing is left at 0 or 1, where a mistake would hide."""
    for name, p in model.named_parameters():
        noise = torch.randn(p.shape)
        if p.dim() > 1:
            p.copy_(noise * math.sqrt(2 / p[0].numel()))
        else:
            p.copy_(0.2 * noise if name.endswith("bias") else 1 + 0.2 * noise)
    for name, b in model.named_buffers():
        if name.endswith("running_mean"):
            b.copy_(0.2 * torch.randn(b.shape))
        elif name.endswith("running_var"):
            b.copy_(0.5 + torch.rand(b.shape))


@contextmanager
def quiet() -> Iterator[None]:
    """Without what transformers says about small sizes and missing kernels."""
    level = transformers.logging.get_verbosity()
    transformers.logging.set_verbosity_error()
    try:
        yield
    finally:
        transformers.logging.set_verbosity(level)


# what tracing makes of them


@dataclass(frozen=True)
class Row:
    name: str
    network: rs.Network | None  # traced as it is or with allow_smooth
    refusal: str  # as it is
    smooth_refusal: str = ""
    difference: float = math.nan  # from the model, over the largest output
    affine: bool | None = None


def row(name: str) -> Row:
    made = candidate(name)
    x, refusal = made.points(3), ""
    with quiet():
        try:
            net = rs.trace(made.model, x[:1], output=made.output)
        except rs.UnsupportedModel as error:
            refusal = str(error)
            try:
                net = rs.trace(made.model, x[:1], output=made.output, allow_smooth=True)
            except rs.UnsupportedModel as again:
                return Row(name, None, refusal, str(again))
        largest = max(difference(net, made, x[:1]), difference(net, made, x))
    return Row(name, net, refusal, "", largest, net.verify(x).holds if net.piecewise_linear else None)


def difference(net: rs.Network, made: Candidate, x: Tensor) -> float:
    """The largest difference of network and model at points, over the largest output of the model."""
    expected = made(x)
    largest = expected.abs().max()
    if len(x) > 1 and not (expected[0] - expected[1]).abs().max() > VARIES * largest:
        raise RuntimeError("the model gives the same everywhere: that the network does too would say nothing")
    return float((net(x) - expected).abs().max() / largest)


WORDS = {
    "_safe_softmax": "softmax", "_softmax": "softmax", "native_layer_norm": "layer_norm",
    "native_group_norm": "group_norm", "_grouped_mm": "grouped_mm",
}  # fmt: skip


def others(net: rs.Network) -> list[str]:
    """The operations on input-dependent values that are neither affine nor sites."""
    found, exits, live = set(), set(net.exits), net.program.shapes.keys()
    for step in net.program.pruned([net.output]).steps:
        mattering = {name for name, a in step.named.items() if not live.isdisjoint(indices(a))}
        if mattering and exits.isdisjoint(step.results) and not linear_arguments(step, mattering):
            found.add(WORDS.get(step.name, step.name))
    return sorted(found)


REFUSAL = re.compile(r"in (?:module '(?P<path>[^']*)' \(\w+\)|the model's own forward): aten\.(?P<what>[^;]*)")


def shortened(refusal: str) -> tuple[str, str]:
    """Which operation was refused and why, without advice; and in which module."""
    found = REFUSAL.match(refusal)
    if found is None:
        return refusal.partition(";")[0], ""
    operation, _, why = found["what"].replace(".default", "").partition(" ")
    return f"`{operation}` {why}", f" in `{found['path']}`" if found["path"] else " in its own forward"


def table(rows: list[Row]) -> str:
    head = ["model", "traced", "sites", "units", "kinds", "besides", "difference", "affine"]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(map(str, cells(r))) + " |" for r in rows]
    return "\n".join(lines)


def cells(r: Row) -> list[Any]:
    net = r.network
    if net is None:
        return [r.name, "refused", "", "", "", shortened(r.smooth_refusal)[0], "", ""]
    kinds = ", ".join(dict.fromkeys(site.kind for site in net.sites))
    traced = "piecewise linear" if net.piecewise_linear else "`allow_smooth`"
    affine = "" if r.affine is None else "yes" if r.affine else "no"
    apart = f"{r.difference:.0e}" if r.difference else "0"
    return [r.name, traced, len(net.sites), net.units, kinds, ", ".join(others(net)), apart, affine]


def refusals(rows: list[Row]) -> str:
    """The models that are refused as they are, by reason."""
    found: dict[str, list[str]] = {}
    for r in rows:
        if r.refusal:
            what, where = shortened(r.refusal)
            found.setdefault(what, []).append(f"{r.name}{where}")
    return "\n".join(f"- {what}: {'; '.join(models)}." for what, models in found.items())


def versions() -> str:
    return f"torch {torch.__version__.partition('+')[0]}, transformers {transformers.__version__}"


def main() -> None:
    rows = []
    for name in sys.argv[1:] or MODELS:
        rows.append(row(name))
        print(name, repr(rows[-1].network or rows[-1].smooth_refusal), f"{rows[-1].difference:.0e}", rows[-1].affine)
    if len(rows) < len(MODELS):
        print(table(rows), refusals(rows), sep="\n\n")
        return
    text = PAGE.read_text()
    for mark, new in (("table", table(rows)), ("refusals", refusals(rows)), ("versions", versions())):
        text = replaced(text, mark, new)
    PAGE.write_text(text)


def replaced(text: str, mark: str, new: str) -> str:
    """A page with what stands behind this mark exchanged."""
    marked = re.compile(rf"(<!-- {mark} -->\n).*?(<!-- end -->)", re.DOTALL)
    return marked.sub(lambda m: f"{m[1]}{new}\n{m[2]}", text)


if __name__ == "__main__":
    main()
