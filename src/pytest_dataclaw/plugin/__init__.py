"""pytest-dataclaw"""
