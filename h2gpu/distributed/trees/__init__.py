"""Points, cluster trees and block lists by ranks: each has its own subtrees, the top, and what its blocks meet."""
