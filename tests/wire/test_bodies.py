"""Every body to the letter, made from what the engine gives, and read back as the same body."""

from __future__ import annotations

import inspect
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from omnigraph import errors
from omnigraph.embed.files import FileSummary
from omnigraph.evolve.apply import SchemaResult
from omnigraph.evolve.log import SchemaCommit
from omnigraph.generate.files import GeneratedFile
from omnigraph.generate.people_graph import GeneratedGraph
from omnigraph.history.baseline import Baseline
from omnigraph.history.changes import Cause, Change, ChangeBlock, Endpoints, Image, TypeRef
from omnigraph.history.diff import TypeStats
from omnigraph.history.entity_history import EntityChange, EntityHistory, SetBy
from omnigraph.history.feed import CommitChanges, FeedPage
from omnigraph.history.merge.conflicts import MergedRowCounts, MergeResult
from omnigraph.lang.diagnostics import Diagnostic, Phase
from omnigraph.lang.lint_report import ResultField
from omnigraph.lang.query.lint import lint_queries
from omnigraph.lang.schema.compile import compile_schema, lint_schema
from omnigraph.lang.schema.migration.plan import MigrationPlan
from omnigraph.lang.schema.migration.refusals import BrokenQuery, SchemaText
from omnigraph.lang.schema.migration.steps import (
    AddConstraint,
    AddType,
    ConstraintForm,
    UnsupportedChange,
    Violations,
)
from omnigraph.lang.source import Source, Span
from omnigraph.maintain.health import GraphStatus, HealthFinding, TypeStatus
from omnigraph.maintain.repair_report import DatasetRepair, RepairReport, Rescue
from omnigraph.maintain.reports import (
    CleanupReport,
    DatasetOptimize,
    DirectoryCleanup,
    IndexChange,
    IndexReport,
    IndexState,
    IndexStatus,
    OptimizeReport,
    PendingIndex,
)
from omnigraph.maintain.steps import MaintenanceReport, MaintenanceStep
from omnigraph.maintain.verify.report import BranchVerdict, Finding, Looked, VerifyReport
from omnigraph.manifest.entries import Commit, Registration, SchemaContract, TableIdentity
from omnigraph.manifest.snapshot import Snapshot, SnapshotTable
from omnigraph.read.execute.trace import Operator
from omnigraph.read.output.export import ExportReport
from omnigraph.read.plan.explain import Explanation, Total
from omnigraph.storage.objects.location import Location
from omnigraph.storage.tables.table import Table, TablePin
from omnigraph.version import INTERNAL_SCHEMA, __version__
from omnigraph.wire import (
    blobs,
    changes,
    entities,
    graphs,
    health,
    operator,
    pipelines,
    policies,
    reports,
    results,
    schemas,
    serving,
)
from omnigraph.wire import errors as wire_errors
from omnigraph.wire.body import Body, encode
from omnigraph.write.backfill import EmbedResult
from omnigraph.write.change.results import (
    BulkWork,
    EmptiedProperties,
    LoadResult,
    MutationResult,
    PipelineResult,
    Recovery,
    StepResult,
    TableOutcome,
    TypeChanges,
)

URI = "film.omni"
PLAIN = Commit("01B", None, 7, "01A", None, "ann", 1_700_000_000_000_000)
PLAIN_JSON = (
    '{"graph_commit_id":"01B","graph_branch":null,"graph_manifest_version":7,'
    '"parent_commit_id":"01A","merged_parent_commit_id":null,"actor_id":"ann",'
    '"created_at":1700000000000000}'
)
MERGED = Commit(
    "01C", "draft", 8, "01B", "01X", None, 5, {"embedding": {"model": "m", "provider": "p"}}
)
MERGED_JSON = (
    '{"graph_commit_id":"01C","graph_branch":"draft","graph_manifest_version":8,'
    '"parent_commit_id":"01B","merged_parent_commit_id":"01X","actor_id":null,"created_at":5,'
    '"embedding":{"model":"m","provider":"p"}'
)
CONFLICT = errors.MergeConflict(
    "divergent_update", "node", "Person", "Ann", "both changed it", "age", 1, [2], None
)
CONFLICT_JSON = (
    '{"entity_kind":"node","type_name":"Person","entity_id":"Ann","kind":"divergent_update",'
    '"message":"both changed it","property":"age","base":1,"source":[2],"target":null'
)
CAUSE = Cause("01C", "01B", "01X", "draft", "ann", 5)
CAUSE_JSON = (
    '{"graph_commit_id":"01C","parent_commit_id":"01B","merged_parent_commit_id":"01X",'
    '"authored_branch":"draft","actor_id":"ann","authored_at":5}'
)
ENDS = Endpoints("Ann", "Ben")
NODE = Change(
    "node",
    TypeRef("t1", "Person"),
    "Ann",
    "update",
    Image({"age": 1}),
    Image({"age": None}),
    ("age",),
)
EDGE = Change("edge", TypeRef("t2", "Knows"), "k1", "insert", after=Image({}, ENDS))
SIDES_JSON = '"before":{"properties":{"age":1}},"after":{"properties":{"age":null}}}'
EDGE_JSON = '"after":{"properties":{},"endpoints":{"from":"Ann","to":"Ben"}}}'
NODE_JSON = (
    '{"kind":"node","type":{"id":"t1","name":"Person"},"id":"Ann","op":"update",' + SIDES_JSON
)
BLOCK_JSON = f'{{"cause":{CAUSE_JSON},"changes":[{NODE_JSON}]'
SCHEMA = Source("node Person { name: String @key }\n", "s.pg")
KEPT = TablePin(12, None, 3)
ROOT = Location.parse("/graph")
LOADED = (
    '"branch":"main","mode":"append","base_branch":null,"branch_created":false,'
    '"nodes":[{"name":"A","entities_loaded":1},{"name":"B","entities_loaded":2}],"edges":[],'
    '"total_entities":3,"actor_id":null,"commit":'
)


