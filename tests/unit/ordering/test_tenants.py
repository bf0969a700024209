"""Tenants as a tree with weights."""

import re

import pytest

from omega.errors import BadInput
from omega.limits import LIMITS
from omega.model.arrays import integers
from omega.ordering.tenants import ROOT, Tenant, TenantTree


def test_a_tenant_that_nobody_has_listed_has_the_weight_one_and_no_parent() -> None:
    tree = TenantTree([Tenant("org", weight=3)])

    assert (1, ("new",)) == (tree.weight("new"), tree.path("new"))
    assert (3, ("org",)) == (tree.weight("org"), tree.path("org"))


def test_a_path_goes_from_the_top_down() -> None:
    """The order in which tenants are listed does not matter."""
    tree = TenantTree([Tenant("c", parent="b"), Tenant("b", parent="a"), Tenant("a")])

    assert ("a", "b", "c") == tree.path("c")


@pytest.mark.parametrize(
    ("tenants", "field", "sentence"),
    [
        ([Tenant("a", 0)], "weight", "the weight of tenant 'a' is 0; it must be from 1 to 10000"),
        ([Tenant("a", -1)], "weight", "the weight of tenant 'a' is -1"),
        ([Tenant("a", LIMITS.tenant_weight_max + 1)], "weight", "is 10001; it must be from 1 to"),
        (
            [Tenant("team", parent="orgg"), Tenant("org")],
            "parent",
            "the parent 'orgg' of tenant 'team' was not set as a tenant; did you mean 'org'?",
        ),
        ([Tenant("a", parent="a")], "parent", "tenant 'a' is its own parent"),
        (
            [Tenant("a", parent="b"), Tenant("b", parent="a")],
            "parent",
            "tenant 'a' is its own ancestor, by way of 'b'",
        ),
        ([Tenant("a"), Tenant("a", 2)], "name", "tenant 'a' was set twice"),
    ],
)
def test_what_makes_no_tree_is_refused(tenants: list[Tenant], field: str, sentence: str) -> None:
    with pytest.raises(BadInput, match=re.escape(sentence)) as refused:
        TenantTree(tenants)

    assert field == refused.value.field


def chain(levels: int) -> list[Tenant]:
    return [Tenant(f"t{at}", parent=f"t{at - 1}" if at else None) for at in range(levels)]


def test_a_tree_has_so_many_levels_and_no_more() -> None:
    TenantTree(chain(LIMITS.tenant_depth_max))

    with pytest.raises(BadInput, match="tenant 't8' is on level 9 of the tree; there are at most"):
        TenantTree(chain(LIMITS.tenant_depth_max + 1))


def test_a_sentence_about_a_large_circle_stays_short() -> None:
    names = [f"tenant-{at}" for at in range(1_000)]
    circle = [Tenant(name, parent=names[at - 1]) for at, name in enumerate(names)]

    with pytest.raises(BadInput, match="its own ancestor") as refused:
        TenantTree(circle)
    assert len(refused.value.sentence) < 200


def test_nodes_are_in_the_order_of_a_walk_by_name() -> None:
    tree = TenantTree([Tenant("org", 5), Tenant("b", 2, "org"), Tenant("a", 3, "org")])
    nodes = tree.nodes(["new", "b", "a"])  # root, new, org, a, b

    assert [1, 4, 3] == nodes.leaf.tolist()
    assert [1, 1, 5, 3, 2] == nodes.weight.tolist()
    assert [[1, 2], [], [3, 4], [], []] == [each.tolist() for each in nodes.children]
    assert [5, 2, 5, 4, 5] == nodes.end.tolist()
    assert {"new": 0, "b": 1, "a": 2} == nodes.position


def test_the_own_jobs_of_a_tenant_with_children_are_its_first_child_of_weight_one() -> None:
    tree = TenantTree([Tenant("org", 5), Tenant("a", 3, "org")])
    nodes = tree.nodes(["a", "org"])  # root, org, org's own, a

    assert [3, 2] == nodes.leaf.tolist()
    assert [1, 5, 1, 3] == nodes.weight.tolist()
    assert [2, 3] == nodes.children[1].tolist()


def test_a_tenant_whose_children_are_not_there_has_one_node() -> None:
    tree = TenantTree([Tenant("org", 5), Tenant("a", 3, "org")])

    assert [1, 5] == tree.nodes(["org"]).weight.tolist()


def test_a_node_sums_up_what_is_below_it() -> None:
    tree = TenantTree([Tenant("org"), Tenant("a", parent="org"), Tenant("b", parent="org")])
    nodes = tree.nodes(["a", "z", "org", "b"])  # root, org, org's own, a, b, z
    sums = nodes.summed(integers([[1, 10], [2, 20], [4, 40], [8, 80]]))

    assert [[15, 150], [13, 130], [4, 40], [1, 10], [8, 80], [2, 20]] == sums.tolist()
    assert [15, 13, 4, 1, 8, 2] == nodes.summed(integers([1, 2, 4, 8])).tolist()


def test_no_tenants_are_the_root_alone() -> None:
    nodes = TenantTree().nodes([])

    assert [0] == nodes.summed(integers([])).tolist()
    assert 0 == len(nodes.children[ROOT])
