"""PyTorch, and Opacus on top of it. Clip 1, noise multiplier 1, learning rate .1, float32; noise is not secret."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from peers.limits import Taken, lots_beforehand
from peers.registry import contestant
from peers.tasks import Task


@contestant("PyTorch", "lots", "busy", role="plain", home="torch")
def plain(task: Task, X: Any, y: Any) -> Any:
    return training(task, X, y)


@contestant("Opacus, hooks", "lots", role="private", home="torch")
def hooks(task: Task, X: Any, y: Any) -> Any:
    return training(task, X, y, "hooks")


@contestant("Opacus, ghost clipping", "lots", role="private", home="torch")
def ghost(task: Task, X: Any, y: Any) -> Any:
    return training(task, X, y, "ghost")


@contestant("Opacus, ghost clipping, its Poisson loader", "lots", "busy", role="private", home="torch", draws=True)
def ghost_by_loader(task: Task, X: Any, y: Any) -> Any:
    return training(task, X, y, "ghost", its_loader=True)


def training(task: Task, X: Any, y: Any, mode: str = "", its_loader: bool = False) -> Any:
    """A step on lots gathered beforehand, or on those of the loader that Opacus makes."""
    import torch
    from torch import nn

    torch.manual_seed(0)
    is_binary = task.widths[-1] == 1
    target = torch.float32 if is_binary else torch.int64
    rows, labels = torch.from_numpy(X), torch.from_numpy(y).to(target)
    layers = [layer for a, b in pairwise(task.widths) for layer in (nn.Linear(a, b), nn.ReLU())][:-1]
    model = nn.Sequential(*layers)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    criterion = nn.BCEWithLogitsLoss() if is_binary else nn.CrossEntropyLoss()
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(rows, labels), task.lot, shuffle=True)
    if mode:
        from opacus import PrivacyEngine

        given = {"module": model, "optimizer": optimizer, "data_loader": loader, "criterion": criterion}
        made = PrivacyEngine().make_private(noise_multiplier=1.0, max_grad_norm=1.0, grad_sample_mode=mode, **given)
        model, optimizer, *others, loader = made
        criterion = others[0] if others else criterion
    model.train()
    batches = [tuple(map(torch.from_numpy, lot)) for lot in lots_beforehand(task, X, y)]
    take = Taken([(a, b.to(target)) for a, b in batches])
    if its_loader:
        forever = (batch for _ in iter(int, 1) for batch in loader)
        take = forever.__next__

    def step() -> None:
        inputs, wanted = take()
        optimizer.zero_grad()
        scores = model(inputs)
        criterion(scores.squeeze(1) if is_binary else scores, wanted).backward()
        optimizer.step()

    return step
