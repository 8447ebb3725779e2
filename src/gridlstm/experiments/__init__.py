"""The paper's experiments, one folder each; ``registry`` lists them."""
