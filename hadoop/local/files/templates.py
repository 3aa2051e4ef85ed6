"""The templates of Hadoop's settings, which Ansible uses too."""

from __future__ import annotations

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from hadoop.installation import ROOT

TEMPLATES = ROOT / "ansible" / "roles" / "hadoop" / "templates"


def fill(template: str, variables: dict[str, object]) -> str:
    """The text that a template makes."""
    # Ansible's template module trims blocks too, so both render the same text; values go into XML, hence autoescape.
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        undefined=StrictUndefined,
        autoescape=True,
        trim_blocks=True,
        keep_trailing_newline=True,
    )
    return environment.get_template(template).render(variables)
