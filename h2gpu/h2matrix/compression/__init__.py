"""Compression: orthogonalize, weigh, truncate, project; then round what may be in float32."""
