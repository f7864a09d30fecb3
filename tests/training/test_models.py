"""Networks to train."""

import pytest
import torch
from torch import nn
from torch.nn import functional

import regionscope as rs
from regionscope.training.models import ACTIVATIONS, new_network, preact_resnet18, resnet18


@pytest.mark.parametrize("batch_norm", [False, True])
@pytest.mark.parametrize(
    ("model", "shape"),
    [("mlp", (1, 12, 12)), ("cnn", (1, 12, 12)), ("resnet18", (3, 16, 16)), ("preact-resnet18", (3, 16, 16))],
)
def test_every_network_can_be_traced_layer_by_layer(model: str, shape: tuple[int, ...], batch_norm: bool) -> None:
    network = new_network(model, shape, 3, depth=3, width=4, batch_norm=batch_norm).eval()
    net = rs.trace(network, torch.rand(2, *shape))
    assert net.layers == {"resnet18": 17, "preact-resnet18": 16}.get(model, 3)
    assert network(torch.rand(5, *shape)).shape == (5, 3)
    assert any(isinstance(m, nn.BatchNorm1d | nn.BatchNorm2d) for m in network.modules()) == batch_norm


def test_the_cnn_doubles_its_channels_where_it_halves_the_image() -> None:
    convolutions = [
        m for m in new_network("cnn", (3, 32, 32), 10, depth=5, width=4).modules() if isinstance(m, nn.Conv2d)
    ]
    assert [(m.out_channels, m.stride[0]) for m in convolutions] == [(4, 1), (8, 2), (8, 1), (16, 2), (16, 1)]


def test_resnet18_has_the_known_number_of_parameters() -> None:
    assert sum(p.numel() for p in resnet18().parameters()) == 11_173_962


def test_the_resnet18_of_pd_bends_before_its_convolutions_and_not_after_the_last() -> None:
    """As Nakkiran's code, which PD's follows, builds it: one by one, from the weights."""
    network = preact_resnet18(width=2).eval()
    weights = {name: w.double() for name, w in network.state_dict().items()}
    x = torch.rand(3, 3, 16, 16, dtype=torch.float64)
    h, conv = functional.conv2d(x, weights["0.weight"], padding=1), functional.conv2d
    for k in range(1, 9):
        stride = 2 if k in (3, 5, 7) else 1
        a = h.relu()
        skip = conv(a, weights[f"{k}.skip.weight"], stride=stride) if f"{k}.skip.weight" in weights else h
        inside = conv(a, weights[f"{k}.body.0.weight"], stride=stride, padding=1).relu()
        h = conv(inside, weights[f"{k}.body.3.weight"], padding=1) + skip
    wanted = functional.linear(h.mean(dim=(2, 3)), weights["11.weight"], weights["11.bias"])
    assert torch.allclose(network.double()(x), wanted)
    assert len(rs.trace(network, x).sites) == 16
    assert [name for name in weights if "bias" in name] == ["11.bias"]
    assert (
        sum(p.numel() for p in preact_resnet18().parameters()) == 699_066
    )  # 432 + 9216 + 32768 + 131072 + 524288 + 1290


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_every_activation_is_built(activation: str) -> None:
    network = new_network("mlp", (4,), 2, depth=2, width=3, activation=activation)
    assert sum(isinstance(m, type(ACTIVATIONS[activation]())) for m in network.modules()) == 2


def test_a_unit_of_maxout_is_the_larger_of_two_and_one_unit_to_measure() -> None:
    network, x = new_network("mlp", (4,), 2, depth=2, width=3, activation="maxout"), torch.randn(5, 4)
    w = network.state_dict()
    h = functional.linear(x, w["1.weight"], w["1.bias"])
    h = functional.linear(torch.maximum(h[:, ::2], h[:, 1::2]), w["3.weight"], w["3.bias"])
    wanted = functional.linear(torch.maximum(h[:, ::2], h[:, 1::2]), w["5.weight"], w["5.bias"])
    assert torch.allclose(network(x), wanted)
    assert [site.units for site in rs.trace(network, x).sites] == [3, 3]


