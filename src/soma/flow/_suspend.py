"""How a node or a tool says that a person is wanted."""


class Suspend(BaseException):  # no `Exception`: a tool that catches those must not swallow it
    """Raised where a run cannot go on before a person has answered `question`."""

    def __init__(self, question: str) -> None:
        super().__init__(question)
        self.question = question
