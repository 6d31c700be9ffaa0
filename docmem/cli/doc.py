"""`docmem doc put|get|list|search`."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING

import click

from docmem.cli.output import json_option, note, one_line, print_json, short

if TYPE_CHECKING:
    from docmem.documents import Documents


@click.group(short_help="Write and read a tenant's documents.")
def doc() -> None:
    """A tenant's documents: what it knows, its conventions, procedures, experiments."""


def _documents(tenant: str) -> Documents:
    from docmem.config import settings
    from docmem.documents import Documents

    return Documents(tenant, settings=settings())


@doc.command()
@click.argument("tenant")
@click.argument("path")
@click.argument("file", type=click.File("rb"), default="-")
@click.option("--title", help="Its title; default: the first heading.")
@json_option
def put(tenant: str, path: str, file: IO[bytes], title: str | None, as_json: bool) -> None:
    """Write a document (from FILE or standard input) to PATH, like knowledge/refunds.md, as one commit."""
    from docmem.document import decode

    text, _ = decode(file.read())
    revision = _documents(tenant).write(path, text, {"title": title} if title else None)
    if as_json:
        print_json({"path": path, "revision": revision})
        return
    click.echo(f"wrote {path} in {short(revision)}")


@doc.command()
@click.argument("tenant")
@click.argument("path")
@json_option
def get(tenant: str, path: str, as_json: bool) -> None:
    """Print a document."""
    document = _documents(tenant).read(path)
    if as_json:
        print_json({"path": document.path, "title": document.title, "text": document.text, "meta": dict(document.meta)})
        return
    click.echo(document.text)


@doc.command(name="list")
@click.argument("tenant")
@click.argument("glob", default="*")
@json_option
def list_(tenant: str, glob: str, as_json: bool) -> None:
    """List documents, all or those whose path fits GLOB."""
    paths = _documents(tenant).list(glob)
    if as_json:
        print_json(paths)
        return
    for path in paths:
        click.echo(path)


@doc.command()
@click.argument("tenant")
@click.argument("query")
@json_option
def search(tenant: str, query: str, as_json: bool) -> None:
    """Find the paragraphs of documents that answer a question."""
    result = _documents(tenant).search(query)
    if as_json:
        print_json(result.as_json())
        return
    if not result.hits:
        note("nothing found")
    for hit in result.hits:
        click.echo(f"{hit.path}: {one_line(hit.text)}")
