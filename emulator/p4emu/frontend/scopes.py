"""Which names are types at the point the parser has reached.

Only this much is needed to parse: what else a name is, the checker finds out.
"""

from __future__ import annotations


class TypeNames:
    """The names that are types now, with scopes that hide and restore them."""

    def __init__(self) -> None:
        self._visible: dict[str, bool] = {}
        self._hidden: list[list[tuple[str, bool]]] = [[]]

    def __contains__(self, name: str) -> bool:
        return self._visible.get(name, False)

    @property
    def names(self) -> list[str]:
        """All names that are types now."""
        return [name for name, is_type in self._visible.items() if is_type]

    def open(self) -> None:
        self._hidden.append([])

    def close(self) -> None:
        for name, before in reversed(self._hidden.pop()):
            self._visible[name] = before

    def close_all(self) -> None:
        """Back to the outermost scope."""
        while len(self._hidden) > 1:
            self.close()

    def declare_type(self, name: str) -> None:
        self._declare(name, True)

    def declare_object(self, name: str) -> None:
        if self._visible.get(name, False):
            self._declare(name, False)

    def _declare(self, name: str, is_type: bool) -> None:
        self._hidden[-1].append((name, self._visible.get(name, False)))
        self._visible[name] = is_type
