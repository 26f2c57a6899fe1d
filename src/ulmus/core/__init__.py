"""Pure numerics on arrays, written once against the array API standard.

Arrays keep the member axis first and the row axis last: hidden features of ``n`` rows
are ``(M, N, n)``, so that stacking the members is a reshape without a copy.
"""
