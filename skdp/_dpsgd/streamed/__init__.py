"""Rows that one machine reads from a file or a memory map, block by block, in every pass over them."""
