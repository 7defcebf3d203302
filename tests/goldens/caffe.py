#!/usr/bin/env python3
"""Writes a network of Caffe, weights/caffe_net.prototxt and .caffemodel, and its outputs by PyTorch's functions, caffe.json.
The fields are those of caffe.proto; PyTorch has the same layers, and its ceil_mode rounds the sizes of pooling as Caffe."""
import json
import pathlib

import numpy
import torch
from torch.nn import functional as F

from weights_files import blob, field
from zoo_numbers import uniform

FOLDER = pathlib.Path(__file__).parent
PROTOTXT = """name: "small"  # a comment
layer { name: "data" type: "Input" top: "data" input_param { shape: { dim: 1 dim: 3 dim: 12 dim: 13 } } }
layer { name: "train" type: "Data" top: "data" top: "label" include { phase: TRAIN } }
layer { name: "conv1" type: "Convolution" bottom: "data" top: "conv1"
        convolution_param { num_output: 4 kernel_size: 3 pad: 1 stride: 2 bias_term: false } }
layer { name: "bn1" type: "BatchNorm" bottom: "conv1" top: "conv1" batch_norm_param { use_global_stats: true eps: 1e-4 } }
layer { name: "scale1" type: "Scale" bottom: "conv1" top: "conv1" scale_param { bias_term: true } }
layer { name: "relu1" type: "ReLU" bottom: "conv1" top: "conv1" relu_param { negative_slope: 0.1 } }
layer { name: "norm1" type: "LRN" bottom: "conv1" top: "norm1" lrn_param { local_size: 3 alpha: 0.5 beta: 0.75 } }
layer { name: "pool1" type: "Pooling" bottom: "norm1" top: "pool1" pooling_param { pool: MAX kernel_size: 3 stride: 2 } }
layer { name: "branch_a" type: "Convolution" bottom: "pool1" top: "a"
        convolution_param { num_output: 4 kernel_h: 1 kernel_w: 3 pad_h: 0 pad_w: 1 group: 2 } }
layer { name: "branch_b" type: "Pooling" bottom: "pool1" top: "b"
        pooling_param { pool: AVE kernel_size: 3 stride: 1 pad: 1 } }
layer { name: "prelu" type: "PReLU" bottom: "a" top: "a" }
layer { name: "sum" type: "Eltwise" bottom: "a" bottom: "b" top: "sum" eltwise_param { operation: SUM } }
layer { name: "cat" type: "Concat" bottom: "sum" bottom: "pool1" top: "cat" }
layer { name: "drop" type: "Dropout" bottom: "cat" top: "cat" dropout_param { dropout_ratio: 0.5 } }
layer { name: "fc" type: "InnerProduct" bottom: "cat" top: "fc" inner_product_param { num_output: 5 } }
layer { name: "prob" type: "Softmax" bottom: "fc" top: "prob" }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "fc" bottom: "label" top: "loss" }
"""


def main():
    draw = numpy.random.default_rng(3).standard_normal
    conv, mean, variance = draw((4, 3, 3, 3)), draw(4), draw(4) ** 2 + 1
    scale, shift, branch, branch_bias = draw(4), draw(4), draw((4, 2, 1, 3)), draw(4)
    slope, product, product_bias = draw(4) ** 2, draw((5, 8 * 3 * 3)) / 8, draw(5)

    def layer(name, kind, *arrays):
        return field(100, field(1, name) + field(2, kind) + b"".join(field(7, blob(a)) for a in arrays))
    (FOLDER / "weights/caffe_net.prototxt").write_text(PROTOTXT)
    (FOLDER / "weights/caffe_net.caffemodel").write_bytes(
        field(1, "small") + layer("conv1", "Convolution", conv) +
        layer("bn1", "BatchNorm", mean * 4, variance * 4, numpy.array([4.0])) + layer("scale1", "Scale", scale, shift) +
        layer("branch_a", "Convolution", branch, branch_bias) + layer("prelu", "PReLU", slope) +
        layer("fc", "InnerProduct", product, product_bias))
    t = torch.from_numpy
    x = uniform("golden.input", [2, 3, 12, 13], -1, 1)
    x = F.conv2d(x, t(conv), stride=2, padding=1)
    x = F.batch_norm(x, t(mean), t(variance), t(scale), t(shift), eps=1e-4)
    x = F.local_response_norm(F.leaky_relu(x, 0.1), 3, 0.5, 0.75, 1)
    x = F.max_pool2d(x, 3, 2, ceil_mode=True)
    a = F.prelu(F.conv2d(x, t(branch), t(branch_bias), padding=(0, 1), groups=2), t(slope))
    b = F.avg_pool2d(x, 3, 1, 1, ceil_mode=True)
    y = F.softmax(F.linear(torch.cat([a + b, x], 1).flatten(1), t(product), t(product_bias)), 1)
    (FOLDER / "caffe.json").write_text(json.dumps({"outputs": [float(f"{v:.8g}") for v in y.flatten().tolist()]}) + "\n")


if __name__ == "__main__":
    main()
