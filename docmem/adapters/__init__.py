"""Seams to agent frameworks, each with an extra of its name. What they do is `docmem.adapter`'s, behind its flags."""
