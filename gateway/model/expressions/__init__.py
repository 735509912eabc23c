"""Conditions, updates and ranges: closed trees and their evaluators."""
