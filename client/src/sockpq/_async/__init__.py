"""The asyncio client, and with it the blocking one, which client/tools/faces.py makes from these files.

What is decided stands in `_engine`; here are signatures and documentation. The methods below a line `# declared: ..`
are made as well, from the declarations in `_protocol/commands`.
"""
