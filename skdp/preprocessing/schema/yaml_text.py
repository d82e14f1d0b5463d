"""YAML as version 1.2 has it, where yes, no, on and off are text, by PyYAML, which follows version 1.1."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

_DEEPEST = 50  # levels of lists in lists; a schema has five


def _import_yaml() -> Any:
    try:
        import yaml
    except ImportError:
        raise ImportError('PyYAML is needed for YAML: pip install "skdp[yaml]", or use JSON.') from None
    return yaml


def load(text: str) -> Any:
    """Read YAML.

    Parameters
    ----------
    text : str
        Keys may not repeat.

    Returns
    -------
    object
    """
    yaml = _import_yaml()

    class Loader(yaml.SafeLoader):  # type: ignore[name-defined]
        """Safe loader without the truth values of version 1.1, and without keys that hide others.

        Lists are not too deep, for which it would take long, and what has an anchor holds no alias: a few lines of
        aliases of aliases would be a list of any length.
        """

        depth, n_anchors = 0, 0

        def compose_node(self, parent: Any, index: Any) -> Any:
            event = self.peek_event()
            is_alias, has_anchor = isinstance(event, yaml.AliasEvent), getattr(event, "anchor", None) is not None
            if self.depth > _DEEPEST:
                raise RecursionError
            if is_alias and self.n_anchors:
                raise yaml.YAMLError("aliases of aliases")
            opened = int(has_anchor and not is_alias)
            self.depth, self.n_anchors = self.depth + 1, self.n_anchors + opened
            node = super().compose_node(parent, index)
            self.depth, self.n_anchors = self.depth - 1, self.n_anchors - opened
            return node

        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            found: set[Any] = set()
            for node_of_key, _ in node.value:
                key = self.construct_object(node_of_key, deep=True)
                if not isinstance(key, Hashable):
                    break  # which is refused below
                if key in found:
                    raise ValueError(f"schema: {key!r} is there twice; name each column once.")
                found.add(key)
            return super().construct_mapping(node, deep=deep)

    Loader.yaml_implicit_resolvers = {
        letter: [
            (tag, pattern)
            for tag, pattern in resolvers
            if tag != "tag:yaml.org,2002:bool" or letter in "tTfF"  # true and false remain
        ]
        for letter, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    fault, found = "", None
    try:
        found = yaml.load(text, Loader)  # derives from SafeLoader
    except yaml.YAMLError as error:
        fault = " ".join(str(getattr(error, "problem", "") or next(iter(error.args), "it cannot be read")).split())
    except RecursionError:
        fault = "lists in lists, too deep"
    if fault:
        raise ValueError(f"schema: this is no YAML ({fault}); give what TableSchema.to_yaml writes.")
    return found


def dump(value: Any) -> str:
    """Write YAML that both versions read alike.

    Parameters
    ----------
    value : object

    Returns
    -------
    str
    """
    return str(_import_yaml().safe_dump(value, sort_keys=False, allow_unicode=True))