def snapshot() -> Snapshot:
    tables = {
        key: SnapshotTable(
            Registration(TableIdentity(number, 1), key, path), 4, Table(ROOT.join(path), KEPT)
        )
        for number, (key, path) in enumerate(
            [("node:Person", "nodes/1-1"), ("edge:Knows", "edges/2-1")]
        )
    }
    return Snapshot("main", 7, "01B", tables, SchemaContract("", "", "", "", ""))


def lint(query: str, schema: Source = SCHEMA) -> reports.LintBody:
    catalog, found = lint_schema(schema)
    if catalog is not None:
        found = lint_queries(Source(query, "q.gq"), catalog)
    return reports.LintBody.of(found, reports.SchemaSourceBody("file", path="s.pg"), "q.gq")


def output(*, commit: str | None = "01B") -> results.ReadOutput:
    return results.ReadOutput("q", "main", None, 1, ["a"], lambda: [[{"a": "é"}]], commit)


def made() -> GeneratedGraph:
    files = [GeneratedFile(Path("o/p.jsonl"), "Person", 5, 40)]
    return GeneratedGraph(tuple(files), {"Person": 5}, Path("o/s.pg"), ())


ADDED = AddType("node", "City", tier="safe", cost="metadata")
ADDED_JSON = '{"kind":"add_type","type_kind":"node","name":"City","tier":"safe","cost":"metadata"}'
UNIQUE = AddConstraint(
    "node",
    "Person",
    ConstraintForm(unique=("name",)),
    tier="validated",
    cost="scan",
    violations=Violations(2, ("Ann", "Ben")),
)
VIOLATIONS_JSON = '"violations":{"count":2,"ids":["Ann","Ben"]}'
UNIQUE_JSON = (
    '{"kind":"add_constraint","type_kind":"node","type_name":"Person",'
    '"constraint":{"Unique":["name"]},"tier":"validated","cost":"scan",' + VIOLATIONS_JSON + "}"
)
UNIQUE_REFUSED_JSON = (
    '{"entity":"node:Person.name","reason":"node:Person.name gets @unique(name): '
    '2 rows break it: Ann, Ben",' + VIOLATIONS_JSON + ',"place":{"path":"s.pg","line":1,'
    '"column":15,"end_line":1,"end_column":19}}'
)
BROKEN = BrokenQuery(
    "q.gq", "q", (Diagnostic(Source("query", "q.gq"), Span(0, 5), Phase.TYPE, "no such", "T1"),)
)
BROKEN_JSON = (
    '{"source":"q.gq","query":"q","diagnostics":[{"path":"q.gq","line":1,"column":1,"end_line":1,'
    '"end_column":6,"code":"T1","message":"type error: T1: no such","hint":null}]}'
)
QUERY_REFUSED_JSON = (
    '{"entity":"query:q","reason":"query `q` of q.gq does not compile against this schema"}'
)


def refused_plan() -> MigrationPlan:
    gone = UnsupportedChange("node:Gone", "no", "OG-MF-106")
    text = SchemaText(SCHEMA, compile_schema(SCHEMA).syntax)
    return MigrationPlan((gone, UNIQUE), broken_queries=(BROKEN,), text=text)


STATUS = GraphStatus(
    "/film.omni",
    9,
    "main",
    PLAIN,
    "h",
    (TypeStatus("node:A", 3, 2, 1, 4, 5, 6, 7, 8, 9, 10, ("why",), "gone"),),
    2,
    ("dev",),
    {"old": "no"},
    12,
    PLAIN,
    9,
    10,
    1,
    is_estimate=True,
    writes_at_work=1,
    writes_dead=0,
    findings=(HealthFinding("damaged", "node:A", "gone", "restore"),),
)

