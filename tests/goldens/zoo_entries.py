"""The list of networks that zoo.py records. A file of networks enters each below its definition."""
ZOO = {}


def entry(name, make, classes, input, batch=2, small_classes=10, task="classification", small=None):
    """`make` takes the number of classes; `small` the same for the small variant where that is another function. The small
    variant has inputs of the shape `input`."""
    ZOO[name] = {"make": make, "classes": classes, "input": input, "batch": batch, "small_classes": small_classes,
                 "task": task, "small": small or make}


def language(name, make, classes):
    entry(name, make, classes, [12], task="language")


def vision(name, size=64, **options):
    """A network of torchvision."""
    import torchvision.models as tv
    make = getattr(tv, name)
    entry(name, lambda classes: make(weights=None, num_classes=classes, **options), 1000, [3, size, size])
