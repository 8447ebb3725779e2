"""The public names: what editors and type checkers follow, and what ``__init__.py`` loads."""

from .cells import Cell as Cell
from .dim import Dim as Dim
from .grid import GridLSTM as GridLSTM
from .loading import load as load
from .models.attention import AttentionTranslator as AttentionTranslator
from .models.convert import from_torch as from_torch
from .models.convert import to_torch as to_torch
from .models.convolutional import ConvolutionalNetwork as ConvolutionalNetwork
from .models.deep import DeepGridLSTM as DeepGridLSTM
from .models.feedforward import FeedForward as FeedForward
from .models.gated_feedback import GatedFeedbackLSTM as GatedFeedbackLSTM
from .models.grid_stack import GridStack as GridStack
from .models.highway import Highway as Highway
from .models.image_grid import ImageGridLSTM as ImageGridLSTM
from .models.image_multidimensional import ImageMultidimensionalLSTM as ImageMultidimensionalLSTM
from .models.multidimensional import MultidimensionalLSTM as MultidimensionalLSTM
from .models.multiplicative import MultiplicativeRNN as MultiplicativeRNN
from .models.reencoder import Reencoder as Reencoder
from .models.renet import ReNet as ReNet
from .models.sequence import SequenceGridLSTM as SequenceGridLSTM
from .models.stacked import StackedLSTM as StackedLSTM
from .state import State as State

__version__: str
