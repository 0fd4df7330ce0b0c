"""A labelled benchmark: small training runs, what is wrong with each, and the proof of it.

`run.py` says what a run is, `runs/` holds them, `drive.py` trains one. `evidence.py` measures a
run by hand, `proofs.py` says what each label claims of those numbers; no audit takes part in
either. `score.py` compares what an audit reports with the labels.
"""
