"""Rows that one machine reads from a file or a memory map, block by block, in every pass over them.

- `ahead`: read the next block while one is computed; `model`: sums over blocks, and lots that are gathered ahead
- `blocks`: what such sources share; `memory_map`, `arrow`: memory maps, and Parquet files and Arrow tables
- `files`: which files a path names, and whether they changed
- `columns`: types of columns, and their values in blocks of rows
"""
