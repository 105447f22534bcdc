"""How accuracy is promised: the account, one cluster's share of it, and what was measured against dense truth.

    python docs/drawings/accuracy.py      writes docs/pictures/accuracy-*.svg; half a minute

Reference: docs/accuracy.md.
"""

import matplotlib.pyplot as plt
import numpy as np
from sketch import BLUE, GREY, PALE, RED, STYLE, Sketch, save

import h2gpu
from h2gpu.covariance import Exponential, Gaussian, Matern, Nugget


def account():
    """What rtol is spent on, and where it is checked."""
    s = Sketch(15, 4.6)
    steps = ("interpolation", "compression", "rounding", "check")
    words = (
        "order found on\nsamples, before\nthe build",
        "Σ discarded²\nwithin its share,\nlevel by level",
        "at most a tenth of\nthat share, blocks\nkept in float32",
        "random rows against\nthe exact covariance",
    )
    s.text(0.4, 2.6, "rtol", fontsize=12)
    for i, (step, word) in enumerate(zip(steps, words)):
        x = 2.0 + 3.0 * i
        s.box(x, 2.1, 2.3, 1.0, RED if step == "check" else BLUE, step, color="white")
        s.text(x + 1.15, 1.1, word, ha="center", fontsize=7.5)
        s.arrow((x - (1.0 if i == 0 else 0.7), 2.6), (x - 0.05, 2.6))
    s.arrow((13.35, 2.6), (14.0, 2.6))
    s.text(14.1, 2.6, "C", fontsize=12)
    s.arrow((12.1, 3.15), (3.2, 3.15), bend=0.22)
    s.text(7.6, 4.35, "not met: more points; out of reach: an error, no matrix", ha="center", fontsize=8)
    s.save("accuracy-account")


def share():
    """The singular values of what a cluster sees, and the tail that is discarded."""
    sites = np.random.default_rng(0).random((1500, 2))
    here, there = sites[(sites < 0.25).all(axis=1)], sites[(sites > 0.5).any(axis=1)]
    sigma = np.linalg.svd(Exponential(length_scale=0.3)(here, there), compute_uv=False)
    tail = np.sqrt(np.cumsum(sigma[::-1] ** 2)[::-1])
    keep = int((tail > 1e-4 * tail[0]).sum())
    with plt.rc_context(STYLE):
        figure, ax = plt.subplots(figsize=(6.4, 3.2), layout="constrained")
        places = np.arange(1, len(sigma) + 1)
        ax.semilogy(places[:keep], sigma[:keep], "o", color=BLUE, label="kept: the rank of the cluster")
        ax.semilogy(places[keep:], sigma[keep:], "o", color=GREY, mec="#888888", label="discarded")
        ax.semilogy(places, tail, color=RED, label="√ Σ of the squares from here on")
        ax.axhline(1e-4 * tail[0], color="k", lw=0.8, ls=":", label="the cluster's budget")
        ax.set(xlabel="singular value of the cluster's rows in the farfield", xlim=(0, 50), ylim=(1e-8 * tail[0], None))
        ax.legend(fontsize=8)
        save(figure, "accuracy-share")


def measured():
    """Errors against dense matrices, for accuracies from 10⁻² to 10⁻¹⁰."""
    sites = np.random.default_rng(0).random((2500, 2))
    covariances = {
        "exponential": Exponential(length_scale=0.1),
        "Matérn 3/2 with nugget": Matern(length_scale=0.2, smoothness=1.5) + Nugget(0.01),
        "Gaussian": Gaussian(length_scale=0.1),
    }
    asked = 10.0 ** -np.arange(2, 11)
    with plt.rc_context(STYLE):
        figure, ax = plt.subplots(figsize=(6.4, 4), layout="constrained")
        ax.loglog(asked, asked, color="k", lw=0.8, label="promised")
        for (name, cov), mark in zip(covariances.items(), "os^"):
            exact = cov(sites)
            matrices = [h2gpu.covariance_matrix(sites, cov, rtol=rtol).to_dense() for rtol in asked]
            errors = [np.linalg.norm(C - exact) / np.linalg.norm(exact) for C in matrices]
            print(name, " ".join(f"{error / rtol:.2f}" for error, rtol in zip(errors, asked)))
            ax.loglog(asked, errors, mark, label=f"{name}, measured")
        ax.set(xlabel="rtol", ylabel="‖C − exact‖ / ‖exact‖", title="2,500 random sites, against the dense matrix")
        ax.fill_between(asked, asked, 30 * asked, color=PALE, alpha=0.6)
        ax.legend(fontsize=8)
        save(figure, "accuracy-measured")


if __name__ == "__main__":
    account()
    share()
    measured()
