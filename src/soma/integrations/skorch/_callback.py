"""`AuditCallback` of skorch.

skorch runs forward, backward and clipping inside `optimizer.step`, as a closure, and tells its
callbacks nothing of errors but Ctrl-C; `Loop` finds out.
"""

from inspect import signature
from typing import Any, Self

from skorch.callbacks import Callback
from torch.optim import Optimizer

from soma.errors import InvalidInput
from soma.integrations._callback import Auditing
from soma.integrations._training import Loop


class AuditCallback(Auditing, Callback):  # type: ignore[misc]
    """Watches the parts of a net's module while it is fitted, and judges what they do.

    >>> import torch
    >>> from skorch import NeuralNet
    >>> audit = ("audit", AuditCallback())
    >>> quiet = {"verbose": 0, "train_split": None, "max_epochs": 3}
    >>> sizes = {"module__in_features": 2, "module__out_features": 1}
    >>> net = NeuralNet(torch.nn.Linear, torch.nn.MSELoss, callbacks=[audit], **sizes, **quiet)
    >>> net = net.fit(torch.randn(32, 2), torch.randn(32, 1))
    >>> dict(net.callbacks_)["audit"].report().n_steps
    3

    Each `fit` and `partial_fit` is an audit of its own, whose steps count from 0. A search clones
    the callback with its net, so the one of `best_estimator_` has the report of the best. After an
    error the hooks are gone once the callback is asked, the module is called, or the run that was
    given has ended.
    """

    def on_train_begin(self, net: Any, X: Any = None, y: Any = None, **kwargs: Any) -> None:
        """Begin."""
        optimizers = [one for one in vars(net).values() if isinstance(one, Optimizer)]
        self._in_batch = False
        self._begin(net.module_, optimizers, loop=Loop("partial_fit"))

    def on_batch_begin(
        self, net: Any, batch: Any = None, training: bool | None = None, **kwargs: Any
    ) -> None:
        """Know of a batch that Ctrl-C may break off."""
        self._in_batch = True

    def on_grad_computed(self, net: Any, named_parameters: Any, **kwargs: Any) -> None:
        """Look at gradients that are not finite, before they are clipped and used."""
        self._look_in_closure()

    def on_batch_end(
        self, net: Any, batch: Any = None, training: bool | None = None, **kwargs: Any
    ) -> None:
        """Stop a training that cannot recover, as skorch's own `EarlyStopping` does.

        Raises:
            KeyboardInterrupt: nets end their loop on it, and keep what was learned.
        """
        self._in_batch = False
        if training and self._is_lost():
            raise KeyboardInterrupt

    def on_train_end(self, net: Any, X: Any = None, y: Any = None, **kwargs: Any) -> None:
        """End, without a step that Ctrl-C broke off: skorch tells of that as of any end."""
        self._end(KeyboardInterrupt() if self._in_batch else None)

    def _get_param_names(self) -> list[str]:
        return list(signature(type(self).__init__).parameters)[1:]

    def __sklearn_clone__(self) -> Self:
        if self.run is not None:
            raise InvalidInput(
                "a callback that writes into one `run` is cloned for another training. Give "
                "`root=`, and each training begins a run of its own."
            )
        return type(self)(**self.get_params(deep=False))
