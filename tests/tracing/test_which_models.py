"""Models of Hugging Face transformers, from small configurations: traced or refused as `docs/which-models.md` says."""

from collections.abc import Iterator, Sequence

import pytest
import torch
from oracles import hooked_inputs, naive_crossings
from torch import Tensor, nn
from transformers.activations import GELUActivation, NewGELUActivation, SiLUActivation
from which_models import MODELS, PAGE, Candidate, candidate, cells, difference, others, row

import regionscope as rs
from regionscope.runs.watched import USUAL

LINEAR = {
    "ResNet, basic blocks": {"relu", "max_pool"},
    "RegNet X": {"relu"},
    "MobileNetV2": {"hardtanh"},
    "RNN with ReLU": {"relu"},
    "ResMLP with ReLU": {"relu"},
}
SMOOTH = {  # the kind of all sites, how many there are, and the units of each
    "ViT": ("gelu", 2, 17 * 24),
    "BERT": ("gelu", 2, 5 * 24),
    "GPT-2": ("tanh", 2, 5 * 64),  # its GELU is written out
    "OPT": ("relu", 2, 5 * 24),
    "T5, encoder": ("relu", 2, 5 * 24),
    "ViT with ReLU": ("relu", 2, 17 * 24),
    "BERT with ReLU": ("relu", 2, 5 * 24),
    "GPT-2 with ReLU": ("relu", 2, 5 * 64),
    "Llama": ("silu", 2, 5 * 24),
}
ACTIVATIONS = (nn.ReLU, nn.ReLU6, nn.GELU, nn.SiLU, GELUActivation, NewGELUActivation, SiLUActivation)


def assert_equal_outputs(net: rs.Network, made: Candidate) -> None:
    for n in (1, 2, 5):
        assert difference(net, made, made.points(n)) < 3e-6


