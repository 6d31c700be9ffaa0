"""The one door to git. Plain functions over a bare repo that return plain values.

Revisions and blobs are object ids, 40 hex digits. Paths are `str`; names that aren't UTF-8 carry surrogate escapes.
A commit is one `git fast-import` and one compare-and-swap of the ref: O(changed files), and a lost race is seen
(GitPython's index lost 21 of 80 commits of two writers without a word).
"""

from __future__ import annotations

from docmem.git.bundles import bundle, unbundle
from docmem.git.chain import brought_objects, paths, places_ever, times, versions_ever
from docmem.git.diffs import changes, grep, history, merge_file, patch
from docmem.git.objects import (
    blob_id,
    close,
    commits_with_prefix,
    files,
    has_commit,
    head,
    is_ancestor,
    is_first_parent_ancestor,
    obstructed,
    read_blob,
    read_blobs,
    read_file,
    resolve,
    tree_id,
)
from docmem.git.people import person
from docmem.git.process import version
from docmem.git.references import REF_LOCK_SECONDS, has_ref, move_ref, ref_times, refs
from docmem.git.repos import LOCK_SECONDS, borrow, init, is_repo, lock
from docmem.git.rewriting import fetch, move_refs, objects, rewrite
from docmem.git.soundness import kind, missing, newest, unreadable
from docmem.git.upkeep import (
    drop_notes_of_git,
    drop_unreachable,
    keeps,
    leftovers,
    new_generation,
    packs,
    repack,
    write_commit_graph,
)
from docmem.git.values import EMPTY_TREE, ENGINE, MAIN, NONE, Author, Change, Commit, time
from docmem.git.writing import commit

__all__ = [
    "Author",
    "Change",
    "Commit",
    "EMPTY_TREE",
    "ENGINE",
    "LOCK_SECONDS",
    "MAIN",
    "NONE",
    "REF_LOCK_SECONDS",
    "blob_id",
    "borrow",
    "brought_objects",
    "bundle",
    "changes",
    "close",
    "commit",
    "commits_with_prefix",
    "drop_notes_of_git",
    "drop_unreachable",
    "fetch",
    "files",
    "grep",
    "has_commit",
    "has_ref",
    "head",
    "history",
    "init",
    "is_ancestor",
    "is_first_parent_ancestor",
    "is_repo",
    "keeps",
    "kind",
    "leftovers",
    "lock",
    "merge_file",
    "missing",
    "move_ref",
    "move_refs",
    "new_generation",
    "newest",
    "objects",
    "obstructed",
    "packs",
    "patch",
    "paths",
    "places_ever",
    "person",
    "read_blob",
    "read_blobs",
    "read_file",
    "ref_times",
    "refs",
    "repack",
    "resolve",
    "rewrite",
    "time",
    "times",
    "tree_id",
    "unbundle",
    "unreadable",
    "version",
    "versions_ever",
    "write_commit_graph",
]
