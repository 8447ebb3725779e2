"""Which weights of the networks on sequences read or write symbols."""

__all__ = ["symbol_weights"]

PATTERNS = (
    "scores.*",
    "body.projection.*",
    "body.input_projection.*",
    "body.weight_input",  # of a multiplicative RNN
    "body.weight_input.0",  # of a gated-feedback LSTM, whose other layers read hidden vectors
)


def symbol_weights(network: str) -> tuple[str, ...]:
    """Patterns of their names, given the kind of network."""
    first = ("body.lstm.weight_ih_l0",) if network == "untied-stacked" else ()
    return (*PATTERNS, *first)
