"""Attribute values, keys and items: conversion between the wire forms and the gateway's."""
