"""A drawing for each family of kernels: who holds what, and what travels.

    python docs/drawings/kernels.py      writes docs/pictures/kernels-*.svg

Reference: kernels/README.md, and the heads of the files that it names.
"""

from sketch import BLUE, GREY, INK, PALE, RED, Sketch


def products():
    """Streamed products: a ring of slabs, sums in registers."""
    s = Sketch(15, 5.4)
    for i, word in enumerate(("slab 2", "slab 0", "slab 1", "slab 2")):
        s.box(0.5 + 2.2 * i, 4, 2, 0.9, PALE if i else GREY, word)
    s.text(9.6, 4.45, "A, B in memory: of matrix b, then of b + 1")
    for i, word in enumerate(("multiplied", "on its way", "filled next")):
        s.box(1.2 + 2.6 * i, 2, 2.4, 1, (BLUE, PALE, "white")[i], word, color="white" if i == 0 else INK)
    s.text(9.6, 2.5, "a ring in shared memory; it never stops")
    s.arrow((3.7, 4), (4.8, 3.05))
    s.arrow((8.6, 2.2), (1.6, 2), bend=-0.25)
    s.box(1.2, 0.2, 2.4, 0.8, PALE, "sums of C")
    s.arrow((2.4, 2), (2.4, 1.05))
    s.arrow((3.65, 0.6), (5.6, 0.6))
    s.text(5.8, 0.6, "out, after the last slab of b")
    s.save("kernels-products")


def registers():
    """A problem a thread, and a problem a block dealt out cyclically."""
    s = Sketch(16, 5.4)
    for i in range(4):
        s.box(0.5 + 1.35 * i, 2, 1.2, 1.6, PALE, f"A{i}")
        s.text(1.1 + 1.35 * i, 1.6, f"thread {i}", ha="center", fontsize=7.5)
    s.text(0.5, 4.3, "one problem a thread: all loops unrolled")
    s.text(0.5, 0.7, "nothing is exchanged; a warp brings 32 problems\nin and out through shared memory")
    for i in range(6):
        for j in range(6):
            owner = 2 * (i % 2) + j % 2
            s.box(
                7.5 + 0.7 * j,
                3.9 - 0.7 * i,
                0.7,
                0.7,
                (BLUE, PALE, GREY, "white")[owner],
                str(owner),
                fontsize=7,
                color="white" if owner == 0 else INK,
            )
    s.text(12, 4.3, "one problem a block:\nthread (i mod P, j mod Q)\nholds entry (i, j)")
    s.text(12, 2.2, "a step publishes its\ncolumn and its row:\none barrier")
    s.save("kernels-registers")


def qr():
    """A strip in registers; earlier panels stream by."""
    s = Sketch(15, 5.6)
    for i in range(3):
        s.box(0.5 + 1.5 * i, 1.6, 1.2, 3, PALE, f"V{i}")
        s.box(0.5 + 1.5 * i, 0.4, 1.2, 1, GREY, f"T{i}")
    s.text(0.5, 5.1, "earlier panels, in memory")
    s.box(6.2, 2.4, 2.6, 1.4, "white", "tiles of one V,\nreplaced as used")
    s.text(6.2, 5.1, "shared memory")
    s.arrow((4.85, 3.1), (6.15, 3.1))
    for i in range(4):
        s.box(10.4, 0.4 + 1.1 * i, 1.4, 1.1, BLUE, f"warp {3 - i}", color="white")
    s.text(10.4, 5.1, "strip k of 16 columns, in registers")
    s.arrow((8.85, 3.1), (10.35, 3.1))
    s.arrow((11.85, 2.6), (13.2, 2.6))
    s.text(13.3, 2.6, "Vk, Tk, R")
    s.text(6.0, 1.2, "X ← X − V Tᵀ (Vᵀ X)\nfor each panel")
    s.save("kernels-qr")


def bidiagonal():
    """One pass over what remains gives both vectors of a step."""
    s = Sketch(15, 5.6)
    for i in range(7):
        for j in range(7):
            done = (i < 3 or j < 3) and (j - i) not in (0, 1)
            fill = "white" if done else BLUE if i < 3 and j - i in (0, 1) else PALE
            s.box(0.6 + 0.65 * j, 4.4 - 0.65 * i, 0.65, 0.65, fill)
    s.box(0.6 + 3 * 0.65, 4.4 - 6 * 0.65, 0.65, 4 * 0.65, RED, "a", color="white")
    s.box(0.6 + 4 * 0.65, 4.4 - 3 * 0.65, 3 * 0.65, 0.65, RED, "r", color="white")
    s.text(5.8, 4.4, "blue: what is bidiagonal already")
    s.text(5.8, 3.6, "red: the column a and the row r of this step")
    s.text(5.8, 2.8, "pale: W, in the registers of warps, whole rows each")
    s.text(
        5.8,
        1.6,
        "one pass over W: the two rank-one terms of the step\nbefore, W r (a warp's own sum) and aᵀ W (over the warps)",
    )
    s.save("kernels-bidiagonal")


