"""The networks of the demo equal PyTorch's: the same weights, characters, digits, letters and words."""

import json
from functools import partial

import numpy as np
import pytest
import torch

from gridlstm import load
from gridlstm.experiments.characters.data import Corpus
from gridlstm.experiments.images.data import ImageSet
from gridlstm.experiments.images.pictures import read_picture, to_digit
from gridlstm.experiments.memorization.data import MemorizationTask
from gridlstm.experiments.translation.data import Parallel
from gridlstm.experiments.translation.vocabulary import BEGIN, END, PADDING, UNKNOWN
from gridlstm.models.beam_search import Rules, search_all
from gridlstm.models.generate import draw_symbol

CASES = 100


class Mulberry:
    """The random numbers of the page, as ``numpy.random.Generator`` gives them."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def random(self) -> float:
        def multiply(a: int, b: int) -> int:
            return a * b & 0xFFFFFFFF

        self.seed = self.seed + 0x6D2B79F5 & 0xFFFFFFFF
        t = multiply(self.seed ^ self.seed >> 15, self.seed | 1)
        t ^= t + multiply(t ^ t >> 7, t | 61) & 0xFFFFFFFF
        return (t ^ t >> 14) / 2**32


@pytest.fixture
def networks(browser, demo):
    """The open page, with each network that a test names."""
    browser.open(demo)
    return browser.run


def near(given: object, expected: torch.Tensor, *, atol: float = 1e-4) -> None:
    np.testing.assert_allclose(np.array(given), expected.numpy(), rtol=0, atol=atol)


@pytest.fixture(scope="module")
def prompts() -> list[str]:
    text = Corpus.shakespeare().test.tobytes().decode()
    return [text[first : first + 12] for first in range(0, 97 * CASES, 97)]


@torch.no_grad()
def continue_with_pytorch(prompts: list[str], length: int, temperature: float) -> list[str]:
    """What the model writes after each prompt, all at once, with random numbers of their own."""
    model = load("characters")
    alphabet = bytes(model.alphabet.tolist()).decode()
    read = torch.tensor([[alphabet.index(character) for character in prompt] for prompt in prompts])
    random = [Mulberry(seed) for seed in range(len(prompts))]
    written, state = [""] * len(prompts), None
    for _ in range(length):
        scores, state = model(read, state)
        drawn = [
            draw_symbol(row.numpy(), temperature, None, numbers)
            for row, numbers in zip(scores[:, -1], random, strict=True)
        ]
        written = [text + alphabet[symbol] for text, symbol in zip(written, drawn, strict=True)]
        read = torch.tensor(drawn).unsqueeze(1)
    return written


@pytest.mark.parametrize("temperature", [0, 0.8])
def test_writes_the_same_text(networks, prompts, temperature):
    length = 25
    expected = continue_with_pytorch(prompts, length, temperature)
    written = networks(
        """
        const model = new SequenceNetwork(loadNetwork("characters"));
        const [prompts, length, temperature] = arguments;
        return prompts.map((prompt, seed) =>
          continueText(model, prompt, length, temperature, seededRandom(seed)));
        """,
        prompts,
        length,
        temperature,
    )
    assert len(written) == CASES
    assert written == expected


@torch.no_grad()
def test_characters_have_the_same_probabilities(networks, prompts):
    model = load("characters")
    alphabet = bytes(model.alphabet.tolist()).decode()
    symbols = torch.tensor([[alphabet.index(character) for character in prompt] for prompt in prompts])
    given = networks(
        """
        const model = new SequenceNetwork(loadNetwork("characters"));
        return arguments[0].map((symbols) => {
          let step = {};
          return symbols.map((symbol) => {
            step = model.step(symbol, step.time);
            return Array.from(softmax(step.scores));
          });
        });
        """,
        symbols.tolist(),
    )
    near(given, model(symbols)[0].softmax(-1))


def test_a_text_without_known_characters_starts_with_a_newline(networks):
    script = """
        const model = new SequenceNetwork(loadNetwork("characters"));
        return continueText(model, arguments[0], 20, 0, Math.random);
        """
    assert networks(script, "é❦") == networks(script, "\n") != networks(script, "R❦")


@torch.no_grad()
def test_digits_have_the_same_probabilities_and_maps(networks):
    images = ImageSet.sample().test.images[:CASES]
    network = load("images")
    inputs = torch.from_numpy(images[:, None].astype(np.float32)) / 255
    given = networks(
        """
        const network = new ImageNetwork(loadNetwork("images"));
        return arguments[0].map((image) => {
          const { probabilities, sweeps } = network.classify(image);
          return [Array.from(probabilities), sweeps.map((sweep) => sweep.map(({ m }) => m[0]))];
        });
        """,
        images.reshape(CASES, -1).tolist(),
    )
    expected = network(inputs).softmax(-1)
    near([probabilities for probabilities, _ in given], expected)
    maps = torch.stack([state.memory[..., 0].flatten(1) for state in network.layers(inputs)], 1)
    near([sweeps for _, sweeps in given], maps)


@torch.no_grad()
def test_letters_have_the_same_probabilities(networks):
    inputs = MemorizationTask(8, 26).draw(0, 0, CASES, held_out=True).inputs
    expected = load("memorization")(torch.from_numpy(inputs)).softmax(-1)
    given = networks(
        """
        const network = new SequenceNetwork(loadNetwork("memorization"));
        return arguments[0].map((symbols) => {
          const scores = [];
          for (const wave of network.waves(symbols)) {
            for (const { position: [time, layer], outgoing } of wave) {
              if (layer < network.layers - 1) continue;
              scores[time] = Array.from(softmax(network.score(outgoing[1])));
            }
          }
          return scores;
        });
        """,
        inputs.tolist(),
    )
    near(given, expected)


@pytest.mark.parametrize(("beam", "count"), [(1, CASES), (5, 8)])
@torch.no_grad()
def test_sentences_have_the_same_translations(networks, beam, count):
    translator = load("translation")
    sentences = [pair.source for pair in Parallel.tatoeba().test[:count]]
    words = [translator.source.tokeniser.split(sentence) for sentence in sentences]
    numbers = [translator.source.vocabulary.encode(sentence) for sentence in words]
    rules = Rules(BEGIN, END, banned=(PADDING, BEGIN, UNKNOWN), beam=beam)
    found = dict(search_all(translator.model, numbers, rules))
    script = """
        const model = (window.model ??= new Reencoder(loadNetwork("translation")));
        const numbers = model.encode(model.split(arguments[0]));
        const best = await beamSearch(model, numbers, arguments[1]);
        const alignment = best.alignment.map((row) => row.map((grid) => Array.from(grid)));
        return { numbers, ...best, alignment, text: joinWords(model.decode(best.words)) };
        """
    given = [networks(script, sentence, beam) for sentence in sentences]
    for i, translation in enumerate(given):
        assert translation["numbers"] == numbers[i]
        assert translation["words"] == found[i].words, sentences[i]
        assert translation["score"] == pytest.approx(found[i].score, abs=1e-3)
        target = torch.tensor([[BEGIN, *found[i].words]])
        maps = translator.model.align(torch.tensor([numbers[i]]), target)[:, 0]
        near(translation["alignment"], maps.transpose(0, 1), atol=1e-3)
        assert translation["text"] == translator.target.decode(found[i].words)


def test_english_words_are_joined_in_the_same_way(networks):
    english = load("translation").target
    sentences = [english.encode(pair.references[0]) for pair in Parallel.tatoeba().test]
    known = [sentence for sentence in sentences if UNKNOWN not in sentence]
    assert len(known) > 800
    given = networks(
        """
        const model = new Reencoder(loadNetwork("translation"));
        return arguments[0].map((words) => joinWords(model.decode(words)));
        """,
        known,
    )
    assert given == [english.decode(sentence) for sentence in known]


STROKES = {
    "a 1, thin and tall": [[[100, 20], [100, 180]]],
    "a 7 in a corner": [[[10, 10], [70, 10], [30, 90]]],
    "a 4 of two strokes": [[[60, 30], [50, 110], [140, 110]], [[120, 40], [110, 180]]],
    "a point": [[[150, 60], [150, 60]]],
    "a line over the edge": [[[20, 100], [230, 120]]],
    "everything": [[[0, 0], [200, 200]], [[200, 0], [0, 200]]],
}


@pytest.mark.parametrize("strokes", STROKES.values(), ids=STROKES)
def test_a_drawing_becomes_the_image_that_classify_makes_of_it(networks, tmp_path, strokes):
    image, picture = networks(
        """
        showRoom("draw");
        for (const points of arguments[0]) {
          for (let i = 1; i < points.length; i++) {
            const [from, to] = [points[i - 1], points[i]].map(([x, y]) => ({ x, y }));
            rooms.draw.stroke(from, to);
          }
        }
        const { canvas } = rooms.draw.ink;
        const blob = await canvas.convertToBlob({ type: "image/png" });
        const bytes = new Uint8Array(await blob.arrayBuffer());
        return [Array.from(toDigit(rooms.draw.readInk())), Array.from(bytes)];
        """,
        strokes,
    )
    (tmp_path / "drawing.png").write_bytes(bytes(picture))
    expected = to_digit(read_picture(tmp_path / "drawing.png")).astype(int)
    assert expected.max() == 255
    np.testing.assert_allclose(np.reshape(image, (28, 28)), expected, rtol=0, atol=1)


def test_halves_are_read(networks):
    values = np.array([0, 1, -2.5, 65504, 6e-8, np.inf, 0.333], np.float16)
    read = partial(networks, "return JSON.stringify(arguments[0].map(fromHalf).map(String))")
    given = json.loads(read(values.view(np.uint16).tolist()))
    assert [float(value) for value in given] == values.astype(float).tolist()
