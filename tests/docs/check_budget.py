"""Limits the length of the documentation: README.md to 150 lines, and all pages together to 17,000 words.

Usage: check_budget.py <source directory>
"""
import pathlib
import sys

source = pathlib.Path(sys.argv[1])
most_lines, most_words = 150, 17_000
readme = source / "README.md"
pages = [readme, source / "CONTRIBUTING.md", *sorted((source / "docs").glob("*.md"))]
words = {page: len(page.read_text().split()) for page in pages}
lines = len(readme.read_text().splitlines())
total = sum(words.values())
for page, count in words.items():
    print(f"{count:6} {page.relative_to(source)}")
print(f"{total:6} words in all, of {most_words}; README.md has {lines} lines, of {most_lines}")
if total > most_words or lines > most_lines:
    sys.exit("too long: say it once, and shorter")
