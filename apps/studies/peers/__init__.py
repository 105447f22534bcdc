"""What predictions of fields are held against: kriging from near sites alone, and GPBoost."""
