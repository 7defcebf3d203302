#!/usr/bin/env python3
"""Records names and shapes of the networks of torchvision, timm and Hugging Face's transformers that the zoo has too:
names.json beside itself, and the outputs of some of them, whose weights are drawn from Philox by name, as
tests/weights/names.cpp draws them. Networks are built without downloads. Needs torchvision, timm, transformers.

  names.py [LIBRARY/NETWORK…]     only these anew, the others stay as recorded
"""
import json
import math
import os
import pathlib
import sys

os.environ["HF_HUB_OFFLINE"] = "1"
import timm
import torch
import torchvision.models as tv
import transformers as hf

from zoo_numbers import uniform

FOLDER = pathlib.Path(__file__).parent
KEPT = 16
NETWORKS = {}


def network(library, name, ours, make, input=None):
    """`make` builds it; with `input`, the shape of one sample, its outputs are recorded."""
    NETWORKS[f"{library}/{name}"] = (ours, make, input)


def torchvision(name, input=None, **options):
    network("torchvision", name, name, lambda: getattr(tv, name)(weights=None, **options), input)


def of_timm(name, ours, input=None, **options):
    network("timm", name, ours, lambda: timm.create_model(name, pretrained=False, **options), input)


def of_hf(name, ours, kind, config, input=None):
    network("transformers", name, ours, lambda: getattr(hf, kind)(config()), input)


for n in (11, 13, 16, 19):
    torchvision(f"vgg{n}")
    torchvision(f"vgg{n}_bn")
    of_timm(f"vgg{n}", f"vgg{n}")
    of_timm(f"vgg{n}_bn", f"vgg{n}_bn")
torchvision("alexnet")
torchvision("googlenet", init_weights=False)
torchvision("inception_v3", init_weights=False)
for name in ("resnet34", "resnet101", "resnext50_32x4d", "wide_resnet50_2", "densenet121", "squeezenet1_1", "mobilenet_v2",
             "shufflenet_v2_x1_0", "efficientnet_b0", "convnext_tiny"):
    torchvision(name)
torchvision("resnet18", [3, 64, 64])
torchvision("resnet50", [3, 64, 64])
torchvision("mobilenet_v3_large", [3, 64, 64])
torchvision("vit_b_16", [3, 32, 32], image_size=32)
for name in ("resnet34", "resnet101", "resnext50_32x4d", "wide_resnet50_2", "inception_v3", "inception_resnet_v2"):
    of_timm(name, name)
of_timm("resnet18", "resnet18", [3, 64, 64])
of_timm("resnet50", "resnet50", [3, 64, 64])
of_timm("densenet121", "densenet121")
of_timm("mobilenetv2_100", "mobilenet_v2", [3, 64, 64])
of_timm("mobilenetv3_large_100", "mobilenet_v3_large", [3, 64, 64])
of_timm("efficientnet_b0", "efficientnet_b0", [3, 64, 64])
of_timm("convnext_tiny", "convnext_tiny", [3, 64, 64])
of_timm("vit_base_patch16_224", "vit_b_16", [3, 32, 32], img_size=32)


def resnet_config(depths, kind, widths=(256, 512, 1024, 2048)):
    return lambda: hf.ResNetConfig(depths=list(depths), layer_type=kind, hidden_sizes=list(widths), num_labels=1000)


of_hf("resnet18", "resnet18", "ResNetForImageClassification", resnet_config((2, 2, 2, 2), "basic", (64, 128, 256, 512)),
      [3, 64, 64])
of_hf("resnet34", "resnet34", "ResNetForImageClassification", resnet_config((3, 4, 6, 3), "basic", (64, 128, 256, 512)))
of_hf("resnet50", "resnet50", "ResNetForImageClassification", resnet_config((3, 4, 6, 3), "bottleneck"), [3, 64, 64])
of_hf("resnet101", "resnet101", "ResNetForImageClassification", resnet_config((3, 4, 23, 3), "bottleneck"))
of_hf("convnext", "convnext_tiny", "ConvNextForImageClassification", lambda: hf.ConvNextConfig(num_labels=1000), [3, 64, 64])
of_hf("vit", "vit_b_16", "ViTForImageClassification", lambda: hf.ViTConfig(num_labels=1000, image_size=32), [3, 32, 32])
of_hf("bert", "bert_base", "BertForMaskedLM", hf.BertConfig, [12])
of_hf("bert_pretraining", "bert_base", "BertForPreTraining", hf.BertConfig)
of_hf("gpt2", "gpt2_small", "GPT2LMHeadModel", hf.GPT2Config, [12])
of_hf("gpt2_model", "gpt2_small", "GPT2Model", hf.GPT2Config)


# Tied tensors are one in memory: it is drawn by the other name.
TIED = ("lm_head.weight", "cls.predictions.decoder.weight", "cls.predictions.decoder.bias")


def drawn(name, shape):
    """As drawn() of tests/weights/names.cpp."""
    if name.endswith("running_var"):
        return uniform(name, shape, 0.5, 1.5)
    if len(shape) > 1:
        bound = math.sqrt(3 / math.prod(shape[1:]))
        return uniform(name, shape, -bound, bound)
    return uniform(name, shape, 0.5, 1.5) if name.endswith("weight") else uniform(name, shape, -0.1, 0.1)


def outputs_of(model, input):
    state = model.state_dict()
    with torch.no_grad():
        for name, value in state.items():
            if value.is_floating_point() and name not in TIED:
                value.copy_(drawn(name, tuple(value.shape)))
        if hasattr(model, "tie_weights"):
            model.tie_weights()
        model.double().eval()
        if len(input) == 1:
            x = torch.arange(2 * input[0]).reshape(2, *input) * 7
        else:
            x = uniform("golden.input", [2, *input], -1, 1)
        y = model(x)
        y = getattr(y, "logits", y)
    flat = y.flatten()
    return [float(f"{v:.8g}") for v in flat[::max(1, len(flat) // KEPT)][:KEPT].tolist()]


def main():
    path = FOLDER / "names.json"
    recorded = json.loads(path.read_text()) if path.exists() else {}
    for key in sys.argv[1:] or NETWORKS:
        ours, make, input = NETWORKS[key]
        model = make()
        types = {torch.float32: "F32", torch.int64: "I64", torch.bool: "BOOL", torch.uint8: "U8"}
        state = {n: [types[v.dtype], *v.shape] for n, v in model.state_dict().items()}
        recorded[key] = {"ours": ours, "state": state}
        if input:
            recorded[key] |= {"input": input, "outputs": outputs_of(model, input)}
        print(key, len(state), recorded[key].get("outputs", "")[:3], flush=True)
    text = ",\n".join(f"{json.dumps(key)}: {json.dumps(recorded[key], separators=(',', ':'))}" for key in sorted(recorded))
    path.write_text("{\n" + text + "\n}\n")


if __name__ == "__main__":
    main()
