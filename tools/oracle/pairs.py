# SPDX-License-Identifier: Apache-2.0
"""Methods that kvpress and winnow share: a press, and winnow's equivalent spec."""

from dataclasses import dataclass
from typing import Callable

from kvpress import (
    AdaKVPress,
    CURPress,
    ExpectedAttentionPress,
    KeyDiffPress,
    KnormPress,
    ObservedAttentionPress,
    SnapKVPress,
    StreamingLLMPress,
    TOVAPress,
)

WINDOW, KERNEL, SINKS, FUTURE = 64, 5, 4, 512
SNAPKV = f"window={WINDOW},kernel={KERNEL},pool=mean,pad=count"
EXPECTED = f"expected-attention:future={FUTURE},sinks={SINKS}"


@dataclass
class Pair:
    name: str
    spec: str
    press: Callable  # by the evicted share
    attention: str = "sdpa"  # implementation in transformers that the press needs
    alpha: float = 0  # kvpress's share of the budget that each head keeps safely
    golden: bool = True  # whether both follow the same rules, so that their kept sets must be equal

    def spec_for(self, budget):
        """winnow's {floor}: kvpress counts the window among a head's safe entries, winnow only entries before it."""
        safe_before_window = int(self.alpha * budget) - WINDOW
        floor = (safe_before_window + 0.5) / (budget - WINDOW) if safe_before_window > 0 else 0
        return self.spec.format(floor=round(floor, 4))


@dataclass
class WholeSoftmax(ExpectedAttentionPress):
    """Expected attention like winnow's softmax=all: the first tokens are kept and are part of the softmax. kvpress
    leaves them out of it, which changes the weights of a group's query heads in their mean."""

    n_sink: int = 0

    def get_query_statistics(self, module, hidden_states):
        return ExpectedAttentionPress(n_future_positions=self.n_future_positions, n_sink=SINKS).get_query_statistics(module, hidden_states)

    def score(self, module, hidden_states, keys, values, attentions, kwargs):
        scores = super().score(module, hidden_states, keys, values, attentions, kwargs)
        scores[..., :SINKS] = scores.max() + 1
        return scores


def ada(alpha):
    return lambda share: AdaKVPress(SnapKVPress(share, WINDOW, KERNEL), alpha)


PAIRS = [
    Pair("StreamingLLM", f"streaming-llm:sinks={SINKS}", lambda share: StreamingLLMPress(share, SINKS)),
    Pair("SnapKV", f"snapkv:{SNAPKV}", lambda share: SnapKVPress(share, WINDOW, KERNEL)),
    Pair("TOVA", "tova:when=prefill", TOVAPress),
    Pair("ObservedAttention", "h2o:recent=0,normalize=count,when=prefill", ObservedAttentionPress, attention="eager"),
    Pair("AdaKV(SnapKV), alpha 0.2", f"ada-snapkv:{SNAPKV},floor=0.2,floor-rule=hard", ada(0.2), golden=False),
    Pair("AdaKV(SnapKV), alpha 0.2", f"ada-snapkv:{SNAPKV},floor={{floor}},floor-rule=hard", ada(0.2), alpha=0.2, golden=False),
    Pair("AdaKV(SnapKV), alpha 0.9", f"ada-snapkv:{SNAPKV},floor={{floor}},floor-rule=hard", ada(0.9), alpha=0.9),
    Pair("Knorm", "knorm", KnormPress),
    Pair("KeyDiff", "keydiff", KeyDiffPress),
    Pair("CUR", "cur", CURPress),
    Pair("ExpectedAttention", EXPECTED, lambda share: ExpectedAttentionPress(share, FUTURE, SINKS)),
    Pair("the same, softmax over all positions", f"{EXPECTED},softmax=all", lambda share: WholeSoftmax(share, FUTURE)),
]
