#!/usr/bin/env python3
"""Records a small BertModel of transformers with sentences, padding and a pooler: bert.json beside itself. Weights are drawn
from Philox by name, as tests/weights/bert.cpp draws them."""
import json
import pathlib

import torch
import transformers as hf

from names import drawn

SIZES = {"vocab_size": 50, "max_position_embeddings": 16, "num_hidden_layers": 2, "hidden_size": 24, "num_attention_heads": 3,
         "intermediate_size": 40}
WORDS = [[i * 7 % 50 for i in range(8)], [i * 11 % 50 for i in range(8)]]
TYPES = [[0] * 5 + [1] * 3, [0] * 3 + [1] * 5]
MASK = [[1] * 8, [1] * 5 + [0] * 3]


def main():
    model = hf.BertModel(hf.BertConfig(**SIZES))
    with torch.no_grad():
        for name, value in model.state_dict().items():
            if value.is_floating_point():
                value.copy_(drawn(name, tuple(value.shape)))
        model.double().eval()
        outputs = {}
        for kind, more in (("plain", {}), ("all", {"token_type_ids": torch.tensor(TYPES), "attention_mask": torch.tensor(MASK)})):
            y = model(torch.tensor(WORDS), **more)
            outputs[kind] = {"last_hidden_state": [float(f"{v:.8g}") for v in y.last_hidden_state[:, :5].flatten().tolist()],
                             "pooler_output": [float(f"{v:.8g}") for v in y.pooler_output.flatten().tolist()]}
    state = {n: list(v.shape) for n, v in model.state_dict().items() if v.is_floating_point()}
    path = pathlib.Path(__file__).parent / "bert.json"
    path.write_text(json.dumps({"words": WORDS, "types": TYPES, "mask": MASK, "state": state, "outputs": outputs}) + "\n")


if __name__ == "__main__":
    main()
