"""The weights of networks on sequences that read or write symbols, which Muon leaves to Adam."""

__all__ = ["symbol_weights"]

PATTERNS = (
    "scores.*",
    "body.projection.*",
    "body.input_projection.*",
    "body.weight_input",  # of a multiplicative RNN
    "body.weight_input.0",  # of a gated-feedback LSTM, whose other layers read hidden vectors
)


def symbol_weights(network: str) -> tuple[str, ...]:
    """Patterns of parameter names for :attr:`Problem.adam_parameters`, by the name of the network."""
    first = ("body.lstm.weight_ih_l0",) if network == "untied-stacked" else ()
    return (*PATTERNS, *first)
