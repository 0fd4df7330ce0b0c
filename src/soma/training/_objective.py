"""The loss of a graph's output, outside of `fit`: one number for the targets at hand."""

from torch import Tensor

from soma.engine import Extras, row_count
from soma.errors import InvalidInput
from soma.training._batches import Batch
from soma.training._losses import asked_losses, chosen_losses, summed
from soma.training._targets import Addressees
from soma.training._trainer import Trainer


class Objective:
    """What `fit` would minimise.

    Args:
        loss: as `Graph.fit` takes it.
    """

    def __init__(self, trainer: Trainer, loss: object) -> None:
        self.trainer = trainer
        self.asked = asked_losses(loss, trainer.runner.topology.wiring().leaves)

    def __call__(self, output: object, aux: Extras, y: object) -> Tensor:
        """Return the sum of the losses of all leaves.

        Raises:
            InvalidInput: no leaf has targets, nor a loss that needs none.
        """
        targets = Addressees.of(self.trainer).targets(y)
        batch = Batch(None, targets, row_count(y) or 1)
        topology = self.trainer.runner.topology
        losses = chosen_losses(topology, self.asked, targets, batch, output)
        if not losses.by_leaf:
            raise InvalidInput(
                "there is nothing to minimise: no leaf has targets. Give `y`, or a `loss` that "
                "needs none."
            )
        return summed(losses(output, aux, batch).values())
