"""The paper's experiments, as data: one dataclass each, with presets."""
