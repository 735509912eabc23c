"""Values, keys and property names: conversion between wire forms and the gateway's."""
