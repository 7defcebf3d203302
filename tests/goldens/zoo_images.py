"""The networks of the zoo for images and games that torchvision lacks, in PyTorch."""
import torch
import torch.nn.functional as F
from torch import nn

from zoo_entries import entry


def conv_norm(i, o, kernel, activation=nn.ReLU):
    layers = [nn.Conv2d(i, o, kernel, padding=kernel // 2, bias=False), nn.BatchNorm2d(o)]
    return nn.Sequential(*layers, *([activation()] if activation else []))


def mlp(classes):
    return nn.Sequential(nn.Flatten(), nn.Linear(784, 1000), nn.ReLU(), nn.Linear(1000, classes))


entry("mlp", mlp, 10, [1, 28, 28])


def lenet(classes):
    return nn.Sequential(nn.Conv2d(1, 20, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(20, 50, 5), nn.ReLU(),
                         nn.MaxPool2d(2), nn.Flatten(), nn.Linear(800, 500), nn.ReLU(), nn.Linear(500, classes))


entry("lenet", lenet, 10, [1, 28, 28])


def lenet5(classes):
    return nn.Sequential(nn.Conv2d(1, 6, 5, padding=2), nn.Tanh(), nn.AvgPool2d(2), nn.Conv2d(6, 16, 5), nn.Tanh(),
                         nn.AvgPool2d(2), nn.Conv2d(16, 120, 5), nn.Tanh(), nn.Flatten(), nn.Linear(120, 84), nn.Tanh(),
                         nn.Linear(84, classes))


entry("lenet5", lenet5, 10, [1, 28, 28])


class Basic(nn.Module):
    def __init__(self, i, o, stride):
        super().__init__()
        norm = lambda i, k, s=1: nn.Sequential(nn.Conv2d(i, o, k, s, k // 2, bias=False), nn.BatchNorm2d(o))
        self.a, self.b = norm(i, 3, stride), norm(o, 3)
        self.skip = norm(i, 1, stride) if stride != 1 or i != o else nn.Identity()

    def forward(self, x):
        return F.relu(self.b(F.relu(self.a(x))) + self.skip(x))


def resnet20(classes):
    layers, channels = [conv_norm(3, 16, 3, None), nn.ReLU()], 16
    for width, stride in ((16, 1), (32, 2), (64, 2)):
        for block in range(3):
            layers.append(Basic(channels, width, stride if block == 0 else 1))
            channels = width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, classes))


entry("resnet20", resnet20, 10, [3, 32, 32])


class OverFeat(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 96, 11, 4), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(96, 256, 5), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(256, 512, 3, padding=1), nn.ReLU(), nn.Conv2d(512, 1024, 3, padding=1), nn.ReLU(),
            nn.Conv2d(1024, 1024, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2))
        self.classifier = nn.Sequential(nn.Dropout(), nn.Linear(1024 * 36, 3072), nn.ReLU(), nn.Dropout(),
                                        nn.Linear(3072, 4096), nn.ReLU(), nn.Linear(4096, classes))

    def forward(self, x):
        return self.classifier(F.adaptive_avg_pool2d(self.features(x), 6).flatten(1))


entry("overfeat", OverFeat, 1000, [3, 71, 71])


def nin(classes):
    def unit(i, o, kernel, stride, padding, last):
        return [nn.Conv2d(i, o, kernel, stride, padding), nn.ReLU(), nn.Conv2d(o, o, 1), nn.ReLU(),
                nn.Conv2d(o, last, 1), nn.ReLU()]
    pool = lambda: nn.MaxPool2d(3, 2, ceil_mode=True)
    return nn.Sequential(*unit(3, 96, 11, 4, 0, 96), pool(), *unit(96, 256, 5, 1, 2, 256), pool(),
                         *unit(256, 384, 3, 1, 1, 384), pool(), nn.Dropout(), *unit(384, 1024, 3, 1, 1, classes),
                         nn.AdaptiveAvgPool2d(1), nn.Flatten())


entry("nin", nin, 1000, [3, 64, 64])


class Unit(nn.Module):
    """Convolution, batch norm, relu, as the Inception networks have them."""
    def __init__(self, i, o, kernel, stride=1, padding=None):
        super().__init__()
        kernel = kernel if isinstance(kernel, tuple) else (kernel, kernel)
        padding = tuple(k // 2 for k in kernel) if padding is None else padding
        self.conv = nn.Conv2d(i, o, kernel, stride, padding, bias=False)
        self.bn = nn.BatchNorm2d(o, eps=0.001)

    def forward(self, x):
        return F.relu_(self.bn(self.conv(x)))


class Branches(nn.Module):
    def __init__(self, *branches):
        super().__init__()
        for i, branch in enumerate(branches):
            setattr(self, f"branch{i}", branch)
        self.count = len(branches)

    def forward(self, x):
        return torch.cat([getattr(self, f"branch{i}")(x) for i in range(self.count)], 1)


class InceptionResidual(Branches):
    def __init__(self, conv2d, scale, rectified, *branches):
        super().__init__(*branches)
        self.conv2d, self.scale, self.rectified = conv2d, scale, rectified

    def forward(self, x):
        y = x + self.conv2d(super().forward(x)) * self.scale
        return F.relu_(y) if self.rectified else y


class InceptionResNetV2(nn.Module):
    def __init__(self, classes):
        super().__init__()
        s = nn.Sequential
        block35 = lambda: InceptionResidual(
            nn.Conv2d(128, 320, 1), 0.17, True, Unit(320, 32, 1), s(Unit(320, 32, 1), Unit(32, 32, 3)),
            s(Unit(320, 32, 1), Unit(32, 48, 3), Unit(48, 64, 3)))
        block17 = lambda: InceptionResidual(
            nn.Conv2d(384, 1088, 1), 0.1, True, Unit(1088, 192, 1),
            s(Unit(1088, 128, 1), Unit(128, 160, (1, 7)), Unit(160, 192, (7, 1))))
        block8 = lambda scale, rectified: InceptionResidual(
            nn.Conv2d(448, 2080, 1), scale, rectified, Unit(2080, 192, 1),
            s(Unit(2080, 192, 1), Unit(192, 224, (1, 3)), Unit(224, 256, (3, 1))))
        self.conv2d_1a, self.conv2d_2a = Unit(3, 32, 3, 2, 0), Unit(32, 32, 3, 1, 0)
        self.conv2d_2b, self.maxpool_3a = Unit(32, 64, 3), nn.MaxPool2d(3, 2)
        self.conv2d_3b, self.conv2d_4a = Unit(64, 80, 1), Unit(80, 192, 3, 1, 0)
        self.maxpool_5a = nn.MaxPool2d(3, 2)
        self.mixed_5b = Branches(
            Unit(192, 96, 1), s(Unit(192, 48, 1), Unit(48, 64, 5)),
            s(Unit(192, 64, 1), Unit(64, 96, 3), Unit(96, 96, 3)),
            s(nn.AvgPool2d(3, 1, 1, count_include_pad=False), Unit(192, 64, 1)))
        self.repeat = s(*(block35() for _ in range(10)))
        self.mixed_6a = Branches(Unit(320, 384, 3, 2, 0),
                                 s(Unit(320, 256, 1), Unit(256, 256, 3), Unit(256, 384, 3, 2, 0)), nn.MaxPool2d(3, 2))
        self.repeat_1 = s(*(block17() for _ in range(20)))
        self.mixed_7a = Branches(
            s(Unit(1088, 256, 1), Unit(256, 384, 3, 2, 0)), s(Unit(1088, 256, 1), Unit(256, 288, 3, 2, 0)),
            s(Unit(1088, 256, 1), Unit(256, 288, 3), Unit(288, 320, 3, 2, 0)), nn.MaxPool2d(3, 2))
        self.repeat_2 = s(*(block8(0.2, True) for _ in range(9)))
        self.block8, self.conv2d_7b = block8(1, False), Unit(2080, 1536, 1)
        self.global_pool, self.flatten = nn.AdaptiveAvgPool2d(1), nn.Flatten()
        self.head_drop, self.classif = nn.Dropout(0.2), nn.Linear(1536, classes)

    def forward(self, x):
        for layer in self.children():
            x = layer(x)
        return x


entry("inception_resnet_v2", InceptionResNetV2, 1000, [3, 107, 107])


class AlphaGoResidual(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = conv_norm(256, 256, 3), conv_norm(256, 256, 3, None)

    def forward(self, x):
        return F.relu_(x + self.second(self.first(x)))


class AlphaGoZero(nn.Module):
    def __init__(self, moves):
        super().__init__()
        points = moves - 1
        self.tower = nn.Sequential(conv_norm(17, 256, 3), *(AlphaGoResidual() for _ in range(19)))
        self.policy = nn.Sequential(conv_norm(256, 2, 1), nn.Flatten(), nn.Linear(2 * points, moves))
        self.value = nn.Sequential(conv_norm(256, 1, 1), nn.Flatten(), nn.Linear(points, 256), nn.ReLU(),
                                   nn.Linear(256, 1), nn.Tanh())

    def forward(self, x):
        y = self.tower(x)
        return torch.cat([self.policy(y), self.value(y)], 1)


entry("alphago_zero", AlphaGoZero, 362, [17, 5, 5], small_classes=26, task="policy and value")


class DenoisingAutoencoder(nn.Module):
    def __init__(self, corrupted=0.0):
        super().__init__()
        self.encoder, self.decoder, self.corrupted = nn.Linear(784, 500), nn.Linear(500, 784), corrupted

    def forward(self, x):
        seen = x.flatten(1)
        if self.training and self.corrupted > 0:
            seen = F.dropout(seen, self.corrupted) * (1 - self.corrupted)
        return torch.sigmoid(self.decoder(torch.sigmoid(self.encoder(seen)))).reshape(x.shape)


entry("denoising_autoencoder", lambda _: DenoisingAutoencoder(), 0, [1, 28, 28], task="reconstruction")


class UNet(nn.Module):
    def __init__(self, classes):
        super().__init__()
        twice = lambda i, o: nn.Sequential(nn.Conv2d(i, o, 3, padding=1), nn.ReLU(), nn.Conv2d(o, o, 3, padding=1),
                                           nn.ReLU())
        widths = [64 << level for level in range(5)]
        self.down = nn.ModuleList(twice(i, o) for i, o in zip([1] + widths, widths))
        self.enlarge = nn.ModuleList(nn.ConvTranspose2d(2 * o, o, 2, 2) for o in widths[-2::-1])
        self.up = nn.ModuleList(twice(2 * o, o) for o in widths[-2::-1])
        self.last = nn.Conv2d(64, classes, 1)

    def forward(self, x):
        passed = []
        for level, down in enumerate(self.down):
            x = down(x if level == 0 else F.max_pool2d(x, 2))
            passed.append(x)
        for enlarge, up, beside in zip(self.enlarge, self.up, passed[-2::-1]):
            x = up(torch.cat([beside, enlarge(x)], 1))
        return self.last(x)


entry("unet", UNet, 2, [1, 32, 32], small_classes=3, task="segmentation")


class Main(nn.Module):
    def __init__(self, *layers):
        super().__init__()
        self.main = nn.Sequential(*layers)

    def forward(self, x):
        return self.main(x)


def dcgan_generator(_):
    layers = [nn.ConvTranspose2d(100, 512, 4, 1, 0, bias=False)]
    for width in (512, 256, 128):
        layers += [nn.BatchNorm2d(width), nn.ReLU(), nn.ConvTranspose2d(width, width // 2, 4, 2, 1, bias=False)]
    return Main(*layers, nn.BatchNorm2d(64), nn.ReLU(), nn.ConvTranspose2d(64, 3, 4, 2, 1, bias=False), nn.Tanh())


entry("dcgan_generator", dcgan_generator, 0, [100, 1, 1], small_classes=0, task="reconstruction")


def dcgan_discriminator(_):
    layers = [nn.Conv2d(3, 64, 4, 2, 1, bias=False), nn.LeakyReLU(0.2)]
    for width in (64, 128, 256):
        layers += [nn.Conv2d(width, 2 * width, 4, 2, 1, bias=False), nn.BatchNorm2d(2 * width), nn.LeakyReLU(0.2)]
    return Main(*layers, nn.Conv2d(512, 1, 4, bias=False), nn.Flatten())


entry("dcgan_discriminator", dcgan_discriminator, 1, [3, 64, 64], small_classes=1, task="discrimination")