GOLDEN: list[tuple[Body, str]] = [
    # -- the person at the keyboard
    (
        operator.ProfilesBody(
            [
                operator.ProfileBody(
                    "away", "server: prod", "server", "prod", True, None, "film", False
                )
            ]
        ),
        (
            '{"profiles":[{"name":"away","binding":"server: prod","scope_kind":"server",'
            '"target":"prod","valid":true,"error":null,"default_graph":"film","active":false}]}'
        ),
    ),
    (
        operator.ProfileShownBody("(defaults)", "none", None, None, None, "table"),
        (
            '{"name":"(defaults)","scope_kind":"none","target":null,"endpoint":null,'
            '"default_graph":null,"output_format":"table"}'
        ),
    ),
    (operator.LoginBody("prod", "/c"), '{"name":"prod","path":"/c"}'),
    (operator.LogoutBody("prod", False), '{"name":"prod","removed":false}'),
    # -- blobs
    (
        blobs.BlobStatBody(
            selector=blobs.BlobSelectorBody("node", "Person", "Ann", "photo"),
            kind="managed",
            size=0,
            etag='"00ff"',
            target=blobs.BlobTargetBody(branch="main", resolved_snapshot="01A"),
        ),
        (
            '{"selector":{"entity":"node","type":"Person","id":"Ann","property":"photo"},'
            '"kind":"managed","size":0,"etag":"\\"00ff\\"",'
            '"target":{"branch":"main","resolved_snapshot":"01A"}}'
        ),
    ),
    # -- policies
    (
        policies.PolicyBody("team", "graph", 2, 3),
        '{"bundle":"team","kind":"graph","actors":2,"rules":3}',
    ),
    (
        policies.PolicyTestsBody(False, 1, ("a: expected Allow but got deny",)),
        '{"ok":false,"cases":1,"failures":["a: expected Allow but got deny"]}',
    ),
    (
        policies.DecisionBody("deny", "ann", "change", "main", None, None, "denied"),
        (
            '{"decision":"deny","actor":"ann","action":"change","branch":"main",'
            '"target_branch":null,"matched_rule":null,"message":"denied"}'
        ),
    ),
    # -- graphs
    (
        graphs.VersionBody.current(),
        f'{{"version":"{__version__}","internal_schema":{INTERNAL_SCHEMA}}}',
    ),
    (
        graphs.SnapshotBody.of(snapshot()),
        (
            '{"graph_branch":"main","graph_manifest_version":7,'
            f'"internal_schema_version":{INTERNAL_SCHEMA},"datasets":['
            '{"entity_kind":"edge","type_name":"Knows","dataset_path":"edges/2-1",'
            '"published_dataset_version":4,"native_dataset_branch":null,"entity_count":3,'
            '"lance_version":12},'
            '{"entity_kind":"node","type_name":"Person","dataset_path":"nodes/1-1",'
            '"published_dataset_version":4,"native_dataset_branch":null,"entity_count":3,'
            '"lance_version":12}]}'
        ),
    ),
    (graphs.CommitBody.of(PLAIN), PLAIN_JSON),
    (graphs.CommitBody.of(MERGED), MERGED_JSON + "}"),
    (graphs.CommitsBody.of([PLAIN]), f'{{"commits":[{PLAIN_JSON}]}}'),
    (
        graphs.CommitsBody.of([MERGED, PLAIN], {"01C": ["draft", "main"]}),
        f'{{"commits":[{MERGED_JSON},"heads":["draft","main"]}},{PLAIN_JSON[:-1]},"heads":[]}}]}}',
    ),
    (graphs.BranchesBody(["draft", "main"]), '{"branches":["draft","main"]}'),
    (
        graphs.BranchCreatedBody(URI, "main", "draft", None),
        '{"uri":"film.omni","from":"main","name":"draft","actor_id":null}',
    ),
    (
        graphs.BranchDeletedBody(URI, "draft", "ann"),
        '{"uri":"film.omni","name":"draft","actor_id":"ann"}',
    ),
    (
        graphs.BranchRenamedBody(URI, "draft", "idea", None),
        '{"uri":"film.omni","former":"draft","name":"idea","actor_id":null}',
    ),
    (
        graphs.TagsBody([graphs.TagBody("v1", "01C")]),
        '{"tags":[{"name":"v1","graph_commit_id":"01C"}]}',
    ),
    (graphs.TagDeletedBody("v1"), '{"name":"v1"}'),
    (
        entities.BlameBody.of([SetBy("name", "Ann", PLAIN), SetBy("age", None, None)]),
        (
            f'{{"properties":[{{"property":"name","value":"Ann","commit":{PLAIN_JSON}}},'
            '{"property":"age","value":null,"commit":null}]}'
        ),
    ),
    (
        entities.EntityHistoryBody.of(
            EntityHistory(
                (
                    EntityChange(
                        PLAIN,
                        Change("node", TypeRef("t", "Person"), "ann", "delete", Image({"age": 1})),
                    ),
                ),
                is_complete=False,
            )
        ),
        (
            f'{{"complete":false,"changes":[{{"commit":{PLAIN_JSON},"change":{{"kind":"node",'
            '"type":{"id":"t","name":"Person"},"id":"ann","op":"delete",'
            '"before":{"properties":{"age":1}}}}]}'
        ),
    ),
    (
        graphs.MergeBody.of(MergeResult("draft", "main", "already_up_to_date")),
        '{"source":"draft","target":"main","outcome":"already_up_to_date","actor_id":null}',
    ),
    (
        graphs.MergeBody.of(
            MergeResult(
                "draft",
                "main",
                "merged",
                PLAIN,
                "ann",
                branch_deleted=False,
                branch_delete_error="in use",
                resolved=((CONFLICT, "source"),),
                counts={"node:Person": MergedRowCounts(1)},
            )
        ),
        (
            '{"source":"draft","target":"main","outcome":"merged","actor_id":"ann",'
            f'"commit":{PLAIN_JSON},"branch_deleted":false,"branch_delete_error":"in use",'
            f'"resolved":[{CONFLICT_JSON},"side":"source"}}]}}'
        ),
    ),
    (
        graphs.MergeBody.of(
            MergeResult(
                "draft",
                "main",
                "merged",
                is_dry_run=True,
                conflicts=(CONFLICT,),
                counts={"node:Person": MergedRowCounts(1, 2, 3, 4)},
                schema=MigrationPlan((ADDED,)),
            )
        ),
        (
            '{"source":"draft","target":"main","outcome":"merged","actor_id":null,"dry_run":true,'
            '"changes":[{"entity_kind":"node","type_name":"Person","inserted":1,"updated":2,'
            f'"deleted":3,"combined":4}}],"merge_conflicts":[{CONFLICT_JSON}}}],'
            f'"schema":{{"supported":true,"steps":[{ADDED_JSON}]}}}}'
        ),
    ),
    # -- schemas
    (schemas.SchemaBody("node A {}\n"), '{"schema_source":"node A {}\\n"}'),
    (
        schemas.SchemaPlanBody.of(MigrationPlan((ADDED,)), URI, "main"),
        (
            '{"uri":"film.omni","branch":"main","supported":true,"step_count":1,'
            f'"steps":[{ADDED_JSON}]}}'
        ),
    ),
    (
        schemas.SchemaPlanBody.of(refused_plan(), URI, "dev"),
        (
            '{"uri":"film.omni","branch":"dev","supported":false,"step_count":2,"steps":['
            '{"kind":"unsupported_change","entity":"node:Gone","reason":"no","code":"OG-MF-106"},'
            f'{UNIQUE_JSON}],"refusals":[{{"entity":"node:Gone","reason":"no","code":"OG-MF-106"}},'
            f'{UNIQUE_REFUSED_JSON},{QUERY_REFUSED_JSON}],"broken_queries":[{BROKEN_JSON}]}}'
        ),
    ),
    (
        schemas.SchemaAppliedBody.of(SchemaResult("main", MigrationPlan()), URI, None),
        (
            '{"uri":"film.omni","branch":"main","supported":true,"applied":false,"step_count":0,'
            '"graph_manifest_version":null,"steps":[],"actor_id":null,"commit":null}'
        ),
    ),
    (
        schemas.SchemaAppliedBody.of(
            SchemaResult(
                "main",
                MigrationPlan((ADDED,), broken_queries=(BROKEN,), forced=True),
                PLAIN,
                repeats_run=True,
            ),
            URI,
            "ann",
        ),
        (
            '{"uri":"film.omni","branch":"main","supported":true,"applied":true,"step_count":1,'
            f'"graph_manifest_version":7,"steps":[{ADDED_JSON}],"actor_id":"ann",'
            f'"commit":{PLAIN_JSON},"repeats_run":true,"broken_queries":[{BROKEN_JSON}]}}'
        ),
    ),
    (
        schemas.SchemaDiffBody.of(MigrationPlan((ADDED,)), URI, "main", "dev"),
        (
            '{"uri":"film.omni","from":"main","to":"dev","supported":true,"step_count":1,'
            f'"steps":[{ADDED_JSON}]}}'
        ),
    ),
    (
        schemas.SchemaLogBody.of([SchemaCommit(PLAIN, (ADDED,))], URI, "main"),
        (
            f'{{"uri":"film.omni","branch":"main","changes":[{{"commit":{PLAIN_JSON},'
            f'"step_count":1,"steps":[{ADDED_JSON}]}}]}}'
        ),
    ),
    # -- changes
    (changes.CauseBody.of(CAUSE), CAUSE_JSON),
    (
        changes.CauseBody.of(Cause("01A", None, None, "main", None, 5)),
        '{"graph_commit_id":"01A","authored_branch":"main","authored_at":5}',
    ),
    (changes.ChangeBody.of(NODE), NODE_JSON),
    (
        changes.ChangeBody.of(EDGE),
        '{"kind":"edge","type":{"id":"t2","name":"Knows"},"id":"k1","op":"insert",' + EDGE_JSON,
    ),
    (changes.BlockBody.of(ChangeBlock(CAUSE, (NODE,))), BLOCK_JSON + "}"),
    (
        changes.BlockBody.of(CommitChanges(CAUSE, (NODE,), "tok")),
        BLOCK_JSON + ',"next_page_token":"tok"}',
    ),
    (
        changes.FeedBody.of(FeedPage((ChangeBlock(CAUSE, (NODE,)),), "tok")),
        f'{{"blocks":[{BLOCK_JSON}}}],"next_page_token":"tok"}}',
    ),
    (
        changes.FeedBody.of(FeedPage((), cursor="cur")),
        '{"blocks":[],"cursor":"cur","caught_up":false}',
    ),
    (
        changes.BaselineBody.of(Baseline("01B", "cur", ExportReport("b", {}, {}, 0))),
        '{"snapshot_commit_id":"01B","resume_cursor":"cur"}',
    ),
    (
        changes.DiffChangeBody.of(NODE, 4),
        '{"kind":"node","type_name":"Person","id":"Ann","op":"update",'
        '"published_dataset_version":4,"changed":["age"],' + SIDES_JSON,
    ),
    (
        changes.DiffChangeBody.of(EDGE, 4),
        '{"kind":"edge","type_name":"Knows","id":"k1","op":"insert",'
        '"published_dataset_version":4,"endpoints":{"src":"Ann","dst":"Ben"},' + EDGE_JSON,
    ),
    (
        changes.DiffBody(
            from_graph_manifest_version=1,
            to_graph_manifest_version=2,
            changes=[],
            stats=[changes.StatsBody.of(TypeStats("node", "Person", deleted=1))],
        ),
        (
            '{"from_graph_manifest_version":1,"to_graph_manifest_version":2,"changes":[],'
            '"stats":[{"kind":"node","type_name":"Person","inserted":0,"updated":0,"deleted":1}]}'
        ),
    ),
    (
        changes.DiffBody(from_graph_manifest_version=1, to_graph_manifest_version=2, stats=[]),
        '{"from_graph_manifest_version":1,"to_graph_manifest_version":2,"stats":[]}',
    ),
    # -- results
    (
        output().whole,
        (
            '{"query_name":"q","target":{"branch":"main","snapshot":null},"row_count":1,'
            '"columns":["a"],"rows":[{"a":"é"}],"graph_commit_id":"01B"}'
        ),
    ),
    (
        results.ReadOutput("q", None, "01A", 0, [], list).whole,
        '{"query_name":"q","target":{"branch":null,"snapshot":"01A"},"row_count":0,"rows":[]}',
    ),
    (
        results.ExplanationBody.of(
            Explanation("q", "01B", "main", None, (Operator("scan", "$p", notes={"pushed": []}),))
        ),
        (
            '{"query_name":"q","target":{"branch":"main","snapshot":null},"graph_commit_id":"01B",'
            '"analyzed":false,"operators":[{"operator":"scan","detail":"$p","depth":0,"pushed":[]}]}'
        ),
    ),
    (
        results.ExplanationBody.of(
            Explanation(
                "q", "01B", None, "01B", (Operator("x", "", 1, None, 0.5, 2),), Total(1, 0.25, 3)
            )
        ),
        (
            '{"query_name":"q","target":{"branch":null,"snapshot":"01B"},"graph_commit_id":"01B",'
            '"analyzed":true,"operators":[{"operator":"x","detail":"","depth":1,"rows":null,'
            '"seconds":0.5,"requests":2}],"total":{"rows":1,"seconds":0.25,"requests":3}}'
        ),
    ),
    (
        results.ExportBody.of(ExportReport("o.jsonl", {"B": 1, "A": 2}, {}, 9), URI, "main"),
        (
            '{"uri":"film.omni","branch":"main","out":"o.jsonl","nodes":[{"name":"A","entities":2},'
            '{"name":"B","entities":1}],"edges":[],"total_entities":3,"bytes":9}'
        ),
    ),
    (
        results.MutationBody.of(MutationResult("main", "q", 1, 2, "ann", PLAIN)),
        (
            '{"branch":"main","query_name":"q","affected_nodes":1,"affected_edges":2,'
            f'"actor_id":"ann","commit":{PLAIN_JSON},"warnings":[]}}'
        ),
    ),
    (
        results.MutationBody.of(MutationResult("main", "q", 0, 0, None, None)),
        (
            '{"branch":"main","query_name":"q","affected_nodes":0,"affected_edges":0,'
            '"actor_id":null,"commit":null,"warnings":[]}'
        ),
    ),
    (
        results.MutationBody.of(
            MutationResult(
                "main", "q", 2, 0, None, None, (EmptiedProperties("Film", 2, ("plot", "year")),)
            )
        ),
        (
            '{"branch":"main","query_name":"q","affected_nodes":2,"affected_edges":0,'
            '"actor_id":null,"commit":null,"warnings":[{"code":"L301","message":"insert replaced 2 '
            'Film and emptied plot, year; upsert changes only what is given","type_name":"Film",'
            '"rows":2,"properties":["plot","year"]}]}'
        ),
    ),
    (
        results.LoadBody.of(LoadResult("main", "append", {"B": 2, "A": 1}, {}, PLAIN), uri=URI),
        f'{{"uri":"film.omni",{LOADED}{PLAIN_JSON}}}',
    ),
    (
        results.LoadBody.of(
            LoadResult(
                "main",
                "append",
                {"B": 2, "A": 1},
                {},
                None,
                rejects={"type": 2},
                engine="spark",
                is_dry_run=True,
                repeats_run=True,
                work=BulkWork(3, 40, {"stage": 0.12345}),
                changes={"node:B": TypeChanges(inserted=1, patched=2)},
            ),
            uri=URI,
            pipeline="p.yaml",
        ),
        (
            f'{{"uri":"film.omni","pipeline":"p.yaml",{LOADED}null,"dry_run":true,'
            '"repeats_run":true,"rejected":2,"rejects":{"type":2},"rejects_file":null,'
            '"changes":[{"type":"node:B","inserted":1,"replaced":0,"patched":2,"emptied":0}],'
            '"engine":"spark","fragments":3,"bytes":40,"seconds":{"stage":0.123},"log_file":null}'
        ),
    ),
    (
        pipelines.PipelineBody.of_steps(
            PipelineResult(
                "main",
                "append",
                {"B": 2, "A": 1},
                {},
                PLAIN,
                steps=(
                    StepResult(
                        "first", LoadResult("main", "append", {"B": 2, "A": 1}, {}, PLAIN), ("one",)
                    ),
                ),
            ),
            URI,
            "p.yaml",
        ),
        (
            f'{{"uri":"film.omni","pipeline":"p.yaml",{LOADED}{PLAIN_JSON},"steps":['
            f'{{"name":"first","checks":["one"],"load":{{{LOADED}{PLAIN_JSON}}}}}]}}'
        ),
    ),
    (
        results.EmbedBody.of(EmbedResult("main", "Doc", {"vec": 2}, 2, None, None)),
        (
            '{"branch":"main","type":"Doc","entities":2,"vectors":{"vec":2},"actor_id":null,'
            '"commit":null}'
        ),
    ),
    (
        results.EmbedFileBody.of(FileSummary("i", "o", 5, 4, 3, 2, "clean", 8, "m")),
        (
            '{"input":"i","output":"o","records":5,"selected_records":4,"embedded_records":3,'
            '"cleaned_records":2,"mode":"clean","dimension":8,"model":"m"}'
        ),
    ),
    (
        results.GeneratedBody.of(made(), "o", 7),
        (
            '{"out":"o","schema":"o/s.pg","seed":7,"types":[{"name":"Person","rows":5,"planted":0,'
            '"files":["o/p.jsonl"],"bytes":40}],"total_rows":5,"total_bytes":40,"planted":{}}'
        ),
    ),
    # -- reports
    (
        reports.IndexReportBody.of(
            IndexReport(
                "main",
                None,
                (IndexChange("node:A", "name", "btree", "built", 3),),
                (PendingIndex("node:A", "vec", "too few rows"),),
            ),
            URI,
        ),
        (
            '{"uri":"film.omni","branch":"main","graph_commit_id":null,"changes":[{"type_key":"node:A",'
            '"property":"name","kind":"btree","action":"built","rows":3}],"pending":'
            '[{"type_key":"node:A","property":"vec","reason":"too few rows"}]}'
        ),
    ),
    (
        reports.IndexStatusBody.of(
            IndexStatus("main", "01B", (IndexState("node:A", "name", None, "none", 0, 3),)), URI
        ),
        (
            '{"uri":"film.omni","branch":"main","graph_commit_id":"01B","indexes":[{"type_key":"node:A",'
            '"property":"name","kind":null,"state":"none","rows_covered":0,"rows_total":3,'
            '"uncovered_fragments":0,"segments":0,"size_bytes":0,"why":null,"reason":null}]}'
        ),
    ),
    (
        reports.OptimizeBody.of(
            OptimizeReport(
                "main",
                "01B",
                (
                    DatasetOptimize(
                        "node:A",
                        9,
                        1,
                        20,
                        committed=True,
                        published_dataset_version=3,
                        lance_version=7,
                        indexes=(IndexChange("node:A", "name", "btree", "extended", 3),),
                        indexes_dropped=("old",),
                        pending=(PendingIndex("node:A", "vec", "too few rows"),),
                    ),
                ),
            ),
            URI,
        ),
        (
            '{"uri":"film.omni","branch":"main","graph_commit_id":"01B","engine":"inline",'
            '"dry_run":false,"datasets":[{"type_key":"node:A","fragments_removed":9,'
            '"fragments_added":1,"rows_rewritten":20,"committed":true,"skipped":null,'
            '"published_dataset_version":3,"lance_head_version":7,"indexes":[{"type_key":"node:A",'
            '"property":"name","kind":"btree","action":"extended","rows":3}],'
            '"indexes_dropped":["old"],"pending_indexes":'
            '[{"property":"vec","reason":"too few rows"}]}]}'
        ),
    ),
    (
        reports.CleanupBody.of(
            CleanupReport((DirectoryCleanup("node:A", "nodes/1-1", 9, 2, 1),), 4, dry_run=True),
            URI,
            None,
            timedelta(days=1),
        ),
        (
            '{"uri":"film.omni","keep_versions":null,"older_than_secs":86400,"dry_run":true,'
            '"commits_reclaimed":4,"datasets":[{"type_key":"node:A","path":"nodes/1-1",'
            '"bytes_removed":9,"files_removed":2,"old_versions_removed":1,"error":null}]}'
        ),
    ),
    (
        reports.VerifyBody.of(
            VerifyReport(
                deep=True,
                findings=(
                    Finding("copy_lags", "it lags", "_schema.pg"),
                    Finding(
                        "rule_broken",
                        "too old",
                        "nodes/1-1",
                        "node:A",
                        "age",
                        "range",
                        ("main",),
                        ("01A",),
                        1,
                        ("a",),
                        2,
                    ),
                ),
                branches=(BranchVerdict("main", is_whole=False, head_commit_id="01A", commits=3),),
                looked=Looked(1, 3, 4, 5, 6, 7, 8, 9),
            ),
            URI,
        ),
        (
            '{"uri":"film.omni","deep":true,"sound":false,"findings":[{"kind":"copy_lags",'
            '"severity":"note","message":"it lags","path":"_schema.pg"},{"kind":"rule_broken",'
            '"severity":"damage","message":"too old","path":"nodes/1-1","type_key":"node:A",'
            '"property":"age","rule":"range","branches":["main"],"commits":["01A"],'
            '"commit_count":1,"entities":["a"],"entity_count":2}],"branches":[{"branch":"main",'
            '"is_whole":false,"head_commit_id":"01A","newest_whole_commit_id":null,"commits":3}],'
            '"looked":{"branches":1,"commits":3,"table_versions":4,"files":5,"rows":6,'
            '"index_values":7,"checksums":8,"unverified":9}}'
        ),
    ),
    (
        health.MaintenanceBody.of(
            MaintenanceReport(
                (MaintenanceStep("optimize", "done", "why", "main", ("node:A",), 9, "01B"),), 1.5
            ),
            URI,
        ),
        (
            '{"uri":"film.omni","dry_run":false,"seconds":1.5,"steps":[{"work":"optimize",'
            '"outcome":"done","reason":"why","branch":"main","types":["node:A"],"bytes":9,'
            '"commit_id":"01B"}]}'
        ),
    ),
    (
        health.StatusBody.of(STATUS, URI),
        (
            '{"uri":"film.omni","level":"damaged","findings":[{"level":"damaged",'
            '"subject":"node:A","message":"gone","advice":"restore"}],"format":9,"branch":"main",'
            f'"head":{PLAIN_JSON},"schema_hash":"h","rows":3,"types":[{{"type_key":"node:A",'
            '"rows":3,"fragments":2,"small_fragments":1,"deleted_rows":4,"indexes_complete":5,'
            '"indexes_partial":6,"indexes_pending":7,"indexes_unasked":8,"live_bytes":9,'
            '"stored_bytes":10,"due":["why"],"error":"gone"}],"branches":2,'
            '"stale_branches":["dev"],"unreadable_branches":{"old":"no"},"commits_kept":12,'
            f'"oldest_commit":{PLAIN_JSON},"live_bytes":9,"stored_bytes":10,'
            '"reclaimable_bytes":1,"reclaimable_is_estimate":true,"writes_at_work":1,'
            '"writes_dead":0}'
        ),
    ),
    (
        serving.HealthBody("ok", "1.0", 9),
        '{"status":"ok","version":"1.0","internal_schema_version":9}',
    ),
    (serving.ReadyBody("ready"), '{"status":"ready"}'),
    (
        serving.GraphsBody(
            [serving.GraphBody("film", URI)], (serving.QuarantinedBody("old", "gone"),)
        ),
        (
            '{"graphs":[{"graph_id":"film","uri":"film.omni"}],'
            '"quarantined":[{"graph_id":"old","reason":"gone"}]}'
        ),
    ),
    (
        serving.StoredQueriesBody(
            [
                serving.StoredQueryBody.of(
                    "q",
                    [ResultField("v", "vector", nullable=False, vector_dim=3)],
                    description="d",
                    instruction=None,
                    mutation=False,
                )
            ]
        ),
        (
            '{"queries":[{"name":"q","tool_name":"q","description":"d","mutation":false,'
            '"params":[{"name":"v","kind":"vector","vector_dim":3,"nullable":false}]}]}'
        ),
    ),
    (
        serving.ServedStatusBody.of_served(
            STATUS,
            IndexStatus("main", "01B", (IndexState("node:A", "id", None, "pending", 0, 3),)),
            URI,
        ),
        encode(health.StatusBody.of(STATUS, URI)).decode()[:-1]
        + ',"ready":false,"indexes":[{"type_key":"node:A","property":"id","kind":null,'
        '"state":"pending","rows_covered":0,"rows_total":3,"uncovered_fragments":0,"segments":0,'
        '"size_bytes":0,"why":null,"reason":null}]}',
    ),
    (
        reports.RepairBody.of(
            RepairReport(
                confirm=True,
                graph_manifest_version=4,
                datasets=(DatasetRepair("node:A", 2, 1, "no_drift", "rebuild_indexes"),),
                repaired=("rewrite _schema.pg from the manifest",),
                rescues=(Rescue("main", "01A", "saved"),),
            ),
            URI,
            force=False,
        ),
        (
            '{"uri":"film.omni","confirm":true,"force":false,"graph_manifest_version":4,'
            '"datasets":[{"type_key":"node:A","published_dataset_version":2,'
            '"lance_head_version":1,"classification":"no_drift","action":"rebuild_indexes",'
            '"operations":[],"error":null}],"repaired":["rewrite _schema.pg from the manifest"],'
            '"rescues":[{"branch":"main","commit_id":"01A","kept_as":"saved"}],"findings":[]}'
        ),
    ),
    (
        reports.RecoveriesBody.of(
            [Recovery("01B", "RolledBack", None, "op", "load", (TableOutcome("node:A", 1, 1),), 5)]
        ),
        (
            '{"recoveries":[{"graph_commit_id":"01B","recovery_kind":"RolledBack",'
            '"recovery_for_actor":null,"operation_id":"op","writer_kind":"load","tables":'
            '[{"table_key":"node:A","from_version":1,"to_version":1}],"created_at":5}]}'
        ),
    ),
    (
        lint("query q() { match { $p: Person } return { $p.name } }"),
        (
            '{"status":"ok","schema_source":{"kind":"file","path":"s.pg"},"query_path":"q.gq",'
            '"queries_processed":1,"errors":0,"warnings":0,"infos":0,"results":[{"name":"q",'
            '"kind":"read","status":"ok","operation":{"result":[{"name":"p.name","kind":"string",'
            '"nullable":false}],"reads":[{"kind":"node","type_name":"Person"}],"writes":[]}}],'
            '"findings":[],"diagnostics":[]}'
        ),
    ),
    (
        reports.FindingBody("info", "L1", "m", "Person", "age", ("q",)),
        (
            '{"severity":"info","code":"L1","message":"m","type_name":"Person","property":"age",'
            '"query_names":["q"]}'
        ),
    ),
    (
        reports.PipelineCheckBody.of(URI, "p.yaml", []),
        '{"uri":"film.omni","pipeline":"p.yaml","valid":true,"problems":[]}',
    ),
    (
        reports.PipelineCheckBody.of(URI, "p", [{"path": "mode", "line": 1, "message": "m"}]),
        (
            '{"uri":"film.omni","pipeline":"p","valid":false,"problems":'
            '[{"path":"mode","line":1,"message":"m"}]}'
        ),
    ),
]


