"""The data: 1,797 handwritten digits of 8 x 8 pixels that come with scikit-learn.

Source: the test set of E. Alpaydin and C. Kaynak, "Optical Recognition of Handwritten Digits", UCI
Machine Learning Repository, as `sklearn.datasets.load_digits` has it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

PIXELS = 64
CLASSES = 10
_TEST_SHARE = 0.25
_SPLIT_SEED = 20


@dataclass(frozen=True)
class Digits:
    """Images, float32 of shape (n, 64) in 0..1, and labels, int64 of shape (n,)."""

    train_images: npt.NDArray[np.float32]
    train_labels: npt.NDArray[np.int64]
    test_images: npt.NDArray[np.float32]
    test_labels: npt.NDArray[np.int64]


def load() -> Digits:
    """The digits, split in the same way every time: 1,347 for training, 450 for testing."""
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    images, labels = load_digits(return_X_y=True)
    train_images, test_images, train_labels, test_labels = train_test_split(
        (images / 16).astype(np.float32),
        labels.astype(np.int64),
        test_size=_TEST_SHARE,
        random_state=_SPLIT_SEED,
        stratify=labels,
    )
    return Digits(train_images, train_labels, test_images, test_labels)
