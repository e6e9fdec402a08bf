"""The asyncio client, and the source of the blocking client, which client/tools/faces.py generates from these files.

All decisions are made in `_engine`; these files hold signatures and documentation. The methods below a line
`# declared: ..` are generated too, from the declarations in `_protocol/commands`.
"""
