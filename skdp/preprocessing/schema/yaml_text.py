"""YAML as version 1.2 has it, where yes, no, on and off are text, by PyYAML, which follows version 1.1."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any


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
        """Safe loader without the truth values of version 1.1, and without keys that hide others."""

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
        fault = " ".join(str(getattr(error, "problem", "") or "it cannot be read").split())
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


__all__ = ["dump", "load"]
