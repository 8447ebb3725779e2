"""Makes a run part of the package: ``python tools/embed_run.py runs/tatoeba translation``.

Weights are stored in half precision, to halve the size of the file. So evaluate the stored weights:
``gridlstm eval src/gridlstm/embedded/translation``.
"""

import json
import shutil
import sys
from pathlib import Path

from safetensors import safe_open
from safetensors.torch import load_file, save_file

from gridlstm.files import checksum, write_json

EMBEDDED = Path(__file__).parent.parent / "src" / "gridlstm" / "embedded"
FILES = ("config.json", "metrics.jsonl", "sessions.json")


def embed(run: Path, place: Path) -> None:
    """Copies the weights of a run and the files that document it."""
    place.mkdir(parents=True, exist_ok=True)
    for name in FILES:
        shutil.copyfile(run / name, place / name)
    with safe_open(str(run / "model.safetensors"), "pt") as weights:
        metadata = weights.metadata()
    tensors = {
        name: tensor.half() if tensor.is_floating_point() else tensor
        for name, tensor in load_file(run / "model.safetensors").items()
    }
    save_file(tensors, place / "model.safetensors", metadata)
    (place / "model.safetensors").chmod(0o644)  # safetensors makes files that only the owner can read.
    summary = json.loads((run / "summary.json").read_text())
    write_json(place / "summary.json", {**summary, "model": checksum(place / "model.safetensors")})


if __name__ == "__main__":
    embed(Path(sys.argv[1]), EMBEDDED / sys.argv[2])
