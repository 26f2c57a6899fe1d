"""Pure numerics on arrays, written once against the array API standard.

The story of a fit, a module for each word:

    source      rows in blocks, from memory, files or a cluster
    scaling     mean, deviation and range of the inputs;  outputs: the units of y
    inputs      what the layer sees: standardised inputs, their scores and levels
    tuning      a map of these inputs, learned from a sample by evidence;  relevance: what matters
    map_in_noise  the same where noise hangs together: learned again from whitened rows
    layer       random hidden units h(x) behind the map;  recipe: from parameters and rows to it
    whitening   a preconditioner, and moments: sums over whitened rows
    factor      one triangular factor R of each member's hidden matrix
    cuts        blocks of rows that hang together;  left_out: rows without themselves or these
    selection   the ridge parameter alpha, from the singular values of a few members
    smoother    the members at one alpha: coordinates t(x), in which all is an inner product
    noise/      what is assumed about the noise, and forms: bilinear sums over pairs of members
    dependence/ noise that hangs together along time, in space and in groups
    ensemble    the regressions of all outputs, and second_pass: rows as they see them
    wide        groups of members as one rougher network;  undersmoothed_forms: what they need of the rows
    training    what is kept of the rows;  folds: fits behind maps learned without some of them
    functionals averages, differences and slopes as features;  parts: what members say about them
    misfit      signs that the layer cannot follow the function
    shape       the distribution of scaled residuals, by its normal scores
    fit         the one immutable value, made by make, that answers every question
    arrays      its arrays and a description of the rest, for files;  kinds: checks on the way back
    joint       covariances of several functionals, positive semidefinite
    kriging     predictions that listen to residuals of rows nearby
    placement   where to measure next: the same regressions with rows added one by one
    directions  a fit of one output as a linear model of few coefficients

Symbols, as in the paper where it has them:

    symbol   word                                        shape
    M, N, K  members, neurons of a member, outputs
    N'       N, and one more with an intercept
    n, p     training rows, points (or functionals)
    d, d'    inputs of the table, and of the layer
    Z, L     inputs of the layer, and their map          (d', n), (d', d')
    W, b     hidden weights, map included, and biases    (M, N, d'), (M, N)
    h        hidden features                             (M, N', p)
    R        triangular factor of a hidden matrix        (M, N, N)
    t, u     coordinates of points or functionals        (M, N', p)
    Q        coordinates of the training rows            (M, N', n)
    z        smoother row, Q't: prediction is z'y        n numbers for each point
    q        coordinates of the outputs, Q'y             (M, N', K)
    omega    noise variance of a row, from its residual  (M, n) or (M, K, n)
    sigma2   noise variance of a row of weight 1         (K,)
    gamma    effective degrees of freedom
    tau      t of a group of members as one network      (M, N', p)

"weight" alone is the weight of a row; the others are hidden weights and output weights
(coefficients). Arrays keep the member axis first and the row axis last: stacking the members
is then a reshape without a copy.
"""