def beside(values: Sequence[Tensor], made: Candidate, x: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Pre-activations, each with what enters the activation module, which may hold tokens of all points in a row."""
    for ours, theirs in zip(values, hooked_inputs(made.model, x, ACTIVATIONS), strict=True):
        yield ours, theirs.reshape(ours.shape)


@pytest.mark.parametrize("name", LINEAR)
def test_piecewise_linear_models_are_traced_as_they_are(name: str) -> None:
    made = candidate(name)
    net = rs.trace(made.model, made.points(1), output=made.output)
    assert net.piecewise_linear
    assert {site.kind for site in net.sites} == LINEAR[name]
    assert_equal_outputs(net, made)
    assert net.verify(made.points(3), generator=torch.Generator().manual_seed(0)).holds


@pytest.mark.parametrize("name", ["ResNet, basic blocks", "RegNet X", "MobileNetV2", "ResMLP with ReLU"])
def test_their_sites_are_what_enters_their_activation_modules(name: str) -> None:
    made = candidate(name)
    x = made.points(3)
    net = rs.trace(made.model, x, output=made.output)
    values = [v for v, site in zip(net.preactivations(x), net.sites, strict=True) if site.kind != "max_pool"]
    for ours, theirs in beside(values, made, x):
        assert torch.allclose(ours, theirs, rtol=1e-4, atol=1e-5 * float(theirs.abs().max()))


@pytest.mark.parametrize("name", SMOOTH)
def test_transformers_are_refused_as_they_are_and_traced_through_their_units(name: str) -> None:
    made, (kind, sites, units) = candidate(name), SMOOTH[name]
    with pytest.raises(rs.UnsupportedModel, match=r"Norm\): aten.(native_layer_norm|pow).*allow_smooth=True"):
        rs.trace(made.model, made.points(1), output=made.output)
    net = rs.trace(made.model, made.points(1), output=made.output, allow_smooth=True)
    assert not net.piecewise_linear
    assert [(site.kind, site.units, site.layer) for site in net.sites] == [(kind, units, i + 1) for i in range(sites)]
    assert_equal_outputs(net, made)


@pytest.mark.parametrize("name", SMOOTH)
def test_their_units_switch_where_the_input_of_the_activation_module_changes_sign(name: str) -> None:
    made = candidate(name)
    x = made.points(4)
    net = rs.trace(made.model, x[:1], output=made.output, allow_smooth=True)
    for ours, theirs in beside(net.preactivations(x), made, x):
        clear = theirs.abs() > 1e-4
        assert clear.sum() > 0.99 * clear.numel() and torch.equal((ours > 0)[clear], (theirs > 0)[clear])
        if "tanh" not in {site.kind for site in net.sites}:
            assert torch.allclose(ours, theirs, rtol=1e-4, atol=1e-5 * float(theirs.abs().max()))


@pytest.mark.parametrize("name", ["ViT with ReLU", "BERT with ReLU", "GPT-2 with ReLU", "OPT"])
def test_with_relu_attention_and_layer_norm_remain(name: str) -> None:
    made = candidate(name)
    net = rs.trace(made.model, made.points(1), output=made.output, allow_smooth=True)
    assert others(net) == ["bmm", "layer_norm", "softmax"]


def test_units_of_a_transformer_can_be_measured() -> None:
    made, generator = candidate("BERT"), torch.Generator().manual_seed(0)
    net, x = rs.trace(made.model, made.points(1), allow_smooth=True), made.points(3)
    assert rs.local_complexity(net, x, sigma=0.5, draws=2, generator=generator).mean > 0
    frame = torch.linalg.qr(torch.randn(x[0].numel(), 3, generator=generator)).Q.T
    crossings = rs.boundary_crossings(net, x, radius=1.0, frame=frame).per_layer
    assert crossings is not None and crossings.sum() > 0
    assert crossings.tolist() == [naive_crossings(net, point, frame, 1.0) for point in x]
    with pytest.raises(ValueError, match="not piecewise linear"):
        rs.line_cells(net, x[0], x[1])


def attention_switches() -> list[bool]:
    cuda = torch.backends.cuda
    return [cuda.flash_sdp_enabled(), cuda.mem_efficient_sdp_enabled(), cuda.math_sdp_enabled()]


@pytest.mark.parametrize("name", ["GPT-2", "GPT-2 with ReLU", "Llama"])
def test_transformers_are_watched_with_the_usual_measures(name: str) -> None:
    made = candidate(name)
    x, switches = made.points(3), attention_switches()
    outputs = made(x)
    record = rs.Monitor(made.model, {"x": x}, strict=True)(0)
    assert record is not None
    assert {measure: found["mean"] > 0 for measure, found in record.probes["x"].items()} == dict.fromkeys(USUAL, True)
    for measure in USUAL:  # as they are of large models
        for options in rs.MEASURES[measure].cheaper:
            assert rs.MEASURES[measure].estimate(made.model, x, allow_smooth=True, **options).mean > 0
    with pytest.warns(UserWarning, match="allow_smooth=True"):
        rs.Monitor(made.model, {"x": x}, allow_smooth=False)(0)
    assert torch.equal(made(x), outputs) and attention_switches() == switches


def test_a_speech_model_that_draws_numbers_it_does_not_use_is_traced() -> None:
    made = candidate("Wav2Vec2")
    net = rs.trace(made.model, made.points(1), output=made.output, allow_smooth=True)
    assert {site.kind for site in net.sites} == {"gelu"}
    assert_equal_outputs(net, made)


def test_a_model_that_sets_hooks_at_its_first_call_gives_the_same_after_tracing() -> None:
    made, again = candidate("DPT"), candidate("DPT")
    rs.trace(made.model, made.points(1), output=made.output, allow_smooth=True)
    assert torch.equal(made(made.points(2)), again(made.points(2)))


def test_every_model_has_a_row_and_the_rows_of_quick_ones_are_found_again() -> None:
    page = PAGE.read_text()
    rows = dict(line.removeprefix("| ").split(" | ", 1) for line in page.splitlines() if line.startswith("| "))
    assert set(MODELS) <= set(rows)
    for name in ("U-Net", "DenseNet", "GoogLeNet", "ShuffleNet", "LSTM", "MLP-Mixer", "DistilBERT", "FNet"):
        found = " | ".join(map(str, cells(row(name))[1:6]))
        assert rows[name].startswith(found), name
