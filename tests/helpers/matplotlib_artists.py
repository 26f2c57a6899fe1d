"""What is drawn on axes, read back from the artists."""

import numpy as np


def labelled(ax, label):
    """The one artist with a label."""
    (found,) = [a for a in (*ax.lines, *ax.collections, *ax.patches) if a.get_label() == label]
    return found


def line(ax, label):
    """x and y of a line."""
    return np.asarray(labelled(ax, label).get_data(), dtype=float)


def area(ax, label):
    """x, lower and upper edge of a filled area, whose corners go there and back."""
    (path,) = labelled(ax, label).get_paths()
    corners = path.vertices
    p = (len(corners) - 3) // 2
    there, back = corners[1 : p + 1], corners[p + 2 : -1][::-1]
    np.testing.assert_array_equal(there[:, 0], back[:, 0])
    return there[:, 0], there[:, 1], back[:, 1]


def bars(ax, label):
    """x, lower and upper end of vertical bars."""
    segments = np.array(labelled(ax, label).get_segments())
    return segments[:, 0, 0], segments[:, 0, 1], segments[:, 1, 1]


def dots(ax, label):
    """x and y of a scatter plot."""
    return labelled(ax, label).get_offsets().T


def legend(ax):
    """Words of the legend."""
    return [text.get_text() for text in ax.get_legend().get_texts()]


def tick_labels(axis):
    """Words at the ticks."""
    return [label.get_text() for label in axis.get_ticklabels()]
