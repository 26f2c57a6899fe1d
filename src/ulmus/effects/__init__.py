"""Questions about a fitted function, and answers with error bars.

An average, a difference, a slope or a curve is a linear functional of the function. A question
turns a table into functionals (tables, groups, contrasts, grids, functions), a fit answers them
(answers), and the answers become a frame (frames), perhaps with bands that hold together (bands)
or with tests (hypotheses). Probabilities and draws come from the same covariances.
"""