def golden_name(pair: tuple[Body, str]) -> str:
    return type(pair[0]).__name__


@pytest.mark.parametrize(("body", "text"), GOLDEN, ids=map(golden_name, GOLDEN))
def test_a_body_is_written_to_the_letter_and_read_back(body: Body, text: str) -> None:
    assert encode(body).decode() == text
    assert msgspec.json.decode(text, type=type(body)) == body


def test_a_mistake_is_told_with_its_place() -> None:
    body = lint("query q() { match { $p: Persn } return { $p.name } }")
    (found,) = body.diagnostics
    assert (body.status, body.errors, body.results[0].status) == ("error", 1, "error")
    assert body.results[0].error == found.message
    assert (found.path, found.line, found.column) == ("q.gq", 1, 25)
    assert found.hint == "did you mean `Person`?"
    assert msgspec.json.decode(encode(body), type=reports.LintBody) == body


def test_a_graph_is_named_where_the_schema_is_its_own() -> None:
    source = reports.SchemaSourceBody("graph", uri=URI)
    assert encode(source) == b'{"kind":"graph","uri":"film.omni"}'


# -- all of them -------------------------------------------------------------------------


def bodies() -> Iterator[type[Body]]:
    for module in (
        blobs,
        entities,
        graphs,
        schemas,
        changes,
        results,
        reports,
        health,
        operator,
        pipelines,
        serving,
        policies,
        wire_errors,
    ):
        for _, found in inspect.getmembers(module, inspect.isclass):
            if issubclass(found, Body) and found.__module__ == module.__name__:
                yield found