def test_a_transformer_is_that_of_torch_but_for_norms() -> None:
    network, x = new_network("transformer", (3, 7), 5, depth=1, width=64).double(), torch.randn(4, 3, 7).double()
    w = network.state_dict()
    tokens = x @ w["0.symbols.weight"].T + w["0.places"]
    attention = nn.MultiheadAttention(64, 2, bias=False, batch_first=True).double()
    attention.load_state_dict({"in_proj_weight": w["1.enter.weight"], "out_proj.weight": w["1.leave.weight"]})
    seen = tokens + attention(tokens, tokens, tokens)[0]
    hidden = functional.linear(seen, w["2.body.0.weight"], w["2.body.0.bias"]).relu()
    last = (seen + functional.linear(hidden, w["2.body.2.weight"], w["2.body.2.bias"])).mean(dim=1)
    assert torch.allclose(network(x), functional.linear(last, w["4.weight"], w["4.bias"]))
    net = rs.trace(network[1:], network[0](x).detach(), allow_smooth=True)  # type: ignore[index]
    assert [(site.kind, site.shape) for site in net.sites] == [("relu", (3, 256))]


def test_the_seed_draws_the_weights_and_leaves_the_global_state() -> None:
    before = torch.get_rng_state()
    first, again, other = (new_network("cnn", (1, 8, 8), 2, depth=2, width=3, seed=seed) for seed in (1, 1, 2))
    assert torch.equal(torch.get_rng_state(), before)
    weights, same, others = (next(n.parameters()) for n in (first, again, other))
    assert torch.equal(weights, same)
    assert not torch.equal(weights, others)


def test_the_scale_multiplies_weights_and_biases() -> None:
    small, large = (new_network("mlp", (4,), 2, depth=2, width=50, init_scale=scale) for scale in (1.0, 8.0))
    for a, b in zip(small.parameters(), large.parameters(), strict=True):
        assert torch.equal(8 * a, b)


def test_he_weights_have_the_right_spread() -> None:
    first = new_network("mlp", (400,), 2, depth=1, width=300, init="he", init_scale=2.0, bias_std=0.5)[1]  # type: ignore[index]
    assert float(first.weight.detach().std()) == pytest.approx(2 * (2 / 400) ** 0.5, rel=0.02)
    assert float(first.bias.detach().std()) == pytest.approx(1.0, rel=0.2)


def test_the_script_of_lc_takes_the_wrong_fan_in_for_its_second_layer() -> None:
    network = new_network("mlp", (784,), 10, depth=3, width=200, init="lc-script")
    spreads = [float(w.detach().std()) for w in network.parameters() if w.dim() == 2]
    assert spreads == pytest.approx([784**-0.5, 784**-0.5, 200**-0.5, 200**-0.5], rel=0.05)
    assert all(not b.any() for b in network.parameters() if b.dim() == 1)


def test_wrong_options_are_named() -> None:
    with pytest.raises(ValueError, match="mlp, cnn, resnet18, preact-resnet18, transformer, got 'vit'"):
        new_network("vit", (4,), 2)
    with pytest.raises(ValueError, match="activation must be one of relu"):
        new_network("mlp", (4,), 2, activation="mood")
    with pytest.raises(ValueError, match="needs images"):
        new_network("cnn", (784,), 10)
    with pytest.raises(ValueError, match="maxout is for the model mlp only"):
        new_network("cnn", (1, 8, 8), 10, activation="maxout")
    with pytest.raises(ValueError, match=r"sequences \(tokens, symbols\), got \(784,\)"):
        new_network("transformer", (784,), 10, width=32)
    with pytest.raises(ValueError, match="multiple of 32, got 20"):
        new_network("transformer", (2, 5), 10, width=20)
    with pytest.raises(ValueError, match="a transformer has no batch norm"):
        new_network("transformer", (2, 5), 10, width=32, batch_norm=True)
    with pytest.raises(ValueError, match="init must be one of torch, he, lc-script"):
        new_network("mlp", (4,), 2, init="zero")
    with pytest.raises(ValueError, match="depth and width must be at least 1"):
        new_network("mlp", (4,), 2, depth=0)
