"""Describe an archive of results for registers: CITATION.cff, RO-Crate and codecheck.yml.

Formats: the Citation File Format 1.2.0, RO-Crate 1.1, and the configuration file of CODECHECK 1.0.
The same files and words give the same bytes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from svmbench.base.files import read_bytes, read_json, write_text
from svmbench.base.paper_folders import papers
from svmbench.report.reading.records import Run

#: The folders of an archive: packs of its runs, and its pages.
PACKS, SITE = "packs", "site"
_CRATE_FILE = "ro-crate-metadata.json"
_KINDS = {".zip": "application/zip", ".yml": "text/yaml", ".cff": "text/yaml"}


@dataclass(frozen=True)
class About:
    """The facts of an archive that its runs don't have.

    Attributes
    ----------
    title, version, license : str
        Title of the archive; version of svmbench; SPDX name of the licence.
    authors : tuple of str
        Who made the results.
    date : str
        Day on which the archive is published, as 2026-01-31.
    repository : str
        Address of the code; empty for none.
    checker : str
        Who checked the results; empty for nobody yet.
    """

    title: str
    version: str
    license: str
    authors: tuple[str, ...]
    date: str
    repository: str = ""
    checker: str = ""


def write_metadata(folder: Path, runs: Sequence[Run], about: About) -> list[Path]:
    """Write the metadata of an archive whose packs and site are there; return the files.

    ``codecheck.yml`` describes the runs of one paper. With several papers, each has a file
    ``codecheck-KEY.yml``.

    Parameters
    ----------
    folder : Path
    runs : sequence of Run
        The runs in the archive.
    about : About
    """
    keys = list(dict.fromkeys(run.paper for run in runs if run.paper in papers()))
    texts = {"CITATION.cff": _yaml(_citation(keys, about))}
    for key in keys:
        name = "codecheck.yml" if len(keys) == 1 else f"codecheck-{key}.yml"
        texts[name] = _yaml(_codecheck(key, folder, about))
    for name, text in texts.items():
        write_text(folder / name, text)
    crate = folder / _CRATE_FILE
    described = [*sorted((folder / PACKS).glob("*")), *(folder / name for name in texts)]
    content = json.dumps(_crate(folder, described, keys, about), indent=1, ensure_ascii=False)
    write_text(crate, content + "\n")
    return [*(folder / name for name in texts), crate]


def _yaml(content: Mapping[str, Any]) -> str:
    return str(yaml.safe_dump(dict(content), sort_keys=False, allow_unicode=True, width=100))


def _citation(keys: Iterable[str], about: About) -> dict[str, Any]:
    """Return the content of CITATION.cff, with the papers as references."""
    content: dict[str, Any] = {
        "cff-version": "1.2.0",
        "message": "If you use these results, please cite them and the papers they are about.",
        "type": "dataset",
        "title": about.title,
        "authors": [{"name": name} for name in about.authors],
        "version": about.version,
        "date-released": about.date,
        "license": about.license,
    }
    if about.repository:
        content["repository-code"] = about.repository
    references = [
        {"type": "article", "title": paper.title, "authors": [{"name": n} for n in paper.authors]}
        for paper in map(papers().__getitem__, keys)
    ]
    return {**content, "references": references} if references else content


def _codecheck(key: str, folder: Path, about: About) -> dict[str, Any]:
    """Return the content of a paper's codecheck.yml: its manifest has the tables and plots."""
    paper = papers()[key]
    manifest = []
    for plan_file in sorted((folder / SITE / "data").glob("*/plan.json")):
        plan = read_json(plan_file)
        config = plan.get("config") or {}
        if config.get("paper") != key:
            continue
        for kind, ending in (("tables", "csv"), ("plots", "svg")):
            for spec in plan.get(kind) or []:
                file = plan_file.parent / f"{spec['name']}.{ending}"
                if file.exists():
                    title = spec.get("title") or spec["name"]
                    manifest.append(
                        {
                            "file": file.relative_to(folder).as_posix(),
                            "comment": f"{config.get('title') or config.get('name')}: {title};"
                            f" svmbench run {config.get('name')} --profile {plan.get('profile')}",
                        }
                    )
    content: dict[str, Any] = {
        "version": "https://codecheck.org.uk/spec/config/1.0/",
        "source": about.repository or "packs of svmbench, in this archive",
        "paper": {
            "title": paper.title,
            "authors": [{"name": name} for name in paper.authors],
            "reference": paper.citation,
        },
        "manifest": manifest,
        "summary": "The algorithms were re-implemented and run again; site/index.html has the"
        " verdict on each claim, with the numbers and the rule that decide it.",
        "repository": about.repository,
        "check_time": about.date,
        "codechecker": [{"name": about.checker}] if about.checker else [],
    }
    return {name: value for name, value in content.items() if value not in ("", [])}


def _crate(
    folder: Path, files: Sequence[Path], keys: Iterable[str], about: About
) -> dict[str, Any]:
    """Return the RO-Crate: the files of the archive, its site, the software and the papers."""
    entities = [_file_entity(path, folder) for path in files]
    people = [
        {"@id": f"#author-{number}", "@type": "Person", "name": name}
        for number, name in enumerate(about.authors, start=1)
    ]
    articles = [
        {
            "@id": f"#{paper.key}",
            "@type": "ScholarlyArticle",
            "name": paper.title,
            "author": list(paper.authors),
        }
        for paper in map(papers().__getitem__, keys)
    ]
    site = {
        "@id": f"{SITE}/",
        "@type": "Dataset",
        "name": "pages of all tables, plots and verdicts; begin with index.html",
    }
    software = {
        "@id": "#svmbench",
        "@type": "SoftwareApplication",
        "name": "svmbench",
        "version": about.version,
        **({"url": about.repository} if about.repository else {}),
    }
    root = {
        "@id": "./",
        "@type": "Dataset",
        "name": about.title,
        "description": "Records of experiments on training support vector machines, as packs that"
        " 'svmbench add' takes, with their tables, plots and verdicts as pages.",
        "datePublished": about.date,
        "license": {"@id": f"https://spdx.org/licenses/{about.license}.html"},
        "author": [{"@id": entity["@id"]} for entity in people],
        "about": [{"@id": entity["@id"]} for entity in articles],
        "hasPart": [{"@id": entity["@id"]} for entity in (*entities, site)],
    }
    descriptor = {
        "@id": _CRATE_FILE,
        "@type": "CreativeWork",
        "conformsTo": {"@id": "https://w3id.org/ro/crate/1.1"},
        "about": {"@id": "./"},
    }
    return {
        "@context": "https://w3id.org/ro/crate/1.1/context",
        "@graph": [descriptor, root, *entities, site, software, *people, *articles],
    }


def _file_entity(path: Path, folder: Path) -> dict[str, Any]:
    content = read_bytes(path)
    return {
        "@id": path.relative_to(folder).as_posix(),
        "@type": "File",
        "name": path.name,
        "contentSize": str(len(content)),
        "encodingFormat": _KINDS.get(path.suffix, "application/octet-stream"),
        "sha256": hashlib.sha256(content).hexdigest(),
    }
