#!/usr/bin/env python3
"""A convolutional network with strides, padding, groups, batch norm, dropout and Adam."""
import torch


def main():
    torch.manual_seed(2)
    torch.set_num_threads(1)
    net = torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.BatchNorm2d(8), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
        torch.nn.Conv2d(8, 16, 3, stride=2, groups=4), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(1),
        torch.nn.Flatten(), torch.nn.Dropout(0.2), torch.nn.Linear(16, 5))
    adam = torch.optim.Adam(net.parameters(), lr=1e-3, weight_decay=1e-4)
    images, labels = torch.randn(4, 3, 16, 16), torch.randint(0, 5, (4,))
    for _ in range(5):
        adam.zero_grad()
        loss = torch.nn.functional.cross_entropy(net(images), labels)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        adam.step()
    net.eval()
    with torch.no_grad():
        print("loss %.5f, classes %s" % (loss.item(), net(images).argmax(1).tolist()))


if __name__ == "__main__":
    main()
