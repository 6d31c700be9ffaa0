"""`docmem reembed`."""

from __future__ import annotations

import click

from docmem.cli.output import json_option, note, print_json


@click.command(short_help="Give every text a vector of the configured model.")
@click.argument("tenant")
@click.option("--again", is_flag=True, help="Also texts that have one: the provider changed the model under its name.")
@json_option
def reembed(tenant: str, again: bool, as_json: bool) -> int:
    """Make the vectors of DOCMEM_EMBEDDING_MODEL now, beside those that serve; they take over once all are there.

    sync does so too, in its turns. Until then the old vectors serve whoever still asks with the old model, and words
    serve the others. Exit 75 where texts are left: the model was away. What is made stays, so run it again.
    """
    from docmem import repository
    from docmem.config import settings
    from docmem.embedding import embedder
    from docmem.errors import ConfigError, ModelUnavailable
    from docmem_sync.sync import reembed_tenant

    configured = settings()
    repository.open(configured, tenant)
    model = embedder(configured)
    if model is None:
        raise ConfigError(
            "there is no embedding model to make vectors with",
            hint="set DOCMEM_EMBEDDING_MODEL, or pip install 'docmem[local]'",
        )
    made, left = reembed_tenant(configured, tenant, embedder=model, again=again)
    if as_json:
        print_json({"tenant": tenant, "model": model.model, "embedded": made, "pending_embeddings": left})
    else:
        click.echo(f"{tenant}: {made} texts embedded with {model.model}")
    if left:
        note(f"{tenant}: {left} texts are still without a vector; words find them meanwhile")
        note(f"  run it again: docmem reembed {tenant}{' --again' if again else ''}")
        return ModelUnavailable.exit_code
    if not made:
        note(f"every text has one already; to make them anew: docmem reembed {tenant} --again")
    return 0
