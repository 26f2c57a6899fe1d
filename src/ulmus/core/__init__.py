"""Numerics of a fit, on arrays of any library and without scikit-learn or pandas.

Subpackages, each of which imports only those before it:

    arrays            array libraries, devices, factorisations with fallbacks
    response          targets on another scale: transformations, smearing, point masses, counts
    data              sources of row blocks, samples, scaling, cross-validation blocks
    layer             inputs of the hidden layer, random units, features, linear functionals
    noise_covariance  covariances of correlated noise: kernels, estimation by REML, HAC
    input_map         the map of the inputs by marginal likelihood, and relevances
    ridge             factor, alpha, smoother, residuals, sums over pairs of members
    variance          variance estimates, quadratic forms, the undersmoothed fit
    noise             noise assumptions: homoskedastic, per row, correlated
    ensemble          the regressions of all outputs, and passes over the rows
    noise_model       the noise variance as a function of the inputs
    fit               the fit: its specification, construction, refits and stored rows
    query             leave-one-out, joint covariances, kriging, sequential design

Symbols are those of the paper where it defines them:

    symbol   word                                        shape
    M, N, K  members, neurons of a member, outputs
    N'       N, plus one with an intercept
    n, p     training rows, points (or functionals)
    d, d'    inputs of the table, and of the layer
    Z, L     inputs of the layer, and their map          (d', n), (d', d')
    W, b     hidden weights, including the map; biases   (M, N, d'), (M, N)
    h, H     hidden features; those of training rows     (M, N', p), (M, N', n)
    R        triangular factor of a hidden matrix        (M, N, N)
    s, d     singular values; filter factors             (M, N)
    t, u     coordinates of points or functionals        (M, N', p)
    Q        coordinates of the training rows            stored as Q', (M, N', n)
    z        smoother row, Q t: the prediction is z'y    n for each point
    q        coordinates of the outputs, Q'y             (M, N', K)
    P        smoother, Q Q'; its diagonal p              n x n, never formed
    omega    noise variance of a row, by its residual    (M, n) or (M, K, n)
    sigma2   noise variance of a row of weight 1         (K,)
    gamma    effective degrees of freedom

The symbols d, p, q and L have a second meaning where a module states it. Words with one meaning
each: a *weight* is that of a row, other weights are hidden weights or output weights
(coefficients); a *member* is one network, a *group* several members whose units form one
undersmoothed network; *spread* is the sample variance of member predictions; *blocks* of rows are
read together, *cross-validation blocks* (``block_ids``) are excluded together; *leverage* of a
point is t't. Arrays have the member axis first and the row axis last, so that stacking the members
is a reshape without a copy.
"""