def within(value: Any) -> Iterator[type[Body]]:
    """The bodies of a value, its own included."""
    if isinstance(value, Body):
        yield type(value)
        value = [getattr(value, name) for name in value.__struct_fields__]
    if isinstance(value, list | tuple):
        for one in value:
            yield from within(one)


def test_every_body_is_shown_above() -> None:
    shown = {kind for body, _ in GOLDEN for kind in within(body)}
    rest = {kind for kind in bodies() if kind not in shown}
    in_errors = {kind for kind in rest if kind.__module__ == wire_errors.__name__}
    # What a schema change is refused with is a detail of an error.
    assert rest - in_errors == {schemas.SchemaRefusedBody}


def test_every_body_has_a_schema() -> None:
    _, components = msgspec.json.schema_components(list(bodies()))
    assert {kind.__name__ for kind in bodies()} <= set(components)


def test_bodies_cost_no_engine() -> None:
    script = (
        "import sys, omnigraph.wire.changes, omnigraph.wire.errors, omnigraph.wire.reports, "
        "omnigraph.wire.health, omnigraph.wire.blobs, omnigraph.wire.serving, "
        "omnigraph.wire.requests, omnigraph.wire.policies, "
        "omnigraph.wire.results, omnigraph.wire.schemas; print(*sys.modules, sep='\\n')"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    heavy = {"click", "lance", "numpy", "pandas", "pyarrow", "pyspark", "rich"}
    languages = {"omnigraph.lang.query", "omnigraph.lang.schema"}
    assert (heavy | languages).isdisjoint(ran.stdout.split())
