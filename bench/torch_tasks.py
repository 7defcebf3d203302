"""What the networks are trained for, in PyTorch, as src/models/task.cpp has it: a random batch of inputs, its targets,
and the loss of a network's outputs."""
import torch
import torch.nn.functional as F


def ctc_loss(y, target):
    """All of a target counts, and every step of the output."""
    n, steps, _ = y.shape
    return F.ctc_loss(F.log_softmax(y.transpose(0, 1), -1), target, [steps] * n, [target.shape[1]] * n)


def policy_value_loss(y, target):
    return F.cross_entropy(y[:, :-1], target[:, :-1]) + F.mse_loss(y[:, -1], target[:, -1])


LOSSES = {
    "classification": F.cross_entropy,
    "segmentation": F.cross_entropy,
    "language": lambda y, target: F.cross_entropy(y.flatten(0, 1), target.flatten()),
    "transcription": ctc_loss,
    "discrimination": F.binary_cross_entropy_with_logits,
    "reconstruction": F.mse_loss,
    "policy and value": policy_value_loss,
}


def inputs(task, shape, classes, device):
    return torch.randint(classes, shape, device=device) if task == "language" else torch.rand(shape, device=device)


def targets(task, output, classes, device):
    """Of outputs of this shape."""
    n, *rest = output
    if task == "policy and value":
        return torch.rand(output, device=device).softmax(1)
    if task in ("discrimination", "reconstruction"):
        return torch.rand(output, device=device)
    if task == "transcription":  # 0 is the blank
        return torch.randint(1, classes, (n, max(1, rest[0] // 2)), device=device)
    shape = {"classification": [], "segmentation": rest[1:], "language": rest[:1]}[task]
    return torch.randint(classes, (n, *shape), device=device)
