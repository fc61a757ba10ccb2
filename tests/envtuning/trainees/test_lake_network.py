"""The agents' network: masked actions, layers as told, gains at the start, and what a window leaves."""

from __future__ import annotations

import numpy as np
import pytest

from mapf_frozenlake.world.layout import EgoLayout
from tests.lazily import Lazy, needed

needed("torch", extra="rllib")
torch, networks = Lazy("torch"), Lazy("envtuning.trainees.lakes.network")


def network(window=5, **layers):
    torch.manual_seed(0)
    layout = EgoLayout(window, False)
    return networks.AgentNetwork(layout, **{"channels": (4, 6), "hidden": (8, 7)} | layers), layout


def rows_of(layout, legal):
    rows = torch.rand(len(legal), layout.size)
    mask = layout.features.index("mask_0") + layout.window_size
    rows[:, mask : mask + 5] = torch.tensor(legal, dtype=torch.float32)
    return rows


@pytest.mark.parametrize("model", [{}, {"encoder": "conv"}, {"separate_value": True}, {"encoder": "conv", "window": 7}])
def test_masked_actions_have_no_chance_and_each_agent_gets_one_value(model):
    net, layout = network(**model)
    rows = rows_of(layout, [[1, 1, 1, 1, 1], [1, 0, 0, 1, 1]])
    logits, values = net.policy_and_value(rows)
    assert (logits.shape, values.shape) == ((2, 5), (2,))
    chances = torch.softmax(logits, dim=1)
    assert (chances[0] > 0.15).all()  # close to uniform before it has learnt
    assert chances[1, 1] == chances[1, 2] == 0


@pytest.mark.parametrize("separate", [True, False])
def test_the_value_has_layers_of_its_own_where_it_is_told_to(separate):
    net, layout = network(separate_value=separate)
    rows = rows_of(layout, [[1, 1, 1, 1, 1]])
    before = net.policy_and_value(rows)[1]
    with torch.no_grad():
        net.trunk[0].weight.zero_()
    assert torch.equal(net.policy_and_value(rows)[1], before) is separate


def test_layers_begin_orthogonal_with_gains_that_keep_the_scale_and_no_bias():
    net, _ = network(encoder="conv", window=7)
    layers = {net.trunk[0]: 2, net.trunk[2]: 2, net.policy_head: 1e-4, net.value_head: 1, net.see[0]: 2, net.see[2]: 2}
    for layer, squared in layers.items():
        rows = layer.weight.detach().flatten(1)
        np.testing.assert_allclose(rows @ rows.T, squared * np.eye(len(rows)), atol=1e-5 * squared)
        assert not layer.bias.any()
    assert net.see[0].weight.shape[2:] == (3, 3)
    assert [layer.out_features for layer in net.trunk[::2]] == [8, 7]
    relus = [type(one).__name__ for one in (*net.trunk[1::2], *net.see[1:4:2])]
    assert relus == ["ReLU"] * 4


@pytest.mark.parametrize(("window", "left"), [(5, 1), (7, 9), (9, 25)])
def test_each_convolution_takes_a_border_of_one_cell(window, left):
    net, layout = network(encoder="conv", window=window)
    seen = net.see(torch.zeros(1, len(layout.planes), window, window))
    assert seen.shape == (1, 6 * left)
    assert net.trunk[0].in_features == 6 * left + len(layout.features)


def test_a_window_that_its_convolutions_use_up_is_said():
    with pytest.raises(ValueError, match="2 convolutions of 3×3 need a window of at least 5"):
        network(encoder="conv", window=3)
