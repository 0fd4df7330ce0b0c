"""What happens in a step of a training, from the hooks to the step's plain numbers.

    forward     ForwardSeen, InputSeen   Recorder.forward_seen, input_seen -> Reader
    backward    GradientSeen             Recorder.gradient_seen -> Reader
                Accumulated              Arrivals.note, or Recorder.accumulated
                BackwardEnded            Recorder.backward_ended -> Weights.after_backward
    optimizer   StepBegins               Recorder.before_step -> Weights.before_step, keep
                StepEnds                 Recorder.after_step -> Weights.after_step
    end                                  StepLifecycle -> Settler.take, Settler.settle

Each hook, `_hooks.py`, goes through `_guarded.py` and calls the recorder, `_recorder.py`. What
comes is put into a `StepTrace`, `_trace.py`, until the step ends, `_lifecycle.py`; then
`_settler.py` makes the numbers of each unit of it. Before the optimizer moves any weight,
`_replays.py` looks whether a number has gone bad, and runs the step again to see where.
"""

__all__: list[str] = []  # what is in here is for the audit alone
