"""The networks of the zoo in PyTorch, for the benchmarks: torchvision's, and those of tests/goldens, against which the
tests hold ours. Dropout is as published; rectifiers work in place, as torchvision has them."""
import pathlib
import sys

from torch import nn

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "tests/goldens"))

TORCHVISION = {name: {} for name in (
    "alexnet vgg11 vgg13 vgg16 vgg19 vgg11_bn vgg13_bn vgg16_bn vgg19_bn resnet18 resnet34 resnet50 resnet101 "
    "resnext50_32x4d wide_resnet50_2 densenet121 squeezenet1_1 mobilenet_v2 mobilenet_v3_large shufflenet_v2_x1_0 "
    "efficientnet_b0 convnext_tiny vit_b_16").split()}
TORCHVISION |= {name: {"aux_logits": False, "init_weights": False} for name in ("googlenet", "inception_v3")}


def goldens():
    """The others by name: functions of the number of classes and of sizes other than the published."""
    import zoo_images as images
    import zoo_sequences as sequences

    def transformer(kind, depth, width, heads, length):
        def make(classes, **sizes):
            size = {"depth": depth, "width": width, "heads": heads, "length": length} | sizes
            return kind(classes, size["length"], size["width"], size["heads"], size["depth"], 0.1)
        return make

    return {
        "mlp": images.mlp, "lenet": images.lenet, "lenet5": images.lenet5, "overfeat": images.OverFeat,
        "nin": images.nin, "resnet20": images.resnet20, "inception_resnet_v2": images.InceptionResNetV2,
        "unet": images.UNet, "alphago_zero": images.AlphaGoZero,
        "denoising_autoencoder": lambda _: images.DenoisingAutoencoder(0.25),
        "dcgan_generator": images.dcgan_generator, "dcgan_discriminator": images.dcgan_discriminator,
        "char_lstm": lambda classes: sequences.CharRnn(classes, nn.LSTM, 0.25),
        "char_gru": lambda classes: sequences.CharRnn(classes, nn.GRU, 0.25),
        # The length is that of the samples alone: no parameter depends on it.
        "lstm": lambda classes, length=0, **sizes: sequences.Lstm(classes, **sizes),
        "deep_speech_2": sequences.DeepSpeech2,
        "bert_base": transformer(sequences.Bert, 12, 768, 12, 512),
        "gpt_tiny": transformer(sequences.Gpt, 4, 128, 4, 64),
        "gpt2_small": transformer(sequences.Gpt, 12, 768, 12, 1024),
    }


def make(name, classes):
    """`name` is ours, sizes included. Raises LookupError with a sentence where PyTorch's side has no such network."""
    base, _, text = name.partition(":")
    sizes = {key: int(value) for key, _, value in (part.partition("=") for part in text.split(",") if part)}
    if base in TORCHVISION:
        import torchvision.models
        net = getattr(torchvision.models, base)(weights=None, num_classes=classes, **TORCHVISION[base])
    else:
        known = goldens()
        if base not in known:
            raise LookupError(f"there is no '{base}' among PyTorch's networks here; there are "
                              f"{', '.join([*known, *TORCHVISION])}")
        try:
            net = known[base](classes, **sizes)
        except TypeError:
            raise LookupError(f"PyTorch's {base} is here in its published size only, not with {text}") from None
    for module in net.modules():
        if isinstance(module, (nn.ReLU, nn.LeakyReLU)):
            module.inplace = True
    return net
