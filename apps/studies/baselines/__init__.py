"""What the papers compare with, built as they describe it: a kernel a stage, and stages joined step by step."""
