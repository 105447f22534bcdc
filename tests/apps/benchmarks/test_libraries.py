"""Ours and the library's solve the same problem; both times are told."""

from h2gpu.apps.benchmarks.peers import libraries


def test_both_are_timed_and_agree(monkeypatch, capsys):
    monkeypatch.setattr(libraries, "COLUMNS", 2)
    monkeypatch.setattr(libraries, "CALLS", 2)
    monkeypatch.setattr(libraries, "OBSERVATIONS", 40)
    assert libraries.main(["--sites", "200"]) == 0
    systems, threads, likelihood = capsys.readouterr().out.splitlines()
    assert float(systems.split("solutions ")[1].split(" apart")[0]) < 1e-6
    assert float(likelihood.split("ours ")[1].split(" higher")[0]) > -1e-3
    assert "µs a call by ours" in threads
