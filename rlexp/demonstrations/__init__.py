"""Datasets of demonstrated episodes, and how they are collected."""