def svd():
    """Rounds of a sweep: every two panels meet once."""
    s = Sketch(15, 5.2)
    rounds = [("05", "14", "23"), ("15", "02", "34"), ("25", "13", "04"), ("35", "24", "01"), ("45", "03", "12")]
    for i, pairs in enumerate(rounds):
        s.text(0.5, 4.3 - 0.85 * i, f"round {i}")
        for j, (p, q) in enumerate(pairs):
            s.box(2.2 + 2 * j, 4 - 0.85 * i, 0.8, 0.65, PALE, p)
            s.box(3.0 + 2 * j, 4 - 0.85 * i, 0.8, 0.65, GREY, q)
    s.text(8.8, 4.2, "a block takes a pair of panels X = [X₁ X₂]")
    s.text(8.8, 3.4, "G = Xᵀ X")
    s.text(8.8, 2.7, "J diagonalizes G")
    s.text(8.8, 2.0, "X ← X + X (J − I)")
    s.text(8.8, 0.9, "a sweep is over when every two have met;\nit ends when all columns are orthogonal")
    s.save("kernels-svd")


def systems():
    """LU in shared memory: three kinds of columns at once."""
    s = Sketch(16, 5.2)
    s.shape([(0.6, 4.4), (2.8, 4.4), (2.8, 2.2), (0.6, 4.4)], GREY)
    s.shape([(0.6, 4.4), (2.8, 2.2), (2.8, 0.6), (0.6, 0.6)], PALE)
    s.text(2.3, 3.9, "U", ha="center")
    s.text(1.5, 1.6, "L", ha="center")
    s.box(2.8, 0.6, 1.4, 3.8, BLUE, "next\npanel", color="white")
    s.box(4.2, 0.6, 2.8, 3.8, PALE, "C − L U")
    s.box(8.2, 0.6, 2.4, 3.8, "white", "columns\nbehind the\nwindow")
    s.text(0.6, 4.8, "shared memory: the window")
    s.text(8.2, 4.8, "device memory")
    s.text(11, 3.9, "first warps: panel in registers,\na row a lane; search, divide, update")
    s.text(11, 2.5, "other warps: tensor cores\nupdate what is right of it")
    s.text(11, 1.2, "rows do not move on chip:\neach knows its position")
    s.save("kernels-systems")


def blocksparse():
    """Both products of a panel from one reading."""
    s = Sketch(15, 5.2)
    s.box(3.2, 4.1, 3.2, 0.6, GREY, "x, in registers")
    for i in range(3):
        s.box(
            3.2,
            2.9 - 0.95 * i,
            3.2,
            0.85,
            (BLUE, PALE, "white")[i],
            f"stage {i} of P",
            color="white" if i == 0 else INK,
        )
        s.text(1.2, 3.3 - 0.95 * i, f"z{i}")
        s.arrow((1.8, 3.3 - 0.95 * i), (3.15, 3.3 - 0.95 * i))
        s.arrow((6.45, 3.3 - 0.95 * i), (7.8, 3.3 - 0.95 * i))
        s.text(8, 3.3 - 0.95 * i, "rows of P x")
    s.arrow((4.8, 0.98), (4.8, 0.45))
    s.text(5.0, 0.4, "w += Pᵀ z, in registers")
    s.text(10.6, 2.6, "every entry is read once and\nserves both products; one stage\nis multiplied, one on its way")
    s.save("kernels-blocksparse")


def covariance():
    """A thread stays in its column: the point of the column is in registers."""
    s = Sketch(15, 5.2)
    for j in range(5):
        s.box(2.2 + j, 4.1, 0.9, 0.6, GREY, f"y{j}")
        s.box(2.2 + j, 0.6, 0.9, 3.2, BLUE if j == 2 else PALE)
    for i in range(4):
        s.box(0.7, 3.05 - 0.82 * i, 0.9, 0.6, GREY, f"x{i}")
    s.arrow((4.65, 4.1), (4.65, 3.85))
    s.text(8, 4.4, "a thread a column: its point y is in registers")
    s.text(8, 3.4, "A[i, j] = f(x_i, y_j) down the column;\nno index is divided on the way")
    s.text(8, 2.2, "f is a type, Sum<Matern<…>, …>: its parameters\nare operands from constant memory")
    s.text(8, 1.0, "many blocks of a matrix, of differing sizes, in one launch")
    s.save("kernels-covariance")


def trees():
    """A level of a cluster tree: a stable partition keeps every order sorted within the halves."""
    s = Sketch(16, 5.4)
    left = "ac"

    def box(x, y, point):
        goes = point in left
        s.box(x, y, 0.8, 0.8, BLUE if goes else PALE, point, color="white" if goes else INK)

    for row, (axis, before) in enumerate((("x", "aceg"), ("y", "eagc"))):
        y = 3.6 - 1.8 * row
        s.text(0.3, y + 0.4, f"by {axis}")
        for i, point in enumerate(before):
            box(1.5 + 0.95 * i, y, point)
        s.arrow((5.5, y + 0.4), (6.7, y + 0.4))
        for i, point in enumerate(sorted(before, key=lambda point: point not in left)):  # stable
            box(6.9 + 0.95 * i + 0.35 * (i >= len(left)), y, point)
    s.text(1.5, 4.9, "one cluster: its box is longest along x, its first two go left")
    s.text(11.4, 3.9, "mark: along x the first half")
    s.text(11.4, 2.6, "part: lefts before a place,\nfrom counts of tiles")
    s.text(11.4, 1.2, "all clusters of a level at once;\nthe host knows their sizes")
    s.text(6.9, 0.7, "left half              right half")
    s.save("kernels-trees")


if __name__ == "__main__":
    for draw in (products, registers, qr, bidiagonal, svd, systems, blocksparse, covariance, trees):
        draw()
